"""The whole question for a summary, word by word: a model reacts to every one. What is meant is in `questions/`."""

from __future__ import annotations

from pathlib import Path

import pytest

from jackfield.config import Lang
from jackfield.messages import FunctionCall, Message
from jackfield_counting.estimating import estimate_tokens
from jackfield_counting.requests import Counts, RequestCounter
from jackfield_truncation.summary import question

QUESTIONS = Path(__file__).with_name("questions")
HISTORY = (
    Message("user", "天气 in Bern?\n\nPlease."),
    Message("assistant", "", function_call=FunctionCall("weather", '{"city": "Bern"}')),
    Message("function", "It is sunny.", name="weather"),
    Message("assistant", "It is sunny."),
)


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize(
    ("name", "so_far", "numbers"),
    [("first", "", ()), ("next", "- Ann asks.\n- Of Bern.", ()), ("cited", "- Ann asks [1].", (2, 3, 4, 5))],
)
def test_the_question_is_what_is_meant(lang: Lang, name: str, so_far: str, numbers: tuple[int, ...]) -> None:
    counter = RequestCounter(Counts(estimate_tokens), 0)
    system, user = question(HISTORY, so_far, size=250, most=100_000, counter=counter, lang=lang, numbers=numbers)
    assert (system.role, user.role) == ("system", "user")
    file = QUESTIONS / f"{name}.{lang}.txt"
    told = f"{system.content}\n\n--------\n\n{user.content}\n"
    assert told == file.read_text(encoding="utf-8")
