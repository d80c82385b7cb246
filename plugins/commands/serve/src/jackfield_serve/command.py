"""`jackfield serve`: serve agents to clients."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from jackfield.cli import print_table
from jackfield.servers import FaceCommand
from jackfield_serve.parser import make_parser


def main(arguments: Sequence[str], command: FaceCommand | None = None) -> int:
    """Run `jackfield serve`, or another command that serves a single face, until it is stopped.

    Raises:
        ConfigError: An agent, an address or another option is invalid.
        PluginError: A face is not installed or cannot be loaded.
    """
    parser = make_parser(command)
    options = parser.parse_args(arguments)
    if options.faces:
        return _list_faces()
    if not options.agents and command is None:
        parser.error("specify an agent: an agent file or module:agent")
    from jackfield_serve.options import read_options
    from jackfield_serve.running import run_http, run_stdio

    words = ["--face", command.face, *arguments] if command else arguments
    chosen = read_options(options, words=words, command=command)
    return run_stdio(chosen, options.stdio) if options.stdio else run_http(chosen)


def _list_faces() -> int:
    from jackfield.plugins import ServerSpec, default_host

    host = default_host()
    names = host.names("server")
    if not names:
        sys.stderr.write("no faces are installed; to install one, run: pip install jackfield-openai-server\n")
        return 0
    print_table(["face", "summary"], [[name, host.spec("server", name, ServerSpec).summary] for name in names])
    return 0
