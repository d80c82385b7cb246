"""Define the options of `jackfield serve`."""

from __future__ import annotations

import argparse
from pathlib import Path

from jackfield.cli import Parser
from jackfield.servers import FaceCommand

_EXAMPLES = """\
  jackfield serve agent.yaml                        # http://127.0.0.1:8000/v1 for any OpenAI client
  jackfield serve support=a.yaml shop.agents:buyer  # two agents, `support` and `buyer`
  jackfield serve agent.yaml --store sqlite         # runs survive a restart
  jackfield serve agent.yaml --stdio acp            # for an editor that starts this program
  jackfield serve agent.yaml --host 0.0.0.0 --token-file tokens.txt
"""
_TOKENS = """
A token file contains one token per line, optionally preceded by the name of its
owner and a space. Owners can see only their own runs.
"""


def make_parser(command: FaceCommand | None = None) -> Parser:
    """Return the argument parser of `jackfield serve`, or of a command that serves a single face."""
    parser = Parser(
        prog=command.name if command else "jackfield serve",
        description=command.description if command else "Serve agents to clients.",
        epilog=f"examples:\n{command.examples if command else _EXAMPLES}{_TOKENS}",
    )
    parser.add_argument(
        "agents", nargs="*", metavar="AGENT", help="agent file or module:agent; use NAME=AGENT to set the agent's name"
    )
    parser.add_argument(
        "-p",
        "--param",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="value of the variable {{ NAME }} in agent files; can be repeated",
    )
    parser.add_argument(
        "--trust", action="store_true", help="allow everything that the agent files request, this time only"
    )
    if command:
        parser.set_defaults(face=[command.face], faces=False, stdio=None)
    else:
        _add_face_options(parser)
    parser.add_argument(
        "--no-browser",
        dest="browser",
        action="store_false",
        default=command is not None,
        # Workers parse every command's arguments with the parser of `jackfield serve`.
        help="do not open a browser" if command else argparse.SUPPRESS,
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (127.0.0.1)")
    parser.add_argument("--port", type=_port, default=8000, help="port to listen on (8000); 0 selects a free port")
    parser.add_argument("--token-file", type=Path, metavar="FILE", help="file with the tokens that clients may use")
    parser.add_argument(
        "--allow-host",
        metavar="NAME",
        action="append",
        default=[],
        help="host name by which clients reach the server; can be repeated",
    )
    parser.add_argument("--store", metavar="NAME", help="store for runs, such as sqlite (default: memory)")
    parser.add_argument(
        "--workers", type=_count, default=1, metavar="N", help="number of processes (1); several require --store"
    )
    parser.add_argument(
        "--runs",
        type=_count,
        default=500,
        metavar="N",
        help="number of concurrent runs per process (500); further runs wait",
    )
    parser.add_argument("--max-body", type=_count, default=32, metavar="MB", help="maximum size of a request body (32)")
    parser.add_argument(
        "--drain", type=_count, default=30, metavar="SECONDS", help="time for active runs to finish on shutdown (30)"
    )
    return parser


def _add_face_options(parser: Parser) -> None:
    parser.add_argument(
        "--face",
        metavar="NAME",
        action="append",
        default=[],
        help="face to serve, as a name or as JSON with name and settings (openai, and web if installed); can "
        "be repeated",
    )
    parser.add_argument("--faces", action="store_true", help="list installed faces")
    parser.add_argument("--stdio", metavar="NAME", help="serve one client over standard input with this face")


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError("must be a number from 0 to 65535")
    return int(text)


def _count(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 1_000_000:
        raise argparse.ArgumentTypeError("must be a number from 1 to 1000000")
    return int(text)
