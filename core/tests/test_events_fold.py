"""Folding: deltas become messages, wherever a stream was cut."""

from __future__ import annotations

import copy
import sys
from collections.abc import Sequence
from dataclasses import FrozenInstanceError
from types import FrameType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield.events import (
    FunctionCallDelta,
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
from jackfield.messages import ContentItem, FunctionCall, Message, Usage
from jackfield.models import Fold, fold

IMAGE = ContentItem(image="http://x/a.png")

deltas = st.one_of(
    st.text(max_size=6).map(TextDelta),
    st.text(max_size=6).map(ReasoningDelta),
    st.builds(
        FunctionCallDelta,
        st.integers(0, 2),
        st.sampled_from(["", "call_a"]),
        st.sampled_from(["", "f", "g"]),
        st.text(max_size=6),
    ),
    st.just(MediaDelta(IMAGE)),
    st.integers(0, 9).map(lambda tokens: UsageReported(Usage(prompt_tokens=tokens))),
)


def recut(event: ModelEvent, at: int) -> Sequence[ModelEvent]:
    """The same said in two pieces, one of which may be empty."""
    match event:
        case TextDelta(text):
            return [TextDelta(text[:at]), TextDelta(text[at:])]
        case ReasoningDelta(text):
            return [ReasoningDelta(text[:at]), ReasoningDelta(text[at:])]
        case FunctionCallDelta(index, call_id, name, arguments):
            return [
                FunctionCallDelta(index, id=call_id, arguments=arguments[:at]),
                FunctionCallDelta(index, name=name, arguments=arguments[at:]),
            ]
        case _:
            return [event]


@given(st.lists(deltas, max_size=12), st.lists(st.integers(0, 6), min_size=12, max_size=12))
def test_cutting_a_stream_elsewhere_never_changes_the_fold(events: list[ModelEvent], cuts: list[int]) -> None:
    pieces = [piece for event, at in zip(events, cuts, strict=False) for piece in recut(event, at)]
    assert fold(pieces) == fold(events)


@given(st.lists(deltas, max_size=12))
def test_looking_at_an_answer_while_it_grows_never_changes_it(events: list[ModelEvent]) -> None:
    watched = Fold()
    for event in events:
        watched.feed(event)
        watched.messages()
    assert watched.response() == fold(events)


@given(st.lists(deltas, max_size=12))
def test_snapshots_handed_out_never_change_afterwards(events: list[ModelEvent]) -> None:
    answer = Fold()
    handed_out: list[tuple[list[Message], list[Message]]] = []
    for event in events:
        answer.feed(event)
        snapshot = answer.messages()
        handed_out.append((snapshot, copy.deepcopy(snapshot)))
    assert all(now == then for now, then in handed_out)


@pytest.mark.parametrize("event", [TextDelta(""), ReasoningDelta("")])
def test_an_empty_delta_makes_no_message(event: ModelEvent) -> None:
    assert fold([event]).messages == []
    assert fold([event, TextDelta("a")]).messages == [Message("assistant", "a")]


def test_an_answer_is_reasoning_then_text_then_calls_whatever_came_first() -> None:
    events = [FunctionCallDelta(0, "c", "f", "{}"), TextDelta("text"), ReasoningDelta("why")]
    assert fold(events).messages == [
        Message("assistant", "", reasoning_content="why"),
        Message("assistant", "text"),
        Message("assistant", "", function_call=FunctionCall("f", "{}"), extra={"function_id": "c"}),
    ]


def test_a_call_without_a_name_is_hidden_until_the_name_comes() -> None:
    answer = Fold()
    answer.feed(FunctionCallDelta(0, id="c", arguments='{"a": '))
    assert answer.messages() == []
    answer.feed(FunctionCallDelta(0, name="f", arguments="1}"))
    assert answer.response().get_function_calls() == [FunctionCall("f", '{"a": 1}')]


def test_what_is_told_last_of_a_call_is_its_id_and_its_name() -> None:
    (message,) = fold([FunctionCallDelta(0, "a", "f"), FunctionCallDelta(0, "b", "g")]).messages
    assert (message.function_id, message.function_call) == ("b", FunctionCall("g", ""))


def test_a_name_of_half_a_character_costs_no_answer() -> None:
    (message,) = fold([FunctionCallDelta(0, "a", "f\ud800")]).messages
    assert message.function_call == FunctionCall("f?", "")


def test_interleaved_calls_come_out_whole_and_in_the_order_of_their_indices() -> None:
    events = [
        FunctionCallDelta(1, "b", "g", '{"y"'),
        FunctionCallDelta(0, "a", "f", '{"x"'),
        FunctionCallDelta(1, arguments=": 2}"),
        FunctionCallDelta(0, arguments=": 1}"),
    ]
    response = fold(events)
    assert response.get_function_calls() == [FunctionCall("f", '{"x": 1}'), FunctionCall("g", '{"y": 2}')]
    assert [message.function_id for message in response.messages] == ["a", "b"]


def test_calls_without_ids_are_numbered_from_1() -> None:
    response = fold([FunctionCallDelta(0, name="f"), FunctionCallDelta(1, name="f")])
    assert [message.function_id for message in response.messages] == ["1", "2"]


def test_a_reset_makes_everything_before_it_void() -> None:
    lost = [
        TextDelta("no"),
        ReasoningDelta("no"),
        FunctionCallDelta(0, "c", "f"),
        MediaDelta(IMAGE),
        UsageReported(Usage(prompt_tokens=9)),
    ]
    kept = [TextDelta("yes"), ModelFinished("stop")]
    assert fold([*lost, StreamReset("again"), *kept]) == fold(kept)


def test_text_and_media_share_a_message() -> None:
    assert fold([TextDelta("a"), MediaDelta(IMAGE), TextDelta("b")]).messages == [
        Message("assistant", [ContentItem(text="ab"), IMAGE])
    ]
    assert fold([MediaDelta(IMAGE)]).messages == [Message("assistant", [IMAGE])]


def test_the_last_usage_counts_and_the_end_says_who_answered() -> None:
    response = fold(
        [
            TextDelta("a"),
            UsageReported(Usage(prompt_tokens=1)),
            UsageReported(Usage(prompt_tokens=2)),
            ModelFinished("length", model="m-1", response_id="r", created=7),
        ]
    )
    assert response.usage.prompt_tokens == 2
    assert (response.finish_reason, response.model, response.response_id, response.created) == ("length", "m-1", "r", 7)


def test_what_a_backend_needs_back_is_in_every_message_of_the_answer() -> None:
    events = [ReasoningDelta("why"), TextDelta("a"), ModelFinished("stop", response_id="r", data={"signature": "s"})]
    origins = [message.origin for message in fold(events, "acme").messages]
    assert [(origin.backend, origin.id, origin.data) for origin in origins if origin] == [
        ("acme", "r", {"signature": "s"})
    ] * 2


def test_notes_are_no_part_of_an_answer() -> None:
    notes = [RetryScheduled(1, 0.5, "busy"), PluginEvent("acme-x", {"note": "hello"})]
    assert fold([*notes, TextDelta("a")]) == fold([TextDelta("a")])


def test_each_message_carries_the_speaker() -> None:
    answer = Fold(name="Bob")
    for event in (ReasoningDelta("why"), TextDelta("a"), FunctionCallDelta(0, name="f")):
        answer.feed(event)
    assert [message.name for message in answer.messages()] == ["Bob", "Bob", "Bob"]


def _lines_run(events: Sequence[ModelEvent]) -> int:
    """How many lines of Python a fold with a snapshot after each event takes."""
    count = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    answer = Fold()
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        for event in events:
            answer.feed(event)
            answer.messages()
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize(
    "event", [TextDelta("word "), ReasoningDelta("word "), FunctionCallDelta(0, "c", "f", "word ")]
)
def test_the_work_of_a_fold_grows_with_its_length_and_no_faster(event: ModelEvent) -> None:
    assert _lines_run([event] * 400) <= 2.1 * _lines_run([event] * 200)


def test_events_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        TextDelta("a").text = "b"  # type: ignore[misc]
