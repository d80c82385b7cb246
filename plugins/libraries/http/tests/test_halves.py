"""A character that is cut in two is whole again, wherever it was cut, and what stays half can be written down."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield.events import FunctionCallDelta, ModelEvent, ReasoningDelta, TextDelta
from jackfield_http import Halves, json_piece

units = st.lists(st.integers(0, 0xFFFF).map(chr) | st.sampled_from("\ud83d\ude00a"), max_size=12)


def whole(text: str) -> str:
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def mended(pieces: Sequence[ModelEvent]) -> list[ModelEvent]:
    halves = Halves()
    return [*(event for piece in pieces for event in halves.mend([piece])), *halves.rest()]


@given(units, st.lists(st.integers(0, 12), max_size=5))
def test_a_text_is_the_same_however_its_utf_16_is_cut(units: list[str], cuts: list[int]) -> None:
    places = [0, *sorted(cuts), len(units)]
    pieces = ["".join(units[start:end]) for start, end in pairwise(places)]
    sent = [json.dumps({"text": piece}).encode() for piece in pieces]
    events = mended([TextDelta(json_piece(data, ("text",))["text"]) for data in sent])
    texts = [event.text for event in events if isinstance(event, TextDelta)]
    assert "".join(texts) == whole("".join(units))
    for text in texts:
        text.encode()


def test_texts_thoughts_and_calls_do_not_mix() -> None:
    events = mended(
        [
            TextDelta("a\ud83d"),
            ReasoningDelta("\ud83d"),
            FunctionCallDelta(0, "id", "name", "\ud83d"),
            FunctionCallDelta(1, "", "", "\ude00"),
            FunctionCallDelta(0, "", "", "\ude00"),
            ReasoningDelta("\ude01"),
            TextDelta("\ude02b"),
        ]
    )
    assert events == [
        TextDelta("a"),
        FunctionCallDelta(0, "id", "name", ""),
        FunctionCallDelta(1, "", "", "\ufffd"),
        FunctionCallDelta(0, "", "", "😀"),
        ReasoningDelta("😁"),
        TextDelta("😂b"),
    ]


@pytest.mark.parametrize(
    "event", [TextDelta("\ud83d"), ReasoningDelta("\ud83d"), FunctionCallDelta(2, "", "", "\ud83d")]
)
def test_a_half_that_is_left_over_ends_its_own_text_once(event: ModelEvent) -> None:
    halves = Halves()
    halves.mend([event])
    (rest,) = halves.rest()
    assert rest == type(event)(2, "", "", "\ufffd") if isinstance(event, FunctionCallDelta) else type(event)("\ufffd")
    assert halves.rest() == []


@pytest.mark.parametrize(
    ("sent", "read"),
    [
        (r'{"id": "\ud83d", "text": "a\ud83d"}', {"id": "\ufffd", "text": "a\ud83d"}),
        (r'{"delta": {"parts": [{"text": "\ude00"}]}}', {"delta": {"parts": [{"text": "\ude00"}]}}),
        (r'{"text": ["\ude00", {"id": "\ude00"}]}', {"text": ["\ude00", {"id": "\ufffd"}]}),
        (r'{"text": "\ude00\ude00-\ud83d\ud83d"}', {"text": "\ude00\ufffd-\ufffd\ud83d"}),
        (r'{"text": "\ude00\ud83d"}', {"text": "\ude00\ud83d"}),
        (r'{"text": "\ud83d-\ude00"}', {"text": "\ufffd-\ufffd"}),
        (r'{"\ud83d": "\ud83db"}', {"\ufffd": "\ufffdb"}),
        (r'["\ud83d"]', ["\ufffd"]),
        (r'"\ud83d"', "\ufffd"),
    ],
)
def test_only_the_edges_of_texts_that_go_on_keep_a_half(sent: str, read: object) -> None:
    assert json_piece(sent.encode(), ("content", "text")) == read
