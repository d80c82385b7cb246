"""`jackfield trust`: let a project's file do more than narrow what plugins may do, after it was shown."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from jackfield.cli import Parser, printable
from jackfield.errors import ConfigError
from jackfield.plugins import PluginHost, acting_by_default
from jackfield.projects import FILE, Project, find_file
from jackfield.settings import load_project, load_settings, trust_path
from jackfield_manage.trust import agree, agreements, asked_for, denied_by, revoke


def main(arguments: Sequence[str]) -> int:
    """Run `jackfield trust …`, and return its exit code."""
    return trust(parser().parse_args(arguments))


def parser() -> Parser:
    """What `jackfield trust` takes."""
    made = Parser(prog="jackfield trust", description="Let a project's file do more than forbid, after it was shown.")
    made.add_argument("folder", nargs="?", default=".", help="a folder of the project; this one if left out")
    action = made.add_mutually_exclusive_group()
    action.add_argument("--yes", action="store_true", help="agree without being asked, for scripts")
    action.add_argument("--show", action="store_true", help="only show it; 1 if something in it does not count")
    action.add_argument("--revoke", action="store_true", help="take back what was agreed to")
    action.add_argument("--list", action="store_true", help="list all projects that were agreed to")
    return made


def trust(options: argparse.Namespace) -> int:
    """Show what a project's file asks for, and remember the answer; 1 if it does not count afterwards."""
    if options.list:
        return _list()
    folder = Path(options.folder)
    if not folder.is_dir():
        raise ConfigError(f"{options.folder!r} is no folder: name one of the project's")
    if options.revoke:
        return _revoke(folder)
    project = load_project(folder)
    if project is None:
        print("No project's file says anything of Jackfield here, so there is nothing to agree to.")
        return 0
    _show(project)
    if not project.asking and not project.foreign:
        print("It asks for nothing that needs a yes.")
        return 0
    if project.answer == "yes":
        print("You have agreed to this, so it counts. To take that back: jackfield trust --revoke")
        return 0
    if options.show:
        print(f"It does not count{': it has changed since you agreed' if project.answer == 'changed' else ''}.")
        return 1
    return _ask(project, yes=options.yes)


def _show(project: Project) -> None:
    _say(f"{project.path} [tool.jackfield]{' belongs to another user' if project.foreign else ''}")
    own = load_settings(with_project=False)
    denied, asked = denied_by(project), asked_for(project, own, acting_by_default(PluginHost(own)))
    if denied:
        counts = "" if project.foreign else " (counts without a yes)"
        _say(f"It takes away{counts}:")
        for line in denied:
            _say(f"  {line}")
    if asked:
        _say("It asks for:")
        for line in asked:
            _say(f"  {line}")


def _ask(project: Project, *, yes: bool) -> int:
    if not yes:
        if not sys.stdin.isatty():
            sys.stderr.write("jackfield: nobody is there to be asked; --yes agrees to what is shown above\n")
            return 1
        sys.stdout.write("Shall it count? [y/N] ")
        sys.stdout.flush()
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            print("It does not count.")
            return 1
    # What was shown is what is agreed to: a file that changed meanwhile has another content.
    agree(project, trust_path())
    print("It counts from now on, until it changes. To take that back: jackfield trust --revoke")
    return 0


def _revoke(folder: Path) -> int:
    path = find_file(folder) or folder.resolve() / FILE
    if not revoke(path, trust_path()):
        _say(f"Nobody has agreed to {path}.")
        return 1
    _say(f"{path} only narrows from now on.")
    return 0


def _list() -> int:
    found = agreements(trust_path())
    for one in found:
        _say(str(one.path))
    if not found:
        print("No project was agreed to.")
    return 0


def _say(text: str) -> None:
    print(printable(text))
