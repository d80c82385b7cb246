"""The questions of the template: what may be asked, with defaults, checks, and answers that follow from others.

They are read from the template's own `copier.yml`, and mean here what they mean to copier.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from importlib.resources.abc import Traversable
from typing import Any, Literal

from jackfield.errors import ConfigError
from jackfield_agent_files.tables import parse_table
from jackfield_new.rendering import rendered

Answer = str | bool
Answers = dict[str, Answer]
_WORDS = {"y": True, "yes": True, "true": True, "n": False, "no": False, "false": False}


@dataclass(frozen=True, kw_only=True)
class Question:
    """One question.

    Attributes:
        name: Of the answer, in the template.
        type: Whether the answer is a text, or yes or no.
        help: How a person is asked.
        choices: What may be answered, under the line that describes it; anything if it is empty.
        default: The answer if there is no other, as a template; None if there has to be one.
        when: Whether it is asked; a text is a template. What is not asked is answered by the default, unchecked.
        validator: A template that says what is wrong with the answer, or nothing.
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
        """Nobody is ever asked: it follows from other answers."""
        return self.when is False


Ask = Callable[[Question, Answer | None, str], str]
"""Asks a person: takes the default and what was wrong with the previous answer, returns what was typed."""


def read_questions(template: Traversable) -> list[Question]:
    """The questions, in the order in which they are asked.

    Raises:
        ConfigError: The template is missing, or uses features that only copier understands.
    """
    try:
        table = parse_table((template / "copier.yml").read_text(encoding="utf-8"), "yaml")
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"the template of plugins cannot be read ({error}); try: pip install --force-reinstall jackfield-new"
        ) from error
    told: Mapping[str, Any] = table if isinstance(table, dict) else {}
    return [_question(name, details) for name, details in told.items() if not name.startswith("_")]


def _question(name: str, details: Mapping[str, Any]) -> Question:
    unknown = details.keys() - {one.name for one in fields(Question)}
    if unknown or details["type"] not in ("str", "bool"):
        raise ConfigError(
            f"the template asks for {name!r} in a way that only copier supports: use copier, or reinstall jackfield-new"
        )
    return Question(name=name, **details)


def complete(questions: Sequence[Question], given: Mapping[str, Answer], *, ask: Ask | None = None) -> Answers:
    """All answers: those given, those asked for, those that are left to defaults, and those that follow.

    Args:
        questions: In order; later ones look at the answers to earlier ones.
        given: Answers by the question's name.
        ask: Asks a person, until the answer will do; None if there is nobody to ask.

    Raises:
        ConfigError: An answer is not valid, or one is missing; the message names it.
    """
    answers: Answers = {}
    for question in questions:
        answers[question.name] = _answer(question, given.get(question.name), answers, ask)
    return answers


def _answer(question: Question, given: Answer | None, before: Answers, ask: Ask | None) -> Answer:
    default = rendered(question.default, before) if isinstance(question.default, str) else question.default
    if not _is_asked(question, before):
        return _unasked(question, given, default, before)
    if given is None and ask is not None:
        return _asked(question, default, before, ask)
    return _checked(question, default if given is None else given, before)


def _unasked(question: Question, given: Answer | None, default: Answer | None, before: Answers) -> Answer:
    """What follows from other answers."""
    if given is not None:
        raise ConfigError(f"{question.name} is not an option for the kind {before['kind']!r}: leave it out")
    assert default is not None, f"{question.name} has no default"  # noqa: S101 - a template without it is no template
    return default


def _is_asked(question: Question, before: Answers) -> bool:
    return question.when if isinstance(question.when, bool) else rendered(question.when, before) == "True"


def _checked(question: Question, value: Answer | None, before: Answers) -> Answer:
    if value is None:
        raise ConfigError(f"{question.name.upper()} is missing. {question.help}")
    if problem := problem_with(question, value, before):
        raise ConfigError(f"{question.name}: {problem}")
    return value


def _asked(question: Question, default: Answer | None, before: Answers, ask: Ask) -> Answer:
    problem = ""
    while True:
        typed = ask(question, default, problem).strip()
        value = _meant(question, typed) if typed else default
        if value is None:
            problem = "Answer yes or no." if typed else "Please enter an answer."
        elif not (problem := problem_with(question, value, before)):
            return value


def _meant(question: Question, typed: str) -> Answer | None:
    return _WORDS.get(typed.lower()) if question.type == "bool" else typed


def problem_with(question: Question, value: Answer, before: Answers) -> str:
    """What is wrong with an answer, in the template's own words; '' if nothing is."""
    if question.choices and value not in question.choices.values():
        return f"It must be one of: {', '.join(question.choices.values())}."
    return " ".join(rendered(question.validator, {**before, question.name: value}).split())
