"""What is written comes back as it was, whatever the event."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jackfield.events import (
    FunctionCallDelta,
    HistoryTrimmed,
    MediaDelta,
    ModelEvent,
    ModelFinished,
    PluginEvent,
    ReasoningDelta,
    RetryScheduled,
    StreamReset,
    TextDelta,
    UsageReported,
)
from jackfield.messages import FINISH_REASONS, ContentItem, Usage
from jackfield_cache.codec import decode, encode

TEXT = st.text(st.characters(exclude_categories=()), max_size=12)  # lone surrogates included
COUNT = st.integers(0, 2**40)
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
DATA = st.dictionaries(TEXT, PLAIN, max_size=3)
ADDRESS = st.text(min_size=1, max_size=12)
ITEMS = (
    st.builds(ContentItem, text=ADDRESS)
    | st.builds(ContentItem, image=ADDRESS)
    | st.builds(ContentItem, audio=st.dictionaries(ADDRESS, ADDRESS, min_size=1, max_size=2))
    | st.builds(ContentItem, video=st.lists(ADDRESS, min_size=1, max_size=3))
)
USAGE = st.builds(
    Usage,
    prompt_tokens=COUNT,
    completion_tokens=COUNT,
    total_tokens=COUNT,
    cached_tokens=COUNT,
    reasoning_tokens=COUNT,
    cost=st.none() | st.decimals(0, 10, places=9).map(Decimal),
    currency=st.none() | st.just("USD"),
)
EVENTS: dict[type, st.SearchStrategy[ModelEvent]] = {
    TextDelta: st.builds(TextDelta, TEXT),
    ReasoningDelta: st.builds(ReasoningDelta, TEXT),
    FunctionCallDelta: st.builds(FunctionCallDelta, st.integers(0, 9), TEXT, TEXT, TEXT),
    MediaDelta: st.builds(MediaDelta, ITEMS),
    UsageReported: st.builds(UsageReported, USAGE),
    ModelFinished: st.builds(
        ModelFinished,
        st.sampled_from(FINISH_REASONS),
        TEXT,
        st.none() | TEXT,
        st.none() | st.integers(),
        st.none() | DATA,
        TEXT,
    ),
    RetryScheduled: st.builds(RetryScheduled, st.integers(1, 9), st.floats(0, 60), TEXT),
    StreamReset: st.builds(StreamReset, TEXT),
    HistoryTrimmed: st.builds(HistoryTrimmed, *[st.integers(0, 9)] * 4),
    PluginEvent: st.builds(PluginEvent, TEXT, DATA),
}


def test_every_event_of_a_model_is_among_those_that_are_tried() -> None:
    assert set(EVENTS) == set(get_args(ModelEvent))


@pytest.mark.parametrize("kind", EVENTS, ids=lambda kind: kind.__name__)
def test_an_event_comes_back_as_it_was(kind: type) -> None:
    @settings(max_examples=15)
    @given(st.lists(EVENTS[kind], max_size=3))
    def holds(events: list[ModelEvent]) -> None:
        assert decode(encode(events)) == events

    holds()


@pytest.mark.parametrize(
    "value",
    [b"bytes", (1, 2), {1: "a"}, {"a": {2: "b"}}, math.nan, math.inf, object()],
    ids=lambda value: str(value)[:9],
)
def test_what_would_come_back_as_something_else_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match="JSON"):
        encode([ModelFinished("stop", data={"x": value})])


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff",
        b"{}x",
        b"7",
        b"[[]]",
        b"[7]",
        b'[["no"]]',
        b'[["text"]]',
        b'[["finished", "eos"]]',
        b'[["usage",{"prompt_tokens":-1}]]',
        b'[["media"]]',
        b"[" * 100_000,
    ],
    ids=lambda content: str(content[:12]),
)
def test_what_are_no_events_is_a_value_error(content: bytes) -> None:
    with pytest.raises(ValueError, match="these are no events"):
        decode(content)
