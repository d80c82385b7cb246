"""The `jackfield` command line: find a command, run it, and report errors in one clear line."""

from __future__ import annotations

import argparse
import errno
import gc
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from jackfield.cli._parser import Parser
from jackfield.cli._terminal import escape_line, guard_output, unguard_output
from jackfield.defaults import MANAGER, TERMINAL, TERMINAL_COMMANDS
from jackfield.errors import (
    BrokenPluginError,
    ConfigError,
    ConsentNeededError,
    JackfieldError,
    PluginBlockedError,
    PluginNotFoundError,
)
from jackfield.suggestions import close_names, list_names
from jackfield.version import __version__

if TYPE_CHECKING:
    from jackfield.plugins._catalog import Row
    from jackfield.plugins._host import PluginHost


_FULL = (errno.ENOSPC, errno.EDQUOT)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code: 0 for success, 1 for failure, 2 for wrong usage, 130 if interrupted."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    return run_command(lambda: _run(words))


def run_command(command: Callable[[], int]) -> int:
    """Run a function as a command with terminal-safe output. Errors are reported in one line with an exit code."""
    with guard_output():
        try:
            try:
                return command()
            finally:
                sys.stdout.flush()  # flush now, because an error at interpreter exit would not be handled
        except ConsentNeededError as error:
            sys.stderr.write("jackfield: " + "".join(f"{escape_line(line)}\n" for line in error.lines))
            return 1
        except JackfieldError as error:
            sys.stderr.write(f"jackfield: {escape_line(str(error))}\n")
            return 1
        except KeyboardInterrupt:
            sys.stderr.write("\n")
            return 130
        except BrokenPipeError:  # the reader of the output is gone
            _discard_output()
            return 1
        except OSError as error:
            if error.errno not in _FULL:
                raise
            _discard_output()
            sys.stderr.write(f"jackfield: {error.strerror}: free some space and try again\n")
            return 1


def _discard_output() -> None:
    """Discard any further output, including the flush at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run(words: list[str]) -> int:
    rest, blocked = _apply_policy_flags(words)
    command = rest[0] if rest and not rest[0].startswith("-") else ""
    if command and blocked:
        _report_unknown(blocked)
    if command and not _is_own(rest):
        return _run_plugin_command(command, rest[1:])
    return _run_own_command(rest)


def _run_own_command(words: Sequence[str]) -> int:
    parser = _parser(words)
    options = parser.parse_args(words)
    if not options.command:
        parser.print_help()
        return 0
    from jackfield.plugins._host import default_host

    _show_news(default_host())
    handler: Callable[[argparse.Namespace], int] = options.handler
    collects = gc.isenabled()
    gc.disable()  # a list creates thousands of values but no garbage, and collection would take a tenth of the time
    try:
        return handler(options)
    finally:
        if collects:
            gc.enable()


def _is_own(words: Sequence[str]) -> bool:
    """Return True for the core's only command, which lists the plugins."""
    options = {word.partition("=")[0] for word in words if word.startswith("-")}
    return words[0] == "plugins" and words[1:2] in ([], ["list"]) and options <= {"--kind", "--json"}


def _apply_policy_flags(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Move the flags that precede the command into the environment so that child processes inherit them.

    Returns:
        The remaining words, and the names passed with `--block`.
    """
    rest = list(words)
    blocked: list[str] = []
    while rest:
        flag, equals, value = rest[0].partition("=")
        if rest[0] in _SWITCHES:
            os.environ.update(_SWITCHES[rest.pop(0)])
        elif flag in _LISTS:
            rest[:1] = [value] if equals else []
            if not rest:
                raise ConfigError(f"{flag} needs a value: names separated by commas")
            # --block adds to the environment; --plugins replaces it.
            before = os.environ.get(_LISTS[flag]) if flag == "--block" else None
            names = rest.pop(0)
            os.environ[_LISTS[flag]] = f"{before},{names}" if before else names
            blocked += names.split(",") if flag == "--block" else []
        else:
            break
    return rest, blocked


def _report_unknown(blocked: Sequence[str]) -> None:
    """Report `--block` names that match no installed plugin, because a misspelt name blocks nothing.

    Raises:
        ConfigError: A name matches nothing and the settings are strict.
    """
    from jackfield.plugins._host import default_host

    host = default_host()
    for name in filter(None, map(str.strip, blocked)):
        if reason := host.policy.unmatched(name):
            text = f"--block {name!r:.200} {reason}"
            if host.settings.strict:
                raise ConfigError(text)
            sys.stderr.write(f"jackfield: {escape_line(text)}\n")


def _show_news(host: PluginHost) -> None:
    """Let the manager announce new plugins in the terminal if it is installed."""
    # Output to a pipe must not pay for the lookup.
    row = _find_managers_command(_NEWS, host) if sys.stderr.isatty() else None
    # The user did not name the manager, so it must be proven to be ours.
    if row is None or host.policy.why_not(row) or host.policy.unproven(row):
        return
    try:
        _call(row, [], host)
    except BrokenPluginError as error:
        if host.settings.strict:
            raise
        sys.stderr.write(f"jackfield: {escape_line(str(error))}\n")


def _find_managers_command(command: str, host: PluginHost) -> Row | None:
    for row in host.catalog.named("command", command):
        if row.distribution == MANAGER:
            return row
    return None


def _run_plugin_command(command: str, arguments: Sequence[str]) -> int:
    from jackfield.plugins._host import default_host
    from jackfield.plugins._known import known_distribution

    host = default_host()
    if known_distribution("command", command) == MANAGER:
        return _run_manager(command, arguments, host)
    if {"-h", "--help"}.isdisjoint(arguments):  # the announcement may ask a question
        _show_news(host)
    try:
        row = host.find("command", command)
    except PluginNotFoundError:
        raise ConfigError(_absence(command, host.names("command"))) from None
    return _call(row, arguments, host)


def _run_manager(command: str, arguments: Sequence[str], host: PluginHost) -> int:
    """Run one of the manager's commands.

    Other packages cannot take the names of these commands, because error messages refer to them.

    The manager itself announces new plugins after it has parsed the command.
    """
    row = _find_managers_command(command, host)
    if row is None:
        return _run_without_manager(command, arguments, host)
    if doubt := host.policy.unproven(row):
        raise PluginBlockedError(
            f"{MANAGER} {doubt}, so it is not trusted to manage this installation: "
            f"pip install --force-reinstall {MANAGER}. To run it anyway, use: jackfield {row.address}"
        )
    return _call(host.find("command", row.address), arguments, host)


def _run_without_manager(command: str, arguments: Sequence[str], host: PluginHost) -> int:
    if command == "plugins" and not {"-h", "--help"}.isdisjoint(arguments):
        return _run_own_command(["plugins", *(word for word in arguments[:1] if word == "list"), "--help"])
    typed = " ".join(["jackfield", command, *(arguments[:2] if command == "plugins" else ())])
    raise ConfigError(
        f"{typed!r:.200} is not part of the core: commands that manage an installation are provided by {MANAGER}. "
        f"To install it, run: pip install {MANAGER}{_same_name(command, host)}"
    )


def _same_name(command: str, host: PluginHost) -> str:
    others = [f"jackfield {row.address}" for row in host.policy.rows("command") if row.name == command]
    return f". Another package provides a command with the same name: {', '.join(others)}" if others else ""


def _call(row: Row, arguments: Sequence[str], host: PluginHost) -> int:
    handler = host.load_row(row)
    try:
        # The manager prints third-party metadata. Other plugins may draw on the terminal.
        with nullcontext() if row.distribution == MANAGER else unguard_output():
            code = handler(list(arguments))
    except (JackfieldError, BrokenPipeError):
        raise
    except Exception as error:
        if isinstance(error, FileNotFoundError) and _is_folder_gone():
            raise ConfigError("the working directory was deleted: change to another directory and try again") from error
        if host.settings.trace or (isinstance(error, OSError) and error.errno in _FULL):
            raise
        from jackfield.plugins._misfits import explain_error  # only needed for errors

        cause = f"{type(error).__name__}: {error}"
        if (explained := explain_error(error)) is not error:
            raise explained  # noqa: B904 - with the error as its cause
        raise BrokenPluginError(
            f"{row.name}: the plugin failed ({cause}). Report this to the plugin's authors; for a traceback, run: "
            f"jackfield --trace {row.name} …"
        ) from error
    return code if isinstance(code, int) else 0


def _is_folder_gone() -> bool:
    try:
        Path.cwd()
    except FileNotFoundError:
        return True
    return False


def _absence(command: str, names: Sequence[str]) -> str:
    from jackfield.plugins._known import install_hint

    if command in TERMINAL_COMMANDS:
        return f"'jackfield {command}' is not part of the core. To install it, run: pip install {TERMINAL}"
    hint = install_hint("command", command)
    return f"unknown command {command!r}{hint or _suggest_commands(command, names)}"


def _suggest_commands(word: str, installed: Sequence[str]) -> str:
    """Return the end of an error message: the full commands that a word may mean, or all installed commands."""
    from jackfield.plugins._known import known_commands

    names = dict.fromkeys(["plugins", *TERMINAL_COMMANDS, *installed])
    typed = {**{name: [name] for name in names}, **known_commands()}
    meant = typed.get(word) or [command for near in close_names(word, typed) for command in typed[near]][:3]
    spelled = [repr(f"jackfield {command}") for command in meant]
    return f"; did you mean {' or '.join(spelled)}?" if spelled else f"; known: {list_names(names)}"


_NEWS = "news"
_SWITCHES = {
    "--no-plugins": {"JACKFIELD_SAFE": "1"},
    "--strict": {"JACKFIELD_PLUGINS_STRICT": "1"},
    "--trace": {"JACKFIELD_PLUGINS_TRACE": "1"},
}
_LISTS = {"--plugins": "JACKFIELD_PLUGINS", "--block": "JACKFIELD_PLUGINS_BLOCK"}


def _parser(words: Sequence[str]) -> Parser:
    """Return the parser for a command line.

    Only the current command's options are added, because adding them takes time.
    """
    parser = Parser(
        prog="jackfield",
        description="A panel of sockets for LLM agents.",
        epilog=f"{' and '.join(TERMINAL_COMMANDS)} are provided by {TERMINAL}. Plugins can add commands.",
    )
    parser.add_argument("--version", action="version", version=f"jackfield {__version__}")
    policy = parser.add_argument_group(
        "which plugins may load (put these before the command; they override the environment and files)"
    )
    policy.add_argument("--plugins", metavar="A,B", help="load only these packages")
    policy.add_argument("--block", metavar="A,B", help="never load these")
    policy.add_argument("--no-plugins", action="store_true", help="load no plugins at all")
    policy.add_argument("--strict", action="store_true", help="treat any problem with a plugin as an error")
    policy.add_argument("--trace", action="store_true", help="report each loaded plugin and its load time")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=Parser)
    if words[:1] == ["plugins"]:
        _add_plugin_actions(commands.add_parser("plugins"))
        return parser
    for name, help_ in TERMINAL_COMMANDS.items():
        commands.add_parser(name, help=help_)  # listed only for the help, because a plugin runs them
    commands.add_parser("plugins", help="list installed plugins and whether they may load")
    if not words or words[0] in ("-h", "--help"):
        for name, help_ in _other_commands():
            commands.add_parser(name, help=help_)  # listed only for the help
    return parser


def _other_commands() -> list[tuple[str, str]]:
    """Return the names and summaries of all other installed commands without loading any of them."""
    from jackfield.plugins._host import default_host
    from jackfield.plugins._known import known_components

    known = known_components()
    names = sorted({row.name for row in default_host().catalog.rows if row.kind == "command" and not row.is_source})
    own = {"plugins", *TERMINAL_COMMANDS}
    summaries = [(name, known.get(f"command.{name}")) for name in names if name not in own]
    return [
        (escape_line(name), _help_line(component.summary) if component else "of another package")
        for name, component in summaries
    ]


def _help_line(summary: str) -> str:
    """Return a summary in the style of argparse's help: lower case, no full stop, no format fields."""
    return f"{summary[:1].lower()}{summary[1:].rstrip('.')}".replace("%", "%%")


def _add_plugin_actions(parser: argparse.ArgumentParser) -> None:
    from jackfield.cli._plugins import add_list_options, list_plugins

    parser.epilog = f"All other plugin commands are provided by {MANAGER}:\n  pip install {MANAGER}"
    parser.set_defaults(handler=list_plugins, kind=None, json=False)
    listing = parser.add_subparsers(metavar="ACTION", parser_class=Parser).add_parser("list", help="list all plugins")
    add_list_options(listing)
