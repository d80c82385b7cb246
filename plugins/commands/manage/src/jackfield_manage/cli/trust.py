"""`jackfield trust`: show what a file can cause, and let it.

For a project, that is whatever its file does beyond narrowing what plugins may do. For any other file (an agent, cases
of an evaluation, MCP servers, a saved run) it is every effect that needs consent.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from jackfield.cli import Parser, printable
from jackfield.consent import is_agreed, place_of, record_consent
from jackfield.errors import ConfigError
from jackfield.plugins import PluginHost
from jackfield.projects import FILE, Project, find_file
from jackfield.settings import load_project, load_settings, trust_path
from jackfield_agent_files.effects import request_of
from jackfield_manage.judging.activation import acting_by_default
from jackfield_manage.judging.trust import agree, agreements, asked_for, denied_by, revoke


def main(arguments: Sequence[str]) -> int:
    """Run `jackfield trust …`, and return its exit code."""
    return trust(parser().parse_args(arguments))


def parser() -> Parser:
    """What `jackfield trust` takes."""
    made = Parser(prog="jackfield trust", description="Show what a file can cause, and allow it.")
    made.add_argument(
        "folder",
        nargs="?",
        default=".",
        metavar="FOLDER|FILE",
        help="a folder of a project (the current one if left out), an agent file, a file of cases, a list of MCP "
        "servers, or a saved run",
    )
    action = made.add_mutually_exclusive_group()
    action.add_argument("--yes", action="store_true", help="agree without a question, for scripts")
    action.add_argument(
        "--show", action="store_true", help="only show it; exit code 1 if something in it has no effect"
    )
    action.add_argument("--revoke", action="store_true", help="withdraw an agreement")
    action.add_argument("--list", action="store_true", help="list all projects that you have agreed to")
    return made


def trust(options: argparse.Namespace) -> int:
    """Show what a project's file asks for, and remember the answer; 1 if it does not count afterwards."""
    if options.list:
        return _list()
    folder = Path(options.folder)
    if folder.is_file() and folder.name != FILE:
        return _trust_file(folder, options)
    folder = folder.parent if folder.is_file() else folder
    if not folder.is_dir():
        raise ConfigError(f"there is no file or folder {options.folder!r}: name a folder of the project, or a file")
    if options.revoke:
        return _revoke(folder)
    project = load_project(folder)
    if project is None:
        print("No project file here has settings for Jackfield, so there is nothing to agree to.")
        return 0
    _show(project)
    return _answered(project, options)


def _trust_file(file: Path, options: argparse.Namespace) -> int:
    """The same for a file that is not a project's."""
    if options.revoke:
        return _revoke_file(file)
    request = request_of(file)
    if not request.effects:
        _say(f"Nothing in {file} needs your consent.")
        return 0
    _say_all(f"{file} can do this:", request.lines)
    if is_agreed(request):
        print(f"You have agreed to this. To withdraw: jackfield trust {shlex.quote(str(file))} --revoke")
        return 0
    if options.show or not (options.yes or _is_agreed()):
        return 1
    record_consent(request)
    print("It is allowed from now on, until the file or a file that it refers to changes.")
    return 0


def _revoke_file(file: Path) -> int:
    if not revoke(place_of(file), trust_path()):
        _say(f"There is no consent to {file}.")
        return 1
    _say(f"{file} needs your consent from now on.")
    return 0


def _answered(project: Project, options: argparse.Namespace) -> int:
    """Whether what a project asks for counts, perhaps after a question; 1 if it does not."""
    if not (project.asking or project.foreign):
        print("It asks for nothing that needs your agreement.")
    elif project.answer == "yes":
        print("You have agreed to this, so it has effect. To withdraw: jackfield trust --revoke")
    elif options.show:
        print(f"It has no effect{': it has changed since you agreed' if project.answer == 'changed' else ''}.")
        return 1
    else:
        return _ask(project, yes=options.yes)
    return 0


def _show(project: Project) -> None:
    _say(f"{project.path} [tool.jackfield]{' belongs to another user' if project.foreign else ''}")
    own = load_settings(with_project=False)
    counts = "" if project.foreign else " (has effect without your agreement)"
    _say_all(f"It forbids{counts}:", denied_by(project))
    _say_all("It asks for:", asked_for(project, own, acting_by_default(PluginHost(own))))


def _ask(project: Project, *, yes: bool) -> int:
    if not (yes or _is_agreed()):
        return 1
    # What was shown is what is agreed to: a file that changed meanwhile has another content.
    agree(project, trust_path())
    print("It has effect from now on, until it changes. To withdraw: jackfield trust --revoke")
    return 0


def _is_agreed() -> bool:
    """Ask at the terminal."""
    if not sys.stdin.isatty():
        sys.stderr.write("jackfield: there is no terminal to ask at; --yes agrees to what is shown above\n")
        return False
    sys.stdout.write("Agree to this? [y/N] ")
    sys.stdout.flush()
    is_agreed = sys.stdin.readline().strip().lower() in ("y", "yes")
    if not is_agreed:
        print("It has no effect.")
    return is_agreed


def _revoke(folder: Path) -> int:
    path = find_file(folder) or folder.resolve() / FILE
    if not revoke(path, trust_path()):
        _say(f"Nobody has agreed to {path}.")
        return 1
    _say(f"{path} can only forbid from now on.")
    return 0


def _list() -> int:
    found = agreements(trust_path())
    for one in found:
        _say(str(one.path))
    if not found:
        print("You have not agreed to any project.")
    return 0


def _say_all(heading: str, lines: Sequence[str]) -> None:
    for line in [heading, *map("  {}".format, lines)] if lines else []:
        _say(line)


def _say(text: str) -> None:
    print(printable(text))
