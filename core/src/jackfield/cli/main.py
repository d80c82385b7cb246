"""`jackfield`: find the command, run it, and turn errors into one clear line."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import NoReturn

from jackfield import __version__
from jackfield.errors import ConfigError, JackfieldError

USAGE_ERROR = 2


class _Parser(argparse.ArgumentParser):
    """Says what is wrong before how it would be right."""

    def error(self, message: str) -> NoReturn:
        sys.stderr.write(f"{self.prog}: {message}\nTry: {self.prog} --help\n")
        raise SystemExit(USAGE_ERROR)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code: 0 done, 1 failed, 2 used wrongly, 130 interrupted."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        return _run(given)
    except JackfieldError as error:
        sys.stderr.write(f"jackfield: {error}\n")
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("\n")
        return 130
    except BrokenPipeError:
        sys.stderr.close()  # whoever read us has gone: there is nobody left to tell
        return 1


def _run(given: list[str]) -> int:
    command = next((word for word in given if not word.startswith("-")), "")
    if command and command not in _OWN_COMMANDS:
        return _run_plugin_command(command, given)
    options = _parser().parse_args(given)
    if options.command == "plugins":
        from jackfield.cli import plugins

        return plugins.run(options)
    if options.command in ("run", "chat"):
        from jackfield.cli import agent

        return agent.chat(options) if options.command == "chat" else agent.run(options)
    _parser().print_help()
    return 0


def _run_plugin_command(command: str, given: list[str]) -> int:
    from jackfield.plugins.host import default_host
    from jackfield.settings import closest

    host = default_host()
    commands = host.names("command")
    if command not in commands and "/" not in command:
        raise ConfigError(f"there is no command {command!r}{closest(command, [*_OWN_COMMANDS, *commands])}")
    handler = host.load("command", command)
    return int(handler(given[given.index(command) + 1 :]))


_OWN_COMMANDS = ("run", "chat", "plugins")


def _parser() -> _Parser:
    parser = _Parser(prog="jackfield", description="A panel of sockets for LLM agents.")
    parser.add_argument("--version", action="version", version=f"jackfield {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=_Parser)
    _add_agent_options(commands.add_parser("run", help="ask an agent one thing"), one_prompt=True)
    _add_agent_options(commands.add_parser("chat", help="talk with an agent"), one_prompt=False)
    plugins = commands.add_parser("plugins", help="what is installed, and whether it works")
    plugins.set_defaults(action="list", long=False, json=False)
    actions = plugins.add_subparsers(dest="action", metavar="ACTION", parser_class=_Parser)
    listing = actions.add_parser("list", help="all plugins; none is loaded (but with --long)")
    listing.add_argument("--long", action="store_true", help="with a line about each")
    listing.add_argument("--json", action="store_true", help="as JSON")
    info = actions.add_parser("info", help="all about one distribution or component")
    info.add_argument("name", help="a distribution, kind.name, or a component's name")
    info.add_argument("--json", action="store_true", help="as JSON")
    doctor = actions.add_parser("doctor", help="load each plugin in a process of its own, and say what is wrong")
    doctor.add_argument("--deep", action="store_true", help="import all they need, too")
    doctor.add_argument("--json", action="store_true", help="as JSON")
    return parser


def _add_agent_options(parser: argparse.ArgumentParser, *, one_prompt: bool) -> None:
    if one_prompt:
        parser.add_argument("prompt", help="what to ask; - reads it from standard input")
        parser.add_argument("--json", action="store_true", help="print every event as a line of JSON")
    parser.add_argument("-m", "--model", help="backend:model; or set JACKFIELD_MODEL")
    parser.add_argument("--base-url", help="the address of the model's server")
    parser.add_argument("-a", "--agent", help="the kind of agent; assistant if there are files, else fncall")
    parser.add_argument("-t", "--tool", action="append", default=[], help="a tool it may call; repeat for more")
    parser.add_argument("-f", "--file", action="append", default=[], help="a document it knows; repeat for more")
    parser.add_argument("-s", "--system", default="", help="the system message")
    parser.add_argument("--max-turns", type=int, default=20, help="how often the model is asked at most (20)")
    parser.add_argument("--lang", choices=("en", "zh"), help="of the texts the agent adds")
