"""Truncation in a model's chain: what is sent, and what is told."""

from __future__ import annotations

import pytest

from jackfield import sync
from jackfield.config import LLMConfig
from jackfield.errors import ConfigError, ContextLengthError
from jackfield.events import HistoryTrimmed, ModelEvent, TextDelta
from jackfield.messages import Message
from jackfield.request import ModelFacts
from jackfield.testing import ScriptedModel, answer
from jackfield_truncation.processor import Truncation

HISTORY = [
    Message("user", "first " * 400),
    Message("assistant", "answer"),
    Message("user", "And the second?"),
]


def _model(**generate_cfg: object) -> ScriptedModel:
    config = LLMConfig.parse({"model": "scripted", "generate_cfg": generate_cfg, "processors": ["truncation"]})
    return ScriptedModel([answer("fine"), answer("fine")], config=config)


def _events(model: ScriptedModel, history: list[Message]) -> list[ModelEvent]:
    async def gathered() -> list[ModelEvent]:
        return [event async for event in model.astream(history)]

    return sync.run(gathered())


def test_named_in_a_models_configuration_it_keeps_max_input_tokens() -> None:
    model = _model(max_input_tokens=200)
    events = _events(model, HISTORY)
    assert model.requests[0].messages[-1] is HISTORY[-1]
    assert len(str(model.requests[0].messages)) < len(str(HISTORY)) / 2
    told = events[0]
    assert isinstance(told, HistoryTrimmed)
    assert told.tokens_after <= 200 < told.tokens_before
    assert (told.dropped, told.shortened) == (0, 1)


def test_the_context_that_the_backend_states_is_kept_where_nobody_says_more() -> None:
    facts = ModelFacts(context_tokens=400)
    model = ScriptedModel([answer("fine")], facts=facts, config=_model().config)
    assert isinstance(_events(model, HISTORY)[0], HistoryTrimmed)
    assert len(str(model.requests[0].messages)) < len(str(HISTORY))


def test_a_request_that_fits_is_answered_without_a_word_about_it() -> None:
    assert isinstance(_events(_model(max_input_tokens=2000), HISTORY)[0], TextDelta)


def test_a_request_that_cannot_be_shortened_is_not_sent() -> None:
    model = _model(max_input_tokens=20)
    with pytest.raises(ContextLengthError, match="tokens too long"):
        _events(model, [Message("system", "rule " * 50), *HISTORY])
    assert model.requests == []


@pytest.mark.parametrize(
    "settings", [{"context_tokens": 0}, {"margin": 1}, {"answer_tokens": -1}, {"media_tokens": -1}]
)
def test_settings_that_do_not_fit_are_refused_by_their_name(settings: dict[str, int]) -> None:
    with pytest.raises(ConfigError, match=next(iter(settings))):
        Truncation(**settings)  # type: ignore[arg-type]
