"""Requests are counted whole, each text once, and what is obviously small is not counted at all."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield.messages import ContentItem, FunctionCall, Message
from jackfield.request import ChatRequest
from jackfield_counting import requests
from jackfield_counting.estimating import estimate_tokens
from jackfield_counting.requests import MESSAGE_TOKENS, Counts, RequestCounter

TOOL = {"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "string"}}}}


class Words:
    """Counts words, and knows what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, text: str) -> int:
        self.asked.append(text)
        return len(text.split())


def request(*messages: Message, **fields: Any) -> ChatRequest:
    return ChatRequest(model="m", messages=messages, **fields)


def test_everything_that_a_model_reads_counts() -> None:
    count = RequestCounter(Counts(estimate_tokens), media_tokens=700).request
    least = count(request(Message("user", "")))
    assert least == MESSAGE_TOKENS
    for message in (
        Message("user", "some words"),
        Message("assistant", "", reasoning_content="because of this and that"),
        Message("assistant", "", function_call=FunctionCall("f", '{"a": "b"}')),
        Message("function", "", name="f"),
        Message("user", [ContentItem(file="/a/report.pdf")]),
    ):
        assert count(request(message)) > least
    assert count(request(Message("user", ""), functions=(TOOL,))) > least
    seen = Message("user", [ContentItem(image="data:image/png;base64,AAAA"), ContentItem(video=["1.png", "2.png"])])
    assert count(request(seen)) == 3 * 700 + MESSAGE_TOKENS
    assert RequestCounter(Counts(estimate_tokens), 700).media(seen) == 3 * 700


def test_a_text_is_counted_once_and_a_factor_needs_no_second_count() -> None:
    words = Words()
    counts = Counts(words)
    asked = request(Message("user", "one two three"), Message("assistant", "one two three"), functions=(TOOL,))
    plain = RequestCounter(counts, 0).request(asked)
    assert RequestCounter(counts, 0, factor=2.0).request(asked) > plain
    assert len(words.asked) == 2  # the text, and the schema
    assert RequestCounter(words, 0).text("") == 0


def test_nothing_is_counted_to_find_out_that_a_small_request_fits() -> None:
    words = Words()
    counter = RequestCounter(words, media_tokens=100)
    small = request(Message("user", "a b c"), functions=(TOOL,))
    assert counter.surely_fits(small, 1000)
    assert not counter.surely_fits(request(Message("user", "x" * 2000)), 1000)
    assert not counter.surely_fits(request(*[Message("user", [ContentItem(image="a.png")])] * 11), 1000)
    assert words.asked == []


def test_texts_of_the_same_length_are_told_apart() -> None:
    counts = Counts(lambda text: len(text.split()))
    for start in ("", "word " * 2000):
        texts = [start + end for end in ("one two", "onetwo!", "one two")]
        assert [counts.of(text) - start.count(" ") for text in texts] == [2, 1, 2]


def test_no_more_than_two_generations_of_counts_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "_MAX_CACHED", 10)
    words = Words()
    counts = Counts(words)
    for number in range(100):
        counts.of("kept")
        counts.of(str(number))
        assert counts.remembered <= 20
    assert words.asked.count("kept") == 1, "a text that is used again is remembered"
    counts.of("0")
    assert words.asked.count("0") == 2


def test_no_more_than_a_thousand_schemas_are_remembered_and_none_is_mistaken_for_another() -> None:
    counts = Counts(len)
    for number in range(3000):  # each is gone when the next one is made, perhaps at the same address
        assert f'"f{number}"' in counts.schema_text({"name": f"f{number}"})
        assert len(counts._schemas) <= 1000


@given(st.text(max_size=30), st.text(max_size=30), st.floats(0.5, 3))
def test_a_request_that_surely_fits_does_so_with_any_tokenizer(said: str, thought: str, factor: float) -> None:
    counter = RequestCounter(lambda text: len(text.encode("utf-8", "surrogatepass")), media_tokens=7, factor=factor)
    message = Message("assistant", [ContentItem(text=said), ContentItem(image="a.png")], reasoning_content=thought)
    asked = request(message, functions=(TOOL,))
    tokens = counter.request(asked)
    assert not counter.surely_fits(asked, tokens - 1)
    assert counter.surely_fits(asked, 10 * tokens + 1000)


@given(st.integers(0, 1000), st.floats(0.5, 3))
def test_a_factor_rounds_up(tokens: int, factor: float) -> None:
    assert RequestCounter(lambda _: tokens, 0, factor=factor).text("text") == math.ceil(tokens * factor)


def test_each_part_of_a_message_is_counted_once() -> None:
    counter = RequestCounter(len, media_tokens=100)
    pictures = [ContentItem(image="1.png"), ContentItem(text="abc"), ContentItem(text=""), ContentItem(file="/a/b.pdf")]
    for message, tokens in (
        (Message("user", "abcd"), 4),
        (Message("user", pictures), 100 + 3 + 8),
        (Message("assistant", "ab", reasoning_content="abc"), 5),
        (Message("assistant", "ab", reasoning_content=pictures), 2 + 100 + 3 + 8),
        (Message("assistant", "", function_call=FunctionCall("name", "{}")), 6),
        (Message("function", "ab", name="tool"), 6),
        (Message("user", [ContentItem(video=["1.png", "2.png"]), ContentItem(video="v.mp4")]), 300),
        (Message("user", [ContentItem(audio="a.mp3")]), 100),
    ):
        assert counter.message(message) == MESSAGE_TOKENS + tokens
        assert RequestCounter(len, 100, factor=2.0).message(message) == MESSAGE_TOKENS + tokens + (
            tokens - counter.media(message)
        )
    assert MESSAGE_TOKENS == 4


@pytest.mark.parametrize(("text", "most"), [("abc", 3), ("äbc", 12), ("", 0)])
def test_a_bound_is_the_bytes_of_ascii_and_four_for_any_other_character(text: str, most: int) -> None:
    counter = RequestCounter(len, 0)
    assert counter.at_most(Message("user", text)) == MESSAGE_TOKENS + most


@pytest.mark.parametrize("factor", [0.5, 1.0, 2.0])
def test_a_request_of_exactly_the_limit_surely_fits(factor: float) -> None:
    counter = RequestCounter(len, 0, factor=factor)
    assert counter.factor == factor
    asked = request(Message("user", "x" * 96), Message("user", "y" * 96))
    limit = int(200 * max(1.0, factor))
    assert counter.surely_fits(asked, limit)
    assert not counter.surely_fits(asked, limit - 1)
    schema = len(Counts(len).schema_text(TOOL))
    with_tool = request(Message("user", "x" * 96), functions=(TOOL,))
    assert counter.surely_fits(with_tool, int((100 + schema) * max(1.0, factor)))
    assert not counter.surely_fits(with_tool, int((100 + schema) * max(1.0, factor)) - 1)


def test_texts_with_the_hash_of_another_are_told_apart_by_their_length() -> None:
    class Text(str):
        __slots__ = ()

        def __hash__(self) -> int:
            return 7

        def __eq__(self, other: object) -> bool:
            return str.__eq__(self, str(other))

    counts = Counts(len)
    assert (counts.of(Text("ab")), counts.of(Text("abc")), counts.remembered) == (2, 3, 2)


def test_the_remembered_counts_are_those_of_both_generations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "_MAX_CACHED", 2)
    counts = Counts(len)
    seen = []
    for number in range(5):
        counts.of("x" * (number + 1))
        seen.append(counts.remembered)
    assert seen == [1, 2, 3, 4, 3]
