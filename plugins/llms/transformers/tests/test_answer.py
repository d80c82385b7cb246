"""From tokens to events, with a vocabulary of bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from jackfield.events import ModelEvent, ModelFinished, UsageReported
from jackfield.messages import ModelResponse
from jackfield.models import fold
from jackfield_transformers.answer import AnswerReader, Reading

END = 256


def decode(tokens: Sequence[int]) -> str:
    return bytes(token for token in tokens if token != END).decode("utf-8", "replace")


def read(text: str, *, ends: bool = True, **reading: Any) -> tuple[ModelResponse, AnswerReader]:
    reader = AnswerReader(decode, Reading(frozenset({END}), **reading))
    events: list[ModelEvent] = []
    for token in [*text.encode(), *([END, *b"more"] if ends else [])]:
        events += reader.feed(token)
    events += reader.finish("m", 7)
    return fold(events), reader


def test_an_answer_ends_at_its_end_token_and_nothing_follows() -> None:
    answer, reader = read("录音室 🙂")
    assert (answer.get_content(), answer.finish_reason, reader.complete) == ("录音室 🙂", "stop", True)
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (7, len("录音室 🙂".encode()) + 1)


def test_an_answer_without_an_end_was_cut_at_its_longest() -> None:
    answer, reader = read("and so o", ends=False)
    assert (answer.get_content(), answer.finish_reason, reader.complete) == ("and so o", "length", False)


@pytest.mark.parametrize("text", ["one Observation: two", "one Observation", "one Observation:"])
def test_a_stop_text_ends_it(text: str) -> None:
    answer, reader = read(text, ends=False, stops=("Observation:",))
    assert answer.get_content() == text.partition("Observation:")[0]
    assert answer.finish_reason == ("stop" if "Observation:" in text else "length")
    assert reader.tokens == min(len(text), len("one Observation:"))


def test_thoughts_are_apart_and_their_tokens_counted() -> None:
    answer, _ = read("<think>\nwhy\n</think>\n\nYes.", thoughts=True)
    assert [message.reasoning_content for message in answer.messages] == ["why", None]
    assert answer.get_content() == "Yes."
    assert 0 < answer.usage.reasoning_tokens < answer.usage.completion_tokens


def test_a_stop_text_ends_a_thought_too() -> None:
    answer, _ = read("<think>why STOP not</think>Yes.", thoughts=True, stops=("STOP",))
    assert [(message.reasoning_content, message.content) for message in answer.messages] == [("why ", "")]


def test_without_thoughts_the_tags_are_text() -> None:
    assert read("<think>why</think>Yes.")[0].get_content() == "<think>why</think>Yes."


def test_usage_comes_before_the_end_which_comes_last() -> None:
    reader = AnswerReader(decode, Reading(frozenset({END})))
    kinds = [type(event) for event in reader.finish("m", 1)]
    assert kinds == [UsageReported, ModelFinished]


def test_an_empty_stop_text_stops_nothing() -> None:
    answer, _ = read("one two", ends=False, stops=("", "STOP"))
    assert (answer.get_content(), answer.finish_reason) == ("one two", "length")


def test_a_thought_that_the_prompt_has_opened_needs_no_tag() -> None:
    answer, _ = read("why\n</think>\n\nYes.", thoughts=True, inside_thought=True)
    assert [message.reasoning_content for message in answer.messages] == ["why", None]
    assert answer.get_content() == "Yes."


def test_all_tokens_of_a_thought_count_those_of_its_tag_as_well() -> None:
    answer, _ = read("<think>why</think>Yes.", thoughts=True)
    assert answer.usage.reasoning_tokens == len("<think>why</think")
