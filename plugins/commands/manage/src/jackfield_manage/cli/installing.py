"""`jackfield plugins install`, `uninstall`, `freeze` and `sync`: change which plugins are installed.

None of these commands loads a plugin.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jackfield.cli import escape_line
from jackfield.defaults import MANAGER
from jackfield.plurals import format_count

if TYPE_CHECKING:
    from jackfield.plugins import Catalog
    from jackfield_manage.installing.installers import Sources

LOCK_NAME = "jackfield-plugins.lock"


def add_commands(actions: Any) -> None:
    """Add these commands to the subparsers of `jackfield plugins`. Each sets a `handler` that returns an exit code."""
    _add_install(actions)
    _add_uninstall(actions)
    freezing = actions.add_parser(
        "freeze", help="write a lock file with the installed plugins and the rules for loading them"
    )
    freezing.add_argument(
        "-o",
        "--output",
        default=LOCK_NAME,
        metavar="FILE",
        help=f"lock file (default: {LOCK_NAME}); - for standard output",
    )
    freezing.set_defaults(handler=freeze)
    _add_sync(actions)


def _add_install(actions: Any) -> None:
    parser = actions.add_parser("install", help="install plugins with uv or pip")
    parser.add_argument("names", nargs="+", metavar="NAME", help="openai, jackfield-openai>=0.1, ./a.whl or ./folder")
    parser.add_argument("-U", "--upgrade", action="store_true", help="upgrade to the newest version")
    parser.add_argument(
        "--any", action="store_true", help="allow packages that are neither known nor named jackfield-NAME"
    )
    _add_sources(parser)
    parser.add_argument("--dry-run", action="store_true", help="print the command without running it")
    parser.set_defaults(handler=install)


def _add_uninstall(actions: Any) -> None:
    parser = actions.add_parser("uninstall", help="remove plugins, including broken ones")
    parser.add_argument(
        "names", nargs="+", metavar="NAME", help="a package, or a component provided by only one package"
    )
    parser.add_argument("--dry-run", action="store_true", help="print the command without running it")
    parser.set_defaults(handler=uninstall)


def _add_sync(actions: Any) -> None:
    parser = actions.add_parser(
        "sync", help="restore the packages and rules from a lock file; exit code 1 if differences remain"
    )
    parser.add_argument("file", nargs="?", default=LOCK_NAME, metavar="FILE", help=LOCK_NAME)
    parser.add_argument("--exact", action="store_true", help="remove plugins that are not in the lock file")
    _add_sources(parser)
    parser.add_argument(
        "--dry-run", action="store_true", help="only show the differences; exit code 1 if there are any"
    )
    parser.set_defaults(handler=sync)


def _add_sources(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--find-links", action="append", default=[], metavar="DIR", help="also search DIR for wheels")
    parser.add_argument("--no-index", action="store_true", help="do not use a package index")


def install(options: argparse.Namespace) -> int:
    """Install plugins, print what they offer, and record which ones the user requested."""
    from jackfield.plugins import PluginHost, scan
    from jackfield.settings import load_settings
    from jackfield_manage.cli.news import remember
    from jackfield_manage.distributions import installed
    from jackfield_manage.installing import packages
    from jackfield_manage.judging.activation import remarks

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
    for row in host.catalog.rows:
        if row not in before:
            warnings = "".join(f"; warning: it {remark}" for remark in remarks(row, host))
            print(escape_line(f"{row.id}  ({row.distribution} {row.version}){warnings}"))
    requirements = [packages.requirement_of(text, anything=options.any) for text in options.names]
    remember(host, packages.names_of(requirements, installed()))
    return 0


def uninstall(options: argparse.Namespace) -> int:
    """Uninstall plugins."""
    from jackfield.plugins import scan
    from jackfield_manage.installing import packages

    catalog = scan()
    names = {packages.installed_plugin(name, catalog) for name in options.names}
    for line in _consequences(names):
        sys.stderr.write(f"jackfield: {line}\n")
    code = packages.uninstall(options.names, catalog, dry_run=options.dry_run)
    if code:
        _print_problems(names, catalog)
    return _exit_code(code, "removed")


def _consequences(names: Collection[str]) -> Iterator[str]:
    """Yield a line for each distribution about to be removed that others require."""
    from jackfield_manage.distributions import installed, required_by

    installation = installed()
    for name in sorted(names):
        dependents = sorted((installation.keys() - set(names)) & set(required_by(name, installation)))
        if dependents:
            verb = "requires" if len(dependents) == 1 else "require"
            yield f"{', '.join(dependents)} {verb} {name}, which is being removed"
    if MANAGER in names:
        yield f"the commands that manage plugins are part of {MANAGER}; to get them back, run: pip install {MANAGER}"


def _print_problems(names: Collection[str], catalog: Catalog) -> None:
    """Print metadata faults of distributions that the installer could not remove."""
    for problem in catalog.problems:
        if problem.distribution in names:
            sys.stderr.write(
                f"jackfield: {problem.distribution} {escape_line(problem.text)}, which may be why the "
                f"installer failed: use uv instead of pip, or delete {problem.location}\n"
            )


def freeze(options: argparse.Namespace) -> int:
    """Write a lock file."""
    from jackfield.settings import load_settings
    from jackfield_manage.installing import lock, lockfile

    frozen = lock.freeze(load_settings())
    for note in frozen.notes:
        sys.stderr.write(f"jackfield: {escape_line(note)}\n")
    if options.output == "-":
        sys.stdout.write(lockfile.as_toml(frozen.lock))
        return 0
    path = Path(options.output)
    lockfile.write_lock(frozen.lock, path)
    plugins = format_count(len(frozen.lock.plugins), "plugin")
    print(f"{path}: {plugins}, {format_count(len(frozen.lock.requirements), 'requirement')}")
    return 0


def sync(options: argparse.Namespace) -> int:
    """Restore a lock; return 1 if differences remain."""
    from jackfield.settings import load_settings
    from jackfield_manage.installing.lockfile import read_lock
    from jackfield_manage.installing.sync import sync as restore

    differences = restore(
        read_lock(Path(options.file)),
        load_settings,
        exact=options.exact,
        dry_run=options.dry_run,
        sources=_sources(options),
    )
    if not differences:
        print(f"this installation matches {options.file}")
        return 0
    if not options.dry_run:
        for sentence in differences:
            sys.stderr.write(f"jackfield: {escape_line(sentence)}\n")
    return 1


def _sources(options: argparse.Namespace) -> Sources:
    from jackfield_manage.installing.installers import Sources

    return Sources(tuple(options.find_links), no_index=options.no_index)


def _exit_code(code: int, action: str) -> int:
    """Return 1 for any installer failure, after printing a line of our own below the installer's output."""
    if code:
        sys.stderr.write(
            f"jackfield: the installer exited with code {code}, so nothing was {action}; see its output above\n"
        )
    return 1 if code else 0
