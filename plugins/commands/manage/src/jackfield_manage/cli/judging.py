"""`jackfield plugins why` and `bisect`: explain why a plugin is installed, and find the one that breaks a command.

Neither command loads a plugin.
"""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import Any

from jackfield.cli import escape_line, print_json
from jackfield.defaults import MANAGER
from jackfield.errors import ConfigError

_BISECT_TIMEOUT_S = 300.0


def add_commands(actions: Any) -> None:
    """Add these commands to the subparsers of `jackfield plugins`. Each sets a `handler` that returns an exit code."""
    explaining = actions.add_parser(
        "why", help="explain why a plugin is installed, and which rule decides whether it may load"
    )
    explaining.add_argument("name", help="a package, kind.name, package/name, or a component's name")
    explaining.add_argument("--json", action="store_true", help="print JSON")
    explaining.set_defaults(handler=why)
    _add_bisect(actions)


def _add_bisect(actions: Any) -> None:
    usage = "jackfield plugins bisect [--timeout S] [--match TEXT] [--keep NAME] [-- COMMAND ...]"
    parser = actions.add_parser("bisect", usage=usage, help="find the plugins that make a command fail")
    parser.add_argument(
        "--timeout",
        type=seconds,
        default=_BISECT_TIMEOUT_S,
        metavar="S",
        help="time limit for each run, in seconds (default: 300)",
    )
    parser.add_argument(
        "--match", default="", metavar="TEXT", help="count a run as failed only if its output contains this text"
    )
    parser.add_argument(
        "--keep", action="append", default=[], metavar="NAME", help="include this plugin in every run; can be repeated"
    )
    parser.add_argument(
        "words",
        nargs=argparse.REMAINDER,
        metavar="COMMAND",
        help="the command and its arguments; if omitted, you are asked for the result of each run",
    )
    parser.set_defaults(handler=bisect)


def seconds(text: str) -> float:
    """Parse a timeout in seconds."""
    value = float(text)
    if not 0 < value < 1e9:
        raise argparse.ArgumentTypeError("must be a positive number of seconds")
    return value


def why(options: argparse.Namespace) -> int:
    """Explain a plugin."""
    from jackfield.settings import load_settings
    from jackfield_manage.judging.why import why as explain

    explanations = explain(options.name, load_settings())
    if options.json:
        print_json([asdict(explanation) for explanation in explanations])
        return 0
    paragraphs = ["\n".join(escape_line(line) for line in explanation.lines()) for explanation in explanations]
    print("\n\n".join(paragraphs))
    return 0


def bisect(options: argparse.Namespace) -> int:
    """Find the plugins that make a command fail; return 1 if no plugin does."""
    from jackfield.settings import normalise
    from jackfield_manage.judging.bisect import ask_if_fails, command_fails
    from jackfield_manage.judging.bisect import bisect as search

    loadable = _loadable_distributions()
    keep = [normalise(name) for name in options.keep]
    for name in keep:
        if name not in loadable:
            raise ConfigError(f"--keep {name}: the plugin is not installed, or is not allowed to load")
    words = options.words[1:] if options.words[:1] == ["--"] else options.words
    if words:
        fails = command_fails(words, keep=keep, plugins=loadable, match=options.match, timeout_s=options.timeout)
    else:
        fails = ask_if_fails(keep=keep)
    result = search([name for name in loadable if name not in keep], fails)
    print(result.sentence())
    return 0 if result.culprits else 1


def _loadable_distributions() -> list[str]:
    """Return the distributions that could cause a failure."""
    from jackfield.plugins import PluginHost

    host = PluginHost()
    if host.settings.safe:
        raise ConfigError("no plugins load in safe mode (JACKFIELD_SAFE), so there is nothing to bisect")
    # The manager is part of every run: without it, its own commands would fail and it would look like a cause.
    return list(dict.fromkeys(row.distribution for row in host.policy.rows() if row.distribution != MANAGER))
