"""Events state how they are treated, and all code that treats them reads it from there."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, get_args

import pytest

from jackfield.config import LLMConfig
from jackfield.errors import ModelOverloadedError
from jackfield.events import (
    AgentEvent,
    FunctionCallDelta,
    HistoryTrimmed,
    MediaDelta,
    ModelEvent,
    ModelFinished,
    PluginEvent,
    PreparationProgress,
    ReasoningDelta,
    RetryScheduled,
    StreamReset,
    TextDelta,
    UsageReported,
)
from jackfield.messages import ContentItem, Usage
from jackfield.models import Retry
from jackfield.testing import ScriptedModel, answer

# By class: a new event of a model belongs in here.
MODEL_EVENTS: Mapping[type, ModelEvent] = {
    type(event): event
    for event in (
        TextDelta("Hel"),
        ReasoningDelta("Hm"),
        FunctionCallDelta(0, "call_1", "add", "{}"),
        MediaDelta(ContentItem(image="http://x/a.png")),
        UsageReported(Usage(prompt_tokens=1)),
        ModelFinished("stop"),
        RetryScheduled(1, 0.5, "busy"),
        StreamReset("busy"),
        HistoryTrimmed(1, 0, 9, 5),
        PreparationProgress("reading files", 1, 2),
        PluginEvent("acme.note"),
    )
}


@pytest.mark.parametrize("kind", [*get_args(ModelEvent), *get_args(AgentEvent)], ids=lambda kind: kind.__name__)
def test_every_event_states_how_it_is_treated(kind: type) -> None:
    stated = {name: vars(kind).get(name) for name in ("is_delta", "is_note", "is_recorded")}
    assert all(isinstance(value, bool) for value in stated.values()), stated
    if stated["is_delta"]:
        assert kind in get_args(ModelEvent)
        assert stated["is_note"] is stated["is_recorded"] is False, "`TurnFinished` has the whole answer"


@pytest.mark.parametrize("kind", get_args(ModelEvent), ids=lambda kind: kind.__name__)
def test_a_failed_attempt_is_withdrawn_if_a_part_of_its_answer_was_passed_on(
    kind: type, gather: Callable[[AsyncIterator[Any]], list[Any]]
) -> None:
    async def no_wait(_: float) -> None:
        pass

    model = ScriptedModel(
        [[MODEL_EVENTS[kind], ModelOverloadedError("busy")], answer("Yes.")],
        config=LLMConfig.parse({"model": "scripted", "generate_cfg": {"max_retries": 1}}),
        processors=[Retry(sleep=no_wait, jitter=lambda: 1.0)],
    )
    passed_on, *others = gather(model.astream("q"))
    assert passed_on == MODEL_EVENTS[kind]
    is_answer = passed_on.is_delta or kind is ModelFinished
    assert (StreamReset("busy") in others) is is_answer
