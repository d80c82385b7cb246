"""An event written as JSON is read back as it was, whatever it is; anything else is refused by name."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from decimal import Decimal
from types import MappingProxyType
from typing import Any, get_args, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield import events
from jackfield.events import (
    AgentEvent,
    ModelEvent,
    ModelFinished,
    PluginEvent,
    RunEvent,
    RunFinished,
    StopReason,
    TextDelta,
)
from jackfield.messages import FINISH_REASONS, ContentItem, FinishReason, FunctionCall, Message, Origin, Usage
from jackfield_records import eventjson
from jackfield_records.eventjson import (
    Event,
    event_from_json,
    event_to_json,
    model_event_from_json,
    run_event_from_json,
    run_event_to_json,
)

KINDS = (*get_args(ModelEvent), *get_args(AgentEvent))

words = st.text(max_size=12)
any_text = st.text(st.characters(exclude_categories=()), max_size=12)  # lone surrogates included
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | any_text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(any_text, inner, max_size=3),
    max_leaves=6,
)
data = st.dictionaries(any_text, json_values, max_size=3)
plain_data = st.dictionaries(words, st.integers() | words, max_size=2)
address = st.text(min_size=1, max_size=12)
items = (
    st.builds(ContentItem, text=words)
    | st.builds(ContentItem, image=address)
    | st.builds(ContentItem, audio=st.dictionaries(address, address, min_size=1, max_size=2))
    | st.builds(ContentItem, video=st.lists(address, min_size=1, max_size=3))
)
count = st.integers(0, 2**40)
usages = st.builds(
    Usage,
    prompt_tokens=count,
    completion_tokens=count,
    total_tokens=count,
    cached_tokens=count,
    reasoning_tokens=count,
    cost=st.none() | st.decimals(0, 10, places=9).map(Decimal),
    currency=st.none() | st.just("USD"),
)
function_calls = st.builds(FunctionCall, address, words)
messages = st.builds(
    Message,
    st.sampled_from(["system", "user", "assistant"]),
    words | st.lists(items, max_size=2),
    reasoning_content=st.none() | words,
    name=st.none() | words,
    function_call=st.none() | function_calls,
    extra=st.none() | plain_data,
    origin=st.none() | st.builds(Origin, backend=words, id=st.none() | words, data=st.none() | plain_data),
)
# By the type of a field: an event that is added later is tried, or has a type that is not here, and fails.
VALUES: dict[Any, st.SearchStrategy[Any]] = {
    str: any_text,
    str | None: st.none() | any_text,
    int: st.integers(),
    bool: st.booleans(),
    int | None: st.none() | st.integers(),
    float: st.floats(0, 1e6),
    FinishReason: st.sampled_from(FINISH_REASONS),
    StopReason: st.sampled_from(get_args(StopReason)),
    Mapping[str, Any]: data,
    Mapping[str, Any] | None: st.none() | data,
    ContentItem: items,
    Usage: usages,
    Message: messages,
    FunctionCall: function_calls,
    tuple[Message, ...]: st.lists(messages, max_size=2).map(tuple),
    tuple[FunctionCall, ...]: st.lists(function_calls, max_size=2).map(tuple),
    tuple[str, ...]: st.lists(any_text, max_size=2).map(tuple),
}


def event_of(kind: type) -> st.SearchStrategy[Any]:
    """Any event of one class."""
    return st.builds(kind, **{name: VALUES[hint] for name, hint in get_type_hints(kind).items()})


def through_text(told: Any) -> Any:
    """What is read after it was in a file."""
    return json.loads(json.dumps(told, allow_nan=False))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_an_event_comes_back_as_it_was(kind: type) -> None:
    @given(event_of(kind))
    def holds(event: Event) -> None:
        for whole in (True, False):
            again = event_from_json(through_text(event_to_json(event, with_defaults=whole)))
            assert (type(again), again) == (kind, event)

    holds()


@given(st.sampled_from(KINDS).flatmap(event_of), words, st.integers(1), words, st.integers(0, 9))
def test_an_event_of_a_run_comes_back_with_its_place(
    event: Event, run_id: str, number: int, agent: str, depth: int
) -> None:
    placed = RunEvent(run_id, number, agent, depth, event)
    assert run_event_from_json(through_text(run_event_to_json(placed))) == placed


def test_every_class_of_the_events_module_is_tried() -> None:
    there = {value for value in vars(events).values() if dataclasses.is_dataclass(value)}
    assert there - {RunEvent} == set(KINDS)


def test_no_field_of_an_event_is_mistaken_for_its_name_or_its_place() -> None:
    taken = {"event", "run_id", "number", "agent", "depth"}
    assert [kind for kind in KINDS for field in dataclasses.fields(kind) if field.name in taken] == []


@pytest.mark.parametrize("reason", FINISH_REASONS)
def test_the_end_of_an_answer_keeps_the_providers_own_word(reason: Any) -> None:
    event = ModelFinished(reason, provider_reason="end_turn")
    assert event_to_json(event, with_defaults=False) == {
        "event": "ModelFinished",
        "reason": reason,
        "provider_reason": "end_turn",
    }
    assert model_event_from_json(event_to_json(event)) == event


def test_what_has_its_default_is_written_only_where_the_whole_is_wanted() -> None:
    assert event_to_json(PluginEvent("a.b"), with_defaults=False) == {"event": "PluginEvent", "name": "a.b"}
    assert event_to_json(PluginEvent("a.b")) == {"event": "PluginEvent", "name": "a.b", "data": {}}


@pytest.mark.parametrize(
    "value", [b"bytes", {1: "a"}, {"a": {2: "b"}}, math.nan, math.inf, object()], ids=lambda value: str(value)[:9]
)
def test_what_json_has_no_form_for_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match="cannot be serialized as JSON"):
        event_to_json(ModelFinished("stop", data={"x": value}))


def test_read_only_data_is_written_as_lists_and_objects() -> None:
    event = PluginEvent("a.b", MappingProxyType({"x": (1, MappingProxyType({"y": 2}))}))
    assert event_to_json(event)["data"] == {"x": [1, {"y": 2}]}


@pytest.mark.parametrize(
    ("told", "message"),
    [
        (7, "expected an object, got 7"),
        ({}, "None is not a known event; available: TextDelta"),
        ({"event": ["TextDelta"]}, "is not a known event"),
        ({"event": "TextDleta"}, "'TextDleta' is not a known event; available: TextDelta"),
        ({"event": "RunEvent"}, "'RunEvent' is not a known event"),
        ({"event": "TextDelta"}, "TextDelta needs 'text'"),
        ({"event": "TextDelta", "txet": "a"}, "TextDelta has no field 'txet'; its fields are text"),
        ({"event": "TextDelta", "text": 5}, "'text' of TextDelta: expected a string, got 5"),
        ({"event": "FunctionCallDelta", "index": "0"}, "'index' of FunctionCallDelta: expected an integer"),
        ({"event": "FunctionCallDelta", "index": True}, "expected an integer, got True"),
        ({"event": "RetryScheduled", "attempt": 1, "delay_s": "1", "error": ""}, "expected a number, got '1'"),
        ({"event": "RetryScheduled", "attempt": 1, "delay_s": math.nan, "error": ""}, "expected a number, got nan"),
        ({"event": "ModelFinished", "reason": "end_turn"}, "one of stop, length, tool_calls, content_filter, other"),
        ({"event": "ModelFinished", "reason": "stop", "model": None}, "'model' of ModelFinished: expected a string"),
        ({"event": "ModelFinished", "reason": "stop", "created": "now"}, "expected an integer, got 'now'"),
        ({"event": "PluginEvent", "name": "a", "data": []}, "'data' of PluginEvent: expected an object"),
        ({"event": "UsageReported", "usage": {"prompt_tokens": -1}}, "greater than or equal to 0"),
        ({"event": "UsageReported", "usage": {"tokens": 1}}, "tokens"),
        ({"event": "MediaDelta", "item": {}}, "must set one of"),
        ({"event": "RunStarted", "messages": {}}, "expected a list"),
        ({"event": "RunStarted", "messages": [{"role": "nobody"}]}, "'nobody' is not a valid role"),
        ({"event": "RunFinished", "stop_reason": "bored"}, "one of finished, empty_reply"),
    ],
)
def test_what_is_no_event_is_refused_with_what_is_wrong(told: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        event_from_json(told)


def test_an_event_of_a_run_is_none_of_a_model() -> None:
    told = event_to_json(RunFinished("finished", (), Usage()))
    assert event_from_json(told) == RunFinished("finished", (), Usage())
    with pytest.raises(ValueError, match="'RunFinished' is not a known event; available: TextDelta"):
        model_event_from_json(told)


@pytest.mark.parametrize(
    ("change", "message"),
    [({"number": "1"}, "'number' of RunEvent"), ({"place": 1}, "TextDelta has no field 'place'")],
)
def test_a_wrong_place_is_refused(change: Mapping[str, Any], message: str) -> None:
    told = run_event_to_json(RunEvent("r", 1, "a", 0, TextDelta("x")))
    with pytest.raises(ValueError, match=message):
        run_event_from_json({**told, **change})


def test_an_event_without_a_place_is_none_of_a_run() -> None:
    with pytest.raises(ValueError, match="RunEvent needs 'run_id', 'number', 'agent', 'depth'"):
        run_event_from_json(event_to_json(TextDelta("x")))


def test_every_public_name_is_a_function_or_a_type_of_json() -> None:
    mine = {name for name, value in vars(eventjson).items() if getattr(value, "__module__", "") == eventjson.__name__}
    assert {name for name in mine if not name.startswith("_")} == {
        "event_from_json",
        "event_to_json",
        "messages_from_json",
        "model_event_from_json",
        "run_event_from_json",
        "run_event_to_json",
        "value_to_json",
    }
