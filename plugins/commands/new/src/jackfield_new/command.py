"""`jackfield new KIND NAME`: the options are the template's questions."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, NoReturn

from jackfield.errors import ConfigError
from jackfield_new.folder import check_free, write_folder
from jackfield_new.questions import Answer, Answers, Question, complete, read_questions
from jackfield_new.rendering import rendered_files


def main(arguments: Sequence[str]) -> int:
    """Make a plugin, or, without arguments, list what can be made. Returns the exit code.

    Raises:
        ConfigError: An answer is not valid or is missing, or the folder is taken. Nothing was written.
    """
    template = files("jackfield_new") / "template"
    questions = read_questions(template)
    options = vars(_parser(questions).parse_args(arguments))
    if options["kind"] is None:
        sys.stdout.write(_kinds(questions))
        return 0
    options["kind"] = options["kind"].replace("-", "_")
    answers = _answers(questions, options)
    target = options["dir"] or _place(answers)
    check_free(target)
    write_folder(target, rendered_files(template / "template", answers))
    sys.stdout.write(_told(target, answers))
    return 0


def _answers(questions: Sequence[Question], options: Mapping[str, Any]) -> Answers:
    given = {one.name: value for one in questions if (value := options.get(one.name)) is not None}
    # A person is asked where something has to be answered, and then for the rest, too; a script never is.
    asks = "name" not in given and sys.stdin is not None and sys.stdin.isatty()
    return complete(questions, given, ask=_ask if asks else None)


class _Parser(argparse.ArgumentParser):
    """Says what is wrong before how it would be right, and repeats no control characters."""

    def error(self, message: str) -> NoReturn:
        shown = "".join(one if one.isprintable() else repr(one)[1:-1] for one in message)
        sys.stderr.write(f"{self.prog}: {shown}\nTry: {self.prog} --help\n")
        raise SystemExit(2)


def _parser(questions: Sequence[Question]) -> argparse.ArgumentParser:
    parser = _Parser(
        prog="jackfield new",
        description="Make a working plugin; then put your own code in.",
        epilog=_kinds(questions),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    for question in questions:
        _add(parser, question)
    parser.add_argument(
        "--dir", type=Path, metavar="PATH", help="The folder to make; by default it has the plugin's name."
    )
    return parser


def _add(parser: argparse.ArgumentParser, question: Question) -> None:
    option = "--" + question.name.replace("_", "-")
    text = question.help.replace("%", "%%")
    if question.name in ("kind", "name"):
        parser.add_argument(question.name, nargs="?", metavar=question.name.upper(), help=text)
    elif question.name == "standalone":
        text = "Make it for Jackfield's own repository; run this at the root of the repository."
        parser.add_argument("--in-repo", dest="standalone", action="store_false", default=None, help=text)
    elif question.type == "bool":
        parser.add_argument(option, action=argparse.BooleanOptionalAction, help=text)
    elif not question.is_computed:
        parser.add_argument(option, metavar="TEXT", help=text)


def _kinds(questions: Iterable[Question]) -> str:
    (kind,) = (question for question in questions if question.name == "kind")
    lines = "".join(f"  {label}\n" for label in kind.choices)
    return f"jackfield new KIND NAME makes one of these:\n{lines}"


def _ask(question: Question, default: Answer | None, problem: str) -> str:
    if problem:
        sys.stdout.write(f"  {problem}\n")
    words = {True: "yes", False: "no", None: ""}
    shown = default if isinstance(default, str) else words[default]
    try:
        return input(f"{question.help}{f' [{shown}]' if shown else ''} ")
    except EOFError:
        raise ConfigError(f"{question.name}: no answer was given, so nothing was made") from None


def _place(answers: Answers) -> Path:
    """Where a plugin goes that nobody has found a place for."""
    if answers["standalone"]:
        return Path(str(answers["distribution"]))
    if not Path("plugins").is_dir():
        raise ConfigError("there is no folder 'plugins' here: go to the root of the repository, or use --dir PATH")
    return Path("plugins", f"{answers['kind']}s".replace("_", "-"), str(answers["name"]))


def _told(target: Path, answers: Answers) -> str:
    """What was made, and the commands to type next."""
    folder = shlex.quote(str(target))
    if answers["standalone"]:
        commands = [f"cd {folder}", 'python -m pip install -e ".[test]"', "python -m pytest"]
    else:
        commands = ["make format", "make known", f'make test ARGS="{folder}"']
    return f"{answers['distribution']} is in {folder}. Next:\n" + "".join(f"  {command}\n" for command in commands)
