"""`jackfield new KIND NAME`: create or update a plugin. The options are the template's questions."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import NoReturn

from jackfield.errors import ConfigError
from jackfield.plugins import known_components
from jackfield.suggestions import shell_path
from jackfield_new.folder import write_folder
from jackfield_new.questions import Answer, Answers, Question, complete, is_asked, read_questions
from jackfield_new.remotes import url_of_repository
from jackfield_new.rendering import render_files
from jackfield_new.updating import RECORD, Record, apply_update, check_clean, plan_update

# Packages without components, which are missing from the core's list of known components.
OTHER_PACKAGES = frozenset(
    f"jackfield-{name}"
    for name in (
        "agent-files",
        "agent-parts",
        "backends",
        "bpe",
        "chat-completions",
        "confine",
        "counting",
        "documents",
        "fetch",
        "http",
        "knowledge",
        "local-state",
        "markup",
        "postgres",
        "records",
        "serving",
        "testkit",
    )
)


def main(arguments: Sequence[str]) -> int:
    """Create or update a plugin, or list the kinds if called without arguments.

    Returns:
        The exit code: 1 if an update leaves conflicts, otherwise 0.

    Raises:
        ConfigError: An answer is missing or invalid, the name belongs to one of our packages, or the directory cannot
            be used. Nothing was written.
    """
    template = files("jackfield_new") / "template"
    questions = read_questions(template)
    options = vars(_parser(questions).parse_args(arguments))
    names = [question.name for question in questions]
    if options["update"]:
        given = {name: options[name] for name in names if options.get(name) is not None}
        return _update(options["dir"] or Path(), template, questions, given, force=options["force"])
    if options["kind"] is None:
        sys.stdout.write(_kinds(questions))
        return 0
    options["kind"] = options["kind"].replace("-", "_")
    answered = {name: options[name] for name in names if options.get(name) is not None}
    # Without a name, a user at a terminal is asked for everything; a script never is.
    can_ask = "name" not in answered and sys.stdin is not None and sys.stdin.isatty()
    if "url" not in answered:
        answered["url"] = url_of_repository(options["dir"].absolute().parent if options["dir"] else Path())
    answers = complete(questions, answered, ask=_ask if can_ask else None)
    if answers["standalone"]:
        _check_name(str(answers["distribution"]))
    target = options["dir"] or _default_folder(answers)
    files_by_path = render_files(template / "template", answers)
    if answers["standalone"]:
        files_by_path[RECORD] = Record(answers, dict(files_by_path)).to_bytes()
    write_folder(target, files_by_path)
    sys.stdout.write(_next_steps(target, answers))
    return 0


def _update(
    folder: Path, template: Traversable, questions: Sequence[Question], given: Mapping[str, Answer], *, force: bool
) -> int:
    """Update the plugin in a directory to this template, with its recorded answers overridden by `given`."""
    record = Record.read(folder)
    if given.keys() & {"kind", "name"}:
        raise ConfigError("an update cannot change the kind or the name: omit both")
    if not force:
        check_clean(folder)
    answers = complete(questions, _without_unasked({**record.answers, **given}, questions))
    files_by_path = render_files(template / "template", answers)
    changes = plan_update(folder, record, files_by_path)
    apply_update(folder, changes, Record(answers, files_by_path))
    for change in changes:
        sys.stdout.write(f"{change.path}: {change.action}\n")
    if not changes:
        sys.stdout.write("This plugin is up to date with the template.\n")
    elif any(change.conflicts for change in changes):
        sys.stdout.write("Resolve the conflicts, run the tests and commit; git diff shows all changes.\n")
        return 1
    else:
        sys.stdout.write("Run the tests and commit; git diff shows all changes.\n")
    return 0


def _without_unasked(answers: Mapping[str, Answer], questions: Sequence[Question]) -> Answers:
    """Drop computed answers, and answers to questions that others rule out, such as `http` for a tool."""
    return {
        question.name: answers[question.name]
        for question in questions
        if question.name in answers and is_asked(question, answers)
    }


def _check_name(distribution: str) -> None:
    """Refuse the name of one of our own packages, which the plugin would replace when installed.

    Raises:
        ConfigError: The name is taken.
    """
    ours = OTHER_PACKAGES.union(known.distribution for known in known_components().values())
    if distribution in ours:
        raise ConfigError(
            f"name: {distribution} is an existing Jackfield package, and installing your plugin would replace it: "
            "choose another name"
        )


class _Parser(argparse.ArgumentParser):
    """Parser that reports errors on one line, followed by a hint, with control characters escaped."""

    def error(self, message: str) -> NoReturn:
        shown = "".join(char if char.isprintable() else repr(char)[1:-1] for char in message)
        sys.stderr.write(f"{self.prog}: {shown}\nTry: {self.prog} --help\n")
        raise SystemExit(2)


def _parser(questions: Sequence[Question]) -> argparse.ArgumentParser:
    parser = _Parser(
        prog="jackfield new",
        description="Create a working plugin, ready for your own code.",
        epilog=_kinds(questions),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    for question in questions:
        _add_option(parser, question)
    parser.add_argument(
        "--dir",
        type=Path,
        metavar="PATH",
        help="The folder to create (default: the plugin's name), or to update (default: the current one).",
    )
    parser.add_argument(
        "--update",
        action="store_true",
        help="Update a plugin to the newer template; your changes are kept, and conflicts are marked in the files.",
    )
    parser.add_argument("--force", action="store_true", help="Update even if git cannot restore the folder.")
    return parser


def _add_option(parser: argparse.ArgumentParser, question: Question) -> None:
    option = "--" + question.name.replace("_", "-")
    text = question.help.replace("%", "%%")
    if question.name in ("kind", "name"):
        parser.add_argument(question.name, nargs="?", metavar=question.name.upper(), help=text)
    elif question.name == "standalone":
        text = "Create the plugin in Jackfield's own repository; run this command at the root of the repository."
        parser.add_argument("--in-repo", dest="standalone", action="store_false", default=None, help=text)
    elif question.type == "bool":
        parser.add_argument(option, action=argparse.BooleanOptionalAction, help=text)
    elif not question.is_computed:
        parser.add_argument(option, metavar="TEXT", help=text)


def _kinds(questions: Iterable[Question]) -> str:
    (kind,) = (question for question in questions if question.name == "kind")
    lines = "".join(f"  {label}\n" for label in kind.choices)
    return f"jackfield new KIND NAME creates one of these:\n{lines}"


def _ask(question: Question, default: Answer | None, problem: str) -> str:
    if problem:
        sys.stdout.write(f"  {problem}\n")
    words = {True: "yes", False: "no", None: ""}
    shown = default if isinstance(default, str) else words[default]
    try:
        return input(f"{question.help} [{shown}] " if shown else f"{question.help} ")
    except EOFError:
        raise ConfigError(f"{question.name}: no answer was given, so nothing was created") from None


def _default_folder(answers: Answers) -> Path:
    if answers["standalone"]:
        return Path(str(answers["distribution"]))
    if not Path("plugins").is_dir():
        raise ConfigError(
            "no 'plugins' folder was found here: change to the root of the repository, or pass --dir PATH"
        )
    return Path("plugins", f"{answers['kind']}s".replace("_", "-"), str(answers["name"]))


def _next_steps(target: Path, answers: Answers) -> str:
    """Return a text that names the new plugin and the commands to type next."""
    folder = shell_path(target)
    if answers["standalone"]:
        commands = [f"cd {folder}", 'python -m pip install -e ".[test]"', "python -m pytest"]
    else:
        commands = ["make format", "make known", f'make test ARGS="{folder}"']
    return f"{answers['distribution']} is in {folder}. Next:\n" + "".join(f"  {command}\n" for command in commands)
