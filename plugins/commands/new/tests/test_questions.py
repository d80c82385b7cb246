"""Answers are completed and checked as the template says, and a wrong one is told in its words."""

from __future__ import annotations

import keyword
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield.errors import ConfigError
from jackfield_new.questions import Answer, Question, complete, problem_with, read_questions


def test_what_follows_from_the_answers_is_worked_out(questions: list[Question]) -> None:
    answers = complete(questions, {"kind": "call_format", "name": "tide-table"})
    assert answers["distribution"] == "jackfield-tide-table"
    assert answers["package"] == "jackfield_tide_table"
    assert answers["component"] == "tide_table"
    assert answers["class_name"] == "TideTableFormat"
    assert answers["author"] == "Nobody yet"
    assert answers["standalone"] is True


@pytest.mark.parametrize(
    "name",
    [
        "",
        "Tide",
        "tide_table",
        "tide-",
        "-tide",
        "tide--table",
        "tide\n",
        "1tide",
        "../tide",
        "a/b",
        "a\\b",
        "..",
        "C:tide",
        "tide\x1b[31m",
        "tide\x00",
        "tidé",
        "ｔide",
        "tide table",
        "{{ 7 }}",
        "jackfield-tide",
        "base",
        "fn-call",
        "call",
        "a" * 31,
        *(word for word in keyword.kwlist if word.islower()),
    ],
)
def test_a_name_that_would_do_harm_is_refused_with_a_sentence_that_can_be_shown(
    questions: list[Question], name: str
) -> None:
    with pytest.raises(ConfigError, match=r"^name: [A-Z].*\.$") as caught:
        complete(questions, {"kind": "tool", "name": name})
    assert str(caught.value).isprintable()


@given(name=st.text())
def test_a_name_is_either_refused_or_is_one_plain_part_of_a_path(questions: list[Question], name: str) -> None:
    problem = problem_with(next(one for one in questions if one.name == "name"), name, {"kind": "tool"})
    plain = (
        0 < len(name) <= 30 and name.isascii() and all(word.isalnum() for word in name.split("-")) and name.islower()
    )
    assert problem or plain


@pytest.mark.parametrize(
    ("given_answers", "text"),
    [
        ({"kind": "tool"}, r"^NAME is missing\. Use lower case"),
        ({"kind": "teleporter", "name": "x"}, "^kind: Must be one of: tool, llm"),
        ({"kind": "tool", "name": "x", "http": False}, "^http is not an option for the kind 'tool'"),
        ({"kind": "command", "name": "run"}, "^name: This is a Jackfield command"),
        ({"kind": "tool", "name": "x", "author": 'A "B"'}, "^author: Use a name"),
        ({"kind": "tool", "name": "x", "author": "\x1b]0;pwned\x07"}, "^author: Use a name"),
        (
            {"kind": "tool", "name": "x", "description": "It has \udcff bytes."},
            "^description: Do not use double quotes",
        ),
        ({"kind": "tool", "name": "x", "description": "It has\u2028lines."}, "^description: Do not use double quotes"),
        ({"kind": "tool", "name": "x", "description": "y" * 96}, "^description: Use 10 to 95"),
    ],
)
def test_what_will_not_do_is_named(questions: list[Question], given_answers: dict[str, Answer], text: str) -> None:
    with pytest.raises(ConfigError, match=text) as caught:
        complete(questions, given_answers)
    assert str(caught.value).isprintable()


def test_a_person_is_asked_for_what_is_not_given_until_the_answer_will_do(questions: list[Question]) -> None:
    typed: Iterator[str] = iter(["Tide", "", "tide", "", "short", "Tides for everybody.", "", "perhaps", "No"])
    asked: list[tuple[str, Answer | None, bool]] = []
    problems: list[str] = []

    def ask(question: Question, default: Answer | None, problem: str) -> str:
        asked.append((question.name, default, bool(problem)))
        problems.append(problem)
        return next(typed)

    answers = complete(questions, {"kind": "tool"}, ask=ask)
    assert (problems[2], problems[-1]) == ("Please enter an answer.", "Please answer yes or no.")
    assert asked == [
        ("name", None, False),
        ("name", None, True),
        ("name", None, True),
        ("author", "Nobody yet", False),
        ("description", "A plugin for Jackfield.", False),
        ("description", "A plugin for Jackfield.", True),
        ("url", "", False),
        ("standalone", True, False),
        ("standalone", True, True),
    ]
    assert (answers["name"], answers["author"], answers["standalone"]) == ("tide", "Nobody yet", False)


@pytest.mark.parametrize(
    ("typed", "answer"),
    [*((word, True) for word in ("y", "YES", " true ", "")), *((word, False) for word in ("n", "No", "FALSE\t"))],
)
def test_yes_and_no_may_be_written_in_several_ways(typed: str, answer: bool) -> None:
    question = Question(name="q", type="bool", default=True)
    assert complete([question], {}, ask=lambda *_: typed) == {"q": answer}


def test_blanks_around_an_answer_do_not_count(questions: list[Question]) -> None:
    typed = {"name": " tide ", "author": "\tAda ", "description": " Tides for everybody. "}
    answers = complete(questions, {"kind": "tool"}, ask=lambda question, *_: typed.get(question.name, " "))
    assert {name: answers[name] for name in typed} == {name: text.strip() for name, text in typed.items()}


def test_a_template_that_is_not_there_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="pip install --force-reinstall jackfield-new"):
        read_questions(tmp_path)


@pytest.mark.parametrize("details", ["{type: str, multiselect: true}", "{type: json}"])
def test_a_question_that_only_copier_understands_is_refused(tmp_path: Path, details: str) -> None:
    (tmp_path / "copier.yml").write_text(f"_secret: 1\nname: {details}\n")
    with pytest.raises(ConfigError, match="'name' requires copier"):
        read_questions(tmp_path)
