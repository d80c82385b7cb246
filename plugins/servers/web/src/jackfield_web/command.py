"""`jackfield web`: talk to agents on a web page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from jackfield.plugins import default_host
from jackfield.servers import FaceCommand, ServeCommand

if TYPE_CHECKING:
    from jackfield.agents import Agent

_EXAMPLES = """\
  jackfield web                            # a demonstration: two documents, an offline model, no key
  jackfield web agent.yaml                 # your agent
  jackfield web agent.yaml --store sqlite  # conversations survive a restart
  jackfield web agent.yaml --host 0.0.0.0 --token-file tokens.txt
"""


def main(arguments: Sequence[str], *, agents: Mapping[str, Agent] | None = None) -> int:
    """Run `jackfield web` until it is stopped. `agents` are served if the command line names none.

    Raises:
        ConfigError: An agent, an address or another option is invalid.
        PluginError: A package needed by the demo is not installed.
    """
    host = default_host()
    serve: ServeCommand = host.load_row(host.find("command", "serve"))
    command = FaceCommand(
        name="jackfield web",
        face="web",
        description="Talk to agents on a web page. Without an agent, a demonstration starts.",
        examples=_EXAMPLES,
        agents=_make_demo if agents is None else lambda: agents,
    )
    return serve(arguments, command)


def _make_demo() -> dict[str, Agent]:
    from jackfield_web.demo import make_demo

    return make_demo()
