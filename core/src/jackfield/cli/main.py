"""`jackfield`: find the command, run it, and turn errors into one clear line."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import NoReturn

from jackfield.cli.terminal import guarded, shown_name, unguarded
from jackfield.errors import BrokenPluginError, ConfigError, JackfieldError, PluginNotFoundError
from jackfield.settings import load_settings
from jackfield.version import __version__

USAGE_ERROR = 2


class _Parser(argparse.ArgumentParser):
    """Says what is wrong before how it would be right."""

    def error(self, message: str) -> NoReturn:
        sys.stderr.write(f"{self.prog}: {shown_name(message)}\nTry: {self.prog} --help\n")
        raise SystemExit(USAGE_ERROR)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code: 0 done, 1 failed, 2 used wrongly, 130 interrupted."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    with guarded():
        return _exit_code(given)


def _exit_code(given: list[str]) -> int:
    try:
        try:
            return _run(given)
        finally:
            sys.stdout.flush()  # here, and not at the exit of the interpreter, where an error has nobody to handle it
    except JackfieldError as error:
        sys.stderr.write(f"jackfield: {shown_name(str(error))}\n")
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("\n")
        return 130
    except BrokenPipeError:
        # Whoever read us has gone. What is still to be written goes nowhere, the exit's own attempt included.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _run(given: list[str]) -> int:
    rest = _apply_policy_flags(given)
    command = rest[0] if rest and not rest[0].startswith("-") else ""
    if command and command not in _OWN_COMMANDS:
        return _run_plugin_command(command, rest[1:])
    options = _parser().parse_args(rest)
    if not options.command:
        _parser().print_help()
        return 0
    if options.command != "trust" and (options.command != "plugins" or options.action not in _MANAGING):
        _greet()
    handler: Callable[[argparse.Namespace], int] = options.handler
    return handler(options)


def _apply_policy_flags(given: Sequence[str]) -> list[str]:
    """Take the flags before the command, which win over the environment: they become it, for child processes, too."""
    rest = list(given)
    while rest:
        flag, equals, value = rest[0].partition("=")
        if flag in _SWITCHES and not equals:
            name, text = _SWITCHES[flag]
        elif flag in _LISTS:
            if not equals:
                if len(rest) < 2:
                    raise ConfigError(f"{flag} needs a value: names, separated by commas")
                value = rest.pop(1)
            name = _LISTS[flag]
            # A deny is added to what is denied already; an allow-list is what it says.
            before = os.environ.get(name, "") if flag == "--block" else ""
            text = f"{before},{value}" if before else value
        else:
            break
        os.environ[name] = text
        rest.pop(0)
    return rest


def _greet() -> None:
    # Nobody there, nothing to say: a pipe must not pay for looking.
    if sys.stderr.isatty():
        from jackfield.cli.newcomers import greet
        from jackfield.plugins.host import default_host

        if greet(default_host()):
            default_host().refresh(load_settings())


def _run_plugin_command(command: str, arguments: list[str]) -> int:
    from jackfield.plugins.host import default_host
    from jackfield.plugins.known import install_hint
    from jackfield.settings import closest

    _greet()
    host = default_host()
    try:
        handler = host.load("command", command)
    except PluginNotFoundError:
        hint = closest(command, [*_OWN_COMMANDS, *host.names("command")])
        raise ConfigError(f"there is no command {command!r}{hint}{install_hint('command', command)}") from None
    try:
        with unguarded():
            code = handler(arguments)
    except (JackfieldError, BrokenPipeError):
        raise
    except Exception as error:
        if host.settings.trace:
            raise
        cause = f"{type(error).__name__}: {error}"
        raise BrokenPluginError(
            f"{command}: its plugin failed ({cause}). Tell its authors; jackfield --trace {command} … shows where"
        ) from error
    return code if isinstance(code, int) else 0


_OWN_COMMANDS = ("run", "chat", "pipeline", "requirements", "trust", "plugins")
# These say or change what is there and what may load: a question in between would get into what they find.
_MANAGING = ("install", "uninstall", "enable", "disable", "freeze", "sync", "why", "bisect")
_SWITCHES = {
    "--no-plugins": ("JACKFIELD_SAFE", "1"),
    "--strict": ("JACKFIELD_PLUGINS_STRICT", "1"),
    "--trace": ("JACKFIELD_PLUGINS_TRACE", "1"),
}
_LISTS = {"--plugins": "JACKFIELD_PLUGINS", "--block": "JACKFIELD_PLUGINS_BLOCK"}


def _parser() -> _Parser:
    parser = _Parser(
        prog="jackfield",
        description="A panel of sockets for LLM agents.",
        epilog="Plugins add commands of their own; `jackfield plugins list` has them.",
    )
    parser.add_argument("--version", action="version", version=f"jackfield {__version__}")
    policy = parser.add_argument_group("which plugins may load (before the command; over environment and files)")
    policy.add_argument("--plugins", metavar="A,B", help="only these distributions")
    policy.add_argument("--block", metavar="A,B", help="never these")
    policy.add_argument("--no-plugins", action="store_true", help="none at all")
    policy.add_argument("--strict", action="store_true", help="any problem with a plugin is an error")
    policy.add_argument("--trace", action="store_true", help="tell every load, with its time")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=_Parser)
    _add_agent_options(commands.add_parser("run", help="ask an agent one thing"), one_prompt=True)
    _add_agent_options(commands.add_parser("chat", help="talk with an agent"), one_prompt=False)
    pipeline = commands.add_parser(
        "pipeline", help="show the processors around an agent's model, and why in this order"
    )
    pipeline.add_argument("agent_file", nargs="?", metavar="AGENT", help="an agent, as a YAML, TOML or JSON file")
    pipeline.add_argument("-m", "--model", help="backend:model, in place of an agent")
    pipeline.add_argument("--json", action="store_true", help="as JSON")
    pipeline.set_defaults(handler=_lazily("chains", "pipeline"))
    needs = commands.add_parser("requirements", help="list the distributions that an agent needs, for pip install -r")
    needs.add_argument(
        "agent_file", metavar="AGENT", help="an agent as a YAML, TOML or JSON file, or a .py that makes one"
    )
    needs.add_argument("--pin", action="store_true", help="at the versions that are installed")
    needs.set_defaults(handler=_lazily("chains", "requirements"))
    trusting = commands.add_parser("trust", help="let a project's file do more than forbid, after it was shown")
    _add_trust_options(trusting)
    plugins = commands.add_parser("plugins", help="what is installed, whether it works, and what may load")
    from jackfield.cli import plugins as plugin_commands

    plugin_commands.add_commands(plugins, _Parser)
    return parser


def _lazily(module: str, function: str) -> Callable[[argparse.Namespace], int]:
    """A handler whose module is imported when it is called."""

    def handler(options: argparse.Namespace) -> int:
        return int(getattr(import_module(f"jackfield.cli.{module}"), function)(options))

    return handler


def _add_trust_options(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(handler=_lazily("trust", "trust"))
    parser.add_argument("folder", nargs="?", default=".", help="a folder of the project; this one if left out")
    action = parser.add_mutually_exclusive_group()
    action.add_argument("--yes", action="store_true", help="agree without being asked, for scripts")
    action.add_argument("--show", action="store_true", help="only show it; 1 if something in it does not count")
    action.add_argument("--revoke", action="store_true", help="take back what was agreed to")
    action.add_argument("--list", action="store_true", help="list all projects that were agreed to")


def _add_agent_options(parser: argparse.ArgumentParser, *, one_prompt: bool) -> None:
    parser.set_defaults(handler=_lazily("agent", "run" if one_prompt else "chat"))
    parser.add_argument("-c", "--config", metavar="FILE", help="an agent, as a YAML, TOML or JSON file")
    if one_prompt:
        parser.add_argument("prompt", nargs="?", help="what to ask; - reads it from standard input")
        parser.add_argument("--json", action="store_true", help="print every event as a line of JSON")
        parser.add_argument("--save", metavar="FILE", help="write the conversation here, to go on with it later")
        parser.add_argument("--resume", metavar="FILE", help="go on with a saved conversation, in place of a prompt")
        answer = parser.add_mutually_exclusive_group()
        answer.add_argument("--approve", action="store_true", help="with --resume: yes to the calls that wait there")
        answer.add_argument("--refuse", action="store_true", help="with --resume: no to them")
    parser.add_argument("-m", "--model", help="backend:model; or set JACKFIELD_MODEL")
    parser.add_argument("--base-url", help="the address of the model's server")
    parser.add_argument("-a", "--agent", help="the kind of agent; assistant if there are files, else fncall")
    parser.add_argument("-t", "--tool", action="append", default=[], help="a tool it may call; repeat for more")
    parser.add_argument("-f", "--file", action="append", default=[], help="a document it knows; repeat for more")
    parser.add_argument("-s", "--system", help="the system message")
    parser.add_argument("--max-turns", type=int, help="how often the model is asked at most (20)")
    parser.add_argument("--lang", choices=("en", "zh"), help="of the texts the agent adds")
