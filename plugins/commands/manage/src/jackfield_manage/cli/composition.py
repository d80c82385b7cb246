"""`jackfield plugins install`, `uninstall`, `freeze`, `sync`, `why` and `bisect`: which plugins are there.

None of them loads a plugin.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Collection, Iterator
from dataclasses import asdict
from itertools import filterfalse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jackfield.cli import print_json, printable
from jackfield.defaults import MANAGER
from jackfield.errors import ConfigError

if TYPE_CHECKING:
    from jackfield.plugins import Catalog

LOCK_NAME = "jackfield-plugins.lock"
_BISECT_TIMEOUT_S = 300.0


def add_commands(actions: Any) -> None:
    """Add these commands to the sub-parsers of `jackfield plugins`; each sets `handler`, which gives the exit code."""
    _add_install(actions)
    _add_uninstall(actions)
    freezing = actions.add_parser("freeze", help="write what is installed, and what may load, into a lock file")
    freezing.add_argument("-o", "--output", default=LOCK_NAME, metavar="FILE", help=f"{LOCK_NAME}; - for the terminal")
    freezing.set_defaults(handler=freeze)
    _add_sync(actions)
    explaining = actions.add_parser("why", help="why a plugin is installed, and which rule decides whether it may load")
    explaining.add_argument("name", help="a package, kind.name, package/name, or a component's name")
    explaining.add_argument("--json", action="store_true", help="as JSON")
    explaining.set_defaults(handler=why)
    _add_bisect(actions)


def _add_install(actions: Any) -> None:
    parser = actions.add_parser("install", help="install plugins with uv or pip")
    parser.add_argument("names", nargs="+", metavar="NAME", help="openai, jackfield-openai>=0.1, ./a.whl or ./folder")
    parser.add_argument("-U", "--upgrade", action="store_true", help="upgrade to the newest version")
    parser.add_argument(
        "--any", action="store_true", help="allow packages that are neither known nor named jackfield-NAME"
    )
    _add_sources(parser)
    parser.add_argument("--dry-run", action="store_true", help="only say what would be run")
    parser.set_defaults(handler=install)


def _add_uninstall(actions: Any) -> None:
    parser = actions.add_parser("uninstall", help="remove plugins, including broken ones")
    parser.add_argument(
        "names", nargs="+", metavar="NAME", help="a package, or a component that only one package offers"
    )
    parser.add_argument("--dry-run", action="store_true", help="only say what would be run")
    parser.set_defaults(handler=uninstall)


def _add_sync(actions: Any) -> None:
    parser = actions.add_parser(
        "sync", help="install and set what a lock file says; exit code 1 if something differs afterwards"
    )
    parser.add_argument("file", nargs="?", default=LOCK_NAME, metavar="FILE", help=LOCK_NAME)
    parser.add_argument("--exact", action="store_true", help="remove plugins that are not in the lock file")
    _add_sources(parser)
    parser.add_argument("--dry-run", action="store_true", help="only show what differs; exit code 1 if something does")
    parser.set_defaults(handler=sync)


def _add_bisect(actions: Any) -> None:
    usage = "jackfield plugins bisect [--timeout S] [--match TEXT] [--keep NAME] [-- COMMAND ...]"
    parser = actions.add_parser("bisect", usage=usage, help="find the plugins that make a command fail")
    parser.add_argument(
        "--timeout", type=seconds, default=_BISECT_TIMEOUT_S, metavar="S", help="for each run, in seconds (300)"
    )
    parser.add_argument(
        "--match", default="", metavar="TEXT", help="only a run whose output contains this text has failed"
    )
    parser.add_argument(
        "--keep", action="append", default=[], metavar="NAME", help="keep this plugin in every run; can be repeated"
    )
    parser.add_argument(
        "words",
        nargs=argparse.REMAINDER,
        metavar="COMMAND",
        help="the command and its arguments; without a command, you are asked",
    )
    parser.set_defaults(handler=bisect)


def _add_sources(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--find-links", action="append", default=[], metavar="DIR", help="also look for wheels here")
    parser.add_argument("--no-index", action="store_true", help="look for packages only there")


def seconds(text: str) -> float:
    """A time-out that somebody typed."""
    value = float(text)
    if not 0 < value < 1e9:
        raise argparse.ArgumentTypeError("a number of seconds above 0")
    return value


def install(options: argparse.Namespace) -> int:
    """Install plugins, say what they offer, and remember that somebody wanted those that were named."""
    from jackfield.plugins import PluginHost, scan
    from jackfield.settings import load_settings
    from jackfield_manage import packages
    from jackfield_manage.cli.newcomers import remember
    from jackfield_manage.distributions import installed
    from jackfield_manage.standings import remarks

    before = set(scan().rows)
    code = packages.install(
        options.names,
        sources=_sources(options),
        upgrade=options.upgrade,
        anything=options.any,
        dry_run=options.dry_run,
    )
    if code or options.dry_run:
        return _exit_code(code, "installed")
    host = PluginHost(load_settings())
    for row in filterfalse(before.__contains__, host.catalog.rows):
        warnings = "".join(map("; warning: it {}".format, remarks(row, host)))
        print(printable(f"{row.id}  ({row.distribution} {row.version}){warnings}"))
    wanted = [packages.requirement_of(text, anything=options.any) for text in options.names]
    remember(host, packages.names_of(wanted, installed()))
    return 0


def uninstall(options: argparse.Namespace) -> int:
    """Remove plugins."""
    from jackfield.plugins import scan
    from jackfield_manage import packages

    catalog = scan()
    going = {packages.installed_plugin(name, catalog) for name in options.names}
    for line in _lacking(going):
        sys.stderr.write(f"jackfield: {line}\n")
    code = packages.uninstall(options.names, catalog, dry_run=options.dry_run)
    if code:
        _tell_reasons(going, catalog)
    return _exit_code(code, "removed")


def _tell_reasons(staying: Collection[str], catalog: Catalog) -> None:
    """Say what is wrong with the metadata of distributions that an installer could not remove."""
    for problem in catalog.problems:
        if problem.distribution in staying:
            sys.stderr.write(
                f"jackfield: {problem.distribution} {printable(problem.text)}, which may be the reason; "
                f"use uv instead of pip, or remove it by hand: {problem.location}\n"
            )


def _lacking(going: Collection[str]) -> Iterator[str]:
    """What will be missing without some distributions, a line each."""
    from jackfield_manage.distributions import installed, required_by

    found = installed()
    staying = found.keys() - set(going)
    for name in sorted(going):
        left = sorted(staying.intersection(required_by(name, found)))
        if left:
            yield f"{', '.join(left)} requires {name}, which will be missing"
    if MANAGER in going:
        yield f"these commands are part of {MANAGER}. To get them back: pip install {MANAGER}"


def freeze(options: argparse.Namespace) -> int:
    """Write a lock."""
    from jackfield.settings import load_settings
    from jackfield_manage import lock, lockfile

    frozen = lock.freeze(load_settings())
    for note in frozen.notes:
        sys.stderr.write(f"jackfield: {printable(note)}\n")
    if options.output == "-":
        sys.stdout.write(lockfile.as_toml(frozen.lock))
        return 0
    path = Path(options.output)
    lockfile.write_lock(frozen.lock, path)
    print(f"{path}: {len(frozen.lock.plugins)} plugins, {len(frozen.lock.requirements)} requirements")
    return 0


def sync(options: argparse.Namespace) -> int:
    """Make what is installed and set what a lock says."""
    from jackfield.settings import load_settings
    from jackfield_manage.lockfile import read_lock
    from jackfield_manage.restore import sync as synchronise

    lock = read_lock(Path(options.file))
    different = synchronise(
        lock, load_settings, exact=options.exact, dry_run=options.dry_run, sources=_sources(options)
    )
    if not different:
        print(f"everything is as {options.file} says")
        return 0
    if not options.dry_run:
        sys.stderr.write("".join(f"jackfield: {printable(sentence)}\n" for sentence in different))
    return 1


def why(options: argparse.Namespace) -> int:
    """Explain a plugin."""
    from jackfield.settings import load_settings
    from jackfield_manage.why import why as explain

    explanations = explain(options.name, load_settings())
    if options.json:
        print_json([asdict(one) for one in explanations])
        return 0
    print("\n\n".join("\n".join(map(printable, one.lines())) for one in explanations))
    return 0


def bisect(options: argparse.Namespace) -> int:
    """Find the plugins that make a command fail; 1 if it is none of them."""
    from jackfield.settings import normalise
    from jackfield_manage import bisect as search

    loadable = _loadable()
    keep = list(map(normalise, options.keep))
    for name in filterfalse(loadable.__contains__, keep):
        raise ConfigError(f"--keep {name}: this is not a plugin that may load")
    words = options.words[1:] if options.words[:1] == ["--"] else options.words
    if words:
        fails = search.command_fails(words, keep=keep, plugins=loadable, match=options.match, timeout_s=options.timeout)
    else:
        fails = search.asked_fails(keep=keep)
    result = search.bisect(list(filterfalse(keep.__contains__, loadable)), fails)
    print(result.sentence())
    return 0 if result.culprits else 1


def _loadable() -> list[str]:
    """The distributions that may be the cause of something."""
    from jackfield.plugins import PluginHost

    host = PluginHost()
    if host.settings.safe:
        raise ConfigError("no plugin loads in safe mode (JACKFIELD_SAFE), so there is nothing to look for")
    # The manager is there in every run: a command of its own would fail without it, and look like a cause.
    return list(dict.fromkeys(row.distribution for row in host.rows() if row.distribution != MANAGER))


def _sources(options: argparse.Namespace) -> Any:
    from jackfield_manage.packages import Sources

    return Sources(tuple(options.find_links), no_index=options.no_index)


def _exit_code(code: int, done: str) -> int:
    """1 for any failure of the installer, with a line of ours below what it said."""
    if code:
        sys.stderr.write(f"jackfield: the installer ended with code {code}, and nothing was {done}; see above\n")
    return 1 if code else 0
