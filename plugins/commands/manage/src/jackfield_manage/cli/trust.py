"""`jackfield trust`: show the effects of a file, and allow them.

In a project file, these are all rules that do more than restrict. In any other file (an agent, evaluation cases, MCP
servers, a saved run), they are all effects that need consent.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from jackfield.cli import Parser, escape_line
from jackfield.consent import consent_path, is_agreed, record_consent
from jackfield.errors import ConfigError
from jackfield.plugins import PluginHost
from jackfield.projects import FILE, Project, find_file
from jackfield.settings import load_project, load_settings, trust_path
from jackfield.suggestions import shell_path
from jackfield_agent_files.effects import request_of
from jackfield_manage.judging.activation import names_active_by_default
from jackfield_manage.judging.trust import agree, agreements, describe_request, describe_restrictions, revoke


def main(arguments: Sequence[str]) -> int:
    """Run `jackfield trust …` and return its exit code."""
    return trust(parser().parse_args(arguments))


def parser() -> Parser:
    """Return the argument parser of `jackfield trust`."""
    trust_parser = Parser(prog="jackfield trust", description="Show the effects of a file and allow them.")
    trust_parser.add_argument(
        "folder",
        nargs="?",
        default=".",
        metavar="FOLDER|FILE",
        help="a project folder (default: the current one), an agent file, an evaluation cases file, an MCP servers "
        "file, or a saved run",
    )
    action = trust_parser.add_mutually_exclusive_group()
    action.add_argument("--yes", action="store_true", help="agree without a prompt, for use in scripts")
    action.add_argument(
        "--show", action="store_true", help="only show the effects; exit code 1 if any are not allowed yet"
    )
    action.add_argument("--revoke", action="store_true", help="withdraw an agreement")
    action.add_argument("--list", action="store_true", help="list the projects you have agreed to")
    return trust_parser


def trust(options: argparse.Namespace) -> int:
    """Show what a file requests, and record the user's answer; return 1 if the requests remain without effect."""
    if options.list:
        return _list()
    folder = Path(options.folder)
    if folder.is_file() and folder.name != FILE:
        return _trust_file(folder, options)
    folder = folder.parent if folder.is_file() else folder
    if not folder.is_dir():
        raise ConfigError(f"no such file or folder: {options.folder!r}; specify a project folder or a file")
    if options.revoke:
        return _revoke(folder)
    project = load_project(folder)
    if project is None:
        print("No project file with Jackfield settings was found, so there is nothing to allow.")
        return 0
    _show(project)
    return _settle(project, options)


def _trust_file(file: Path, options: argparse.Namespace) -> int:
    """Show and allow the effects of any file other than a project file."""
    if options.revoke:
        return _revoke_file(file)
    request = request_of(file)
    if not request.effects:
        _say(f"Nothing in {file} needs your consent.")
        return 0
    _say_all(f"{file} can have these effects:", request.lines)
    if is_agreed(request):
        print(f"You have allowed this. To withdraw your consent, run: jackfield trust {shell_path(file)} --revoke")
        return 0
    if options.show or not (options.yes or _is_agreed()):
        return 1
    record_consent(request)
    print("This is allowed until this file, or a file that it refers to, changes.")
    return 0


def _revoke_file(file: Path) -> int:
    if not revoke(consent_path(file), trust_path()):
        _say(f"You have not allowed {file}.")
        return 1
    _say(f"{file} needs your consent again.")
    return 0


def _settle(project: Project, options: argparse.Namespace) -> int:
    """Print the state of a project's requests, asking if necessary; return 1 if they remain without effect."""
    if not (project.asking or project.foreign):
        print("Nothing here needs your consent.")
    elif project.answer == "yes":
        print("You have agreed to this, so it is in effect. To withdraw your consent, run: jackfield trust --revoke")
    elif options.show:
        print(f"Not in effect{': the file has changed since you agreed' if project.answer == 'changed' else ''}.")
        return 1
    else:
        return _ask(project, yes=options.yes)
    return 0


def _show(project: Project) -> None:
    _say(f"{project.path} [tool.jackfield]{' belongs to another user' if project.foreign else ''}")
    own = load_settings(with_project=False)
    note = "" if project.foreign else " (in effect without your consent)"
    _say_all(f"Restrictions{note}:", describe_restrictions(project))
    _say_all("Requests:", describe_request(project, own, names_active_by_default(PluginHost(own))))


def _ask(project: Project, *, yes: bool) -> int:
    if not (yes or _is_agreed()):
        return 1
    # Agrees to the content that was shown, even if the file has since changed.
    agree(project, trust_path())
    print("In effect until the file changes. To withdraw your consent, run: jackfield trust --revoke")
    return 0


def _is_agreed() -> bool:
    """Ask on the terminal, and return True if the user agrees."""
    if not sys.stdin.isatty():
        sys.stderr.write("jackfield: cannot ask for consent without a terminal; to agree to the above, pass --yes\n")
        return False
    sys.stdout.write("Agree to this? [y/N] ")
    sys.stdout.flush()
    is_agreed = sys.stdin.readline().strip().lower() in ("y", "yes")
    if not is_agreed:
        print("Not in effect.")
    return is_agreed


def _revoke(folder: Path) -> int:
    path = find_file(folder) or folder.resolve() / FILE
    if not revoke(path, trust_path()):
        _say(f"You have not agreed to {path}.")
        return 1
    _say(f"{path} can only restrict plugins from now on.")
    return 0


def _list() -> int:
    recorded = agreements(trust_path())
    for agreement in recorded:
        _say(str(agreement.path))
    if not recorded:
        print("You have not agreed to any project.")
    return 0


def _say_all(heading: str, lines: Sequence[str]) -> None:
    if lines:
        _say(heading)
    for line in lines:
        _say(f"  {line}")


def _say(text: str) -> None:
    print(escape_line(text))
