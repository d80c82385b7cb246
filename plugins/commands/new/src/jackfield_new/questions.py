"""Handle the template's questions: their defaults, validation, and answers computed from others.

The questions are read from the template's `copier.yml` and have the same meaning as in copier.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from importlib.resources.abc import Traversable
from typing import Any, Literal

from jackfield.errors import ConfigError
from jackfield_agent_files.tables import parse_table
from jackfield_new.rendering import render

Answer = str | bool
Answers = dict[str, Answer]
_WORDS = {"y": True, "yes": True, "true": True, "n": False, "no": False, "false": False}


@dataclass(frozen=True, kw_only=True)
class Question:
    """A question of the template.

    Attributes:
        name: The answer's name in the template.
        type: `str` for text, `bool` for yes or no.
        help: The question as shown to the user.
        choices: The valid answers, by description; empty if any answer is valid.
        default: The default answer, as a template, or None if an answer is required.
        when: True, False or a template. If false, the question is not asked, and the default is used without
            validation.
        validator: A template that renders the problem with an answer, or nothing.
    """

    name: str
    type: Literal["str", "bool"]
    help: str = ""
    choices: Mapping[str, str] = field(default_factory=dict)
    default: Answer | None = None
    when: str | bool = True
    validator: str = ""

    @property
    def is_computed(self) -> bool:
        """True if the question is never asked because its answer follows from others."""
        return self.when is False


Ask = Callable[[Question, Answer | None, str], str]
"""Asks the user. Receives the default and the problem with the previous answer, and returns the typed text."""


def read_questions(template: Traversable) -> list[Question]:
    """Read the questions, in order.

    Raises:
        ConfigError: The template is missing, or uses features that only copier supports.
    """
    try:
        table = parse_table((template / "copier.yml").read_text(encoding="utf-8"), "yaml")
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"the plugin template cannot be read ({error}): run pip install --force-reinstall jackfield-new"
        ) from error
    entries: Mapping[str, Any] = table if isinstance(table, dict) else {}
    return [_parse_question(name, details) for name, details in entries.items() if not name.startswith("_")]


def _parse_question(name: str, details: Mapping[str, Any]) -> Question:
    unknown = details.keys() - {field.name for field in fields(Question)}
    if unknown or details["type"] not in ("str", "bool"):
        raise ConfigError(f"the template's question {name!r} requires copier: use copier, or reinstall jackfield-new")
    return Question(name=name, **details)


def complete(questions: Sequence[Question], answered: Mapping[str, Answer], *, ask: Ask | None = None) -> Answers:
    """Return the answers to all questions, whether given, typed by the user, default or computed.

    Args:
        questions: The questions in order. Later ones depend on the answers to earlier ones.
        answered: The answers given, by question name.
        ask: Asks the user until the answer is valid. If None, no question is asked.

    Raises:
        ConfigError: An answer is missing or invalid. The message names it.
    """
    answers: Answers = {}
    for question in questions:
        answers[question.name] = _answer(question, answered.get(question.name), answers, ask)
    return answers


def _answer(question: Question, answer: Answer | None, before: Answers, ask: Ask | None) -> Answer:
    default = render(question.default, before) if isinstance(question.default, str) else question.default
    if not is_asked(question, before):
        if answer is not None:
            raise ConfigError(f"{question.name} is not an option for the kind {before['kind']!r}: omit it")
        assert default is not None, f"{question.name} has no default"  # noqa: S101 - the template must have one
        return default
    if answer is None and ask is not None:
        return _ask_until_valid(question, default, before, ask)
    value = default if answer is None else answer
    if value is None:
        raise ConfigError(f"{question.name.upper()} is missing. {question.help}")
    if problem := problem_with(question, value, before):
        raise ConfigError(f"{question.name}: {problem}")
    return value


def is_asked(question: Question, answers: Mapping[str, Answer]) -> bool:
    """Return True if a question applies, given the answers to earlier ones."""
    return question.when if isinstance(question.when, bool) else render(question.when, answers) == "True"


def _ask_until_valid(question: Question, default: Answer | None, before: Answers, ask: Ask) -> Answer:
    problem = ""
    while True:
        typed = ask(question, default, problem).strip()
        value: Answer | None = typed or default
        if typed and question.type == "bool":
            value = _WORDS.get(typed.lower())
        if value is None:
            problem = "Please answer yes or no." if typed else "Please enter an answer."
        elif not (problem := problem_with(question, value, before)):
            return value


def problem_with(question: Question, value: Answer, before: Answers) -> str:
    """Return the problem with an answer, as worded by the template, or '' if the answer is valid."""
    if question.choices and value not in question.choices.values():
        return f"Must be one of: {', '.join(question.choices.values())}."
    return " ".join(render(question.validator, {**before, question.name: value}).split())
