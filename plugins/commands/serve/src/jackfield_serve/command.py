"""`jackfield serve`: serve agents to clients."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from jackfield.cli import Parser, escape_line, print_table

if TYPE_CHECKING:
    from jackfield_serve.options import ServeOptions

_EPILOG = """examples:
  jackfield serve agent.yaml                        # http://127.0.0.1:8000/v1 for any OpenAI client
  jackfield serve support=a.yaml shop.agents:buyer  # two agents, `support` and `buyer`
  jackfield serve agent.yaml --store sqlite         # runs survive the server
  jackfield serve agent.yaml --stdio acp            # for an editor that starts this program
  jackfield serve agent.yaml --host 0.0.0.0 --token-file tokens.txt

A token file has one token per line, perhaps after the name of its owner and a
space. An owner sees its own runs only.
"""


def main(arguments: Sequence[str]) -> int:
    """Run `jackfield serve` until it is stopped.

    Raises:
        ConfigError: An agent, an address or another option is not valid.
        PluginError: A face is not installed, or cannot be loaded.
    """
    parser = make_parser()
    options = parser.parse_args(arguments)
    if options.faces:
        return _list_faces()
    if not options.agents:
        parser.error("name an agent: an agent file, or module:agent")
    from jackfield_serve.options import read_options
    from jackfield_serve.running import run_http, run_stdio

    chosen = read_options(options, words=arguments)
    return run_stdio(chosen, options.stdio) if options.stdio else run_http(chosen)


def describe(chosen: ServeOptions, url: str, agents: Sequence[str], paths: Sequence[tuple[str, str]]) -> None:
    """Print the addresses, what they expose, and to whom."""
    table = [(name, f"{url}{path}".rstrip("/") if path == "/" else f"{url}{path}") for name, path in paths]
    width = max(len(name) for name, _ in table)
    lines = [f"Serving {', '.join(agents)}"]
    lines += [f"  {name:{width}}  {address}" for name, address in table]
    if chosen.tokens:
        lines.append(f"  for the holders of the tokens in {chosen.token_file}")
    else:
        lines.append("  for every program on this machine; --token-file asks for a token")
    if chosen.store is None:
        lines.append("  Runs are kept in memory; --store sqlite keeps them on disk.")
    sys.stdout.write("\n".join(escape_line(line) for line in lines) + "\n")
    sys.stdout.flush()


def _list_faces() -> int:
    from jackfield.plugins import ServerSpec, default_host

    host = default_host()
    names = host.names("server")
    if not names:
        sys.stderr.write("no face is installed: pip install jackfield-openai-server\n")
        return 0
    print_table(["face", "summary"], [[name, host.spec("server", name, ServerSpec).summary] for name in names])
    return 0


def make_parser() -> Parser:
    """Return the parser of the command."""
    parser = Parser(prog="jackfield serve", description="Serve agents to clients.", epilog=_EPILOG)
    parser.add_argument(
        "agents", nargs="*", metavar="AGENT", help="an agent file, or module:agent; NAME=AGENT gives it another name"
    )
    parser.add_argument(
        "-p",
        "--param",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="the value of a variable {{ NAME }} in the agent files; can be repeated",
    )
    parser.add_argument("--trust", action="store_true", help="allow everything that the agent files ask for, this time")
    parser.add_argument(
        "--face",
        metavar="NAME",
        action="append",
        default=[],
        help="a face (openai, and web if installed), or JSON with its name and settings; can be repeated",
    )
    parser.add_argument("--faces", action="store_true", help="list the installed faces")
    parser.add_argument("--stdio", metavar="NAME", help="speak with one client over standard input, in this face")
    parser.add_argument("--host", default="127.0.0.1", help="the address to listen at (127.0.0.1)")
    parser.add_argument("--port", type=_port, default=8000, help="the port (8000); 0 takes a free one")
    parser.add_argument("--token-file", type=Path, metavar="FILE", help="the tokens that clients may use")
    parser.add_argument(
        "--allow-host",
        metavar="NAME",
        action="append",
        default=[],
        help="a name under which clients reach the server; can be repeated",
    )
    parser.add_argument("--store", metavar="NAME", help="the store of the runs, such as sqlite; in memory without one")
    parser.add_argument("--workers", type=_count, default=1, metavar="N", help="processes (1); more need a store")
    parser.add_argument("--max-body", type=_count, default=32, metavar="MB", help="the limit of a request (32)")
    parser.add_argument("--drain", type=_count, default=30, metavar="SECONDS", help="time to finish when stopped (30)")
    return parser


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError("a port is a number from 0 to 65535")
    return int(text)


def _count(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 1_000_000:
        raise argparse.ArgumentTypeError("expected a number of at least 1")
    return int(text)
