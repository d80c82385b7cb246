"""Who is asked when a model fails, and what comes out."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield import PluginHost, sync
from jackfield.config import GenerateConfig, LLMConfig
from jackfield.errors import (
    ConfigError,
    ContentFilterError,
    ContextLengthError,
    LimitReachedError,
    ModelAuthError,
    ModelConnectionError,
    ModelNotFoundError,
    ModelOverloadedError,
    ModelRequestError,
    ModelResponseError,
    ModelServiceError,
    ModelTimeoutError,
    PluginError,
    PluginNotFoundError,
    RateLimitedError,
    UnsupportedInputError,
)
from jackfield.events import (
    ModelEvent,
    ModelFinished,
    PluginEvent,
    RetryScheduled,
    StreamReset,
    TextDelta,
    UsageReported,
)
from jackfield.messages import Usage
from jackfield.models import ONLY_BEFORE_OUTPUT, Retry, fold, get_chat_model
from jackfield.processors import CallFormatProcessor, Preprocessor, in_order
from jackfield.request import ChatRequest, ModelFacts
from jackfield.settings import Settings
from jackfield.testing import ScriptedModel, answer
from jackfield_fallback.causes import cause_of
from jackfield_fallback.config import FallbackConfig
from jackfield_fallback.processor import SWITCHED_EVENT, Fallback
from jackfield_fallback.rests import Rests
from jackfield_testkit.replies import error as error_reply
from jackfield_testkit.replies import text
from jackfield_testkit.server import FakeOpenAI

Scripted = Callable[..., ScriptedModel]
Ask = Callable[..., list[ModelEvent]]

WEATHER = {"name": "get_weather", "parameters": {"type": "object", "properties": {}}}
CAUSES: list[tuple[ModelServiceError, str]] = [
    (RateLimitedError("x"), "rate_limit"),
    (ModelOverloadedError("x"), "overload"),
    (ModelTimeoutError("x"), "timeout"),
    (ModelConnectionError("x"), "connection"),
    (ModelResponseError("x"), "response"),
    (ModelAuthError("x"), "auth"),
    (ContextLengthError("x"), "context"),
    (ContentFilterError("x"), "content_filter"),
    (UnsupportedInputError("x"), "unsupported_input"),
    (ModelNotFoundError("x"), "not_found"),
]


def _switches(events: list[ModelEvent]) -> list[tuple[str, str, str]]:
    told = [event.data for event in events if isinstance(event, PluginEvent) and event.name == SWITCHED_EVENT]
    return [(data["failed"], data["asked"], data["cause"]) for data in told]


# --- by cause ---


@pytest.mark.parametrize(("error", "cause"), CAUSES, ids=lambda value: value if isinstance(value, str) else "")
def test_the_model_for_the_cause_is_asked(scripted: Scripted, ask: Ask, error: ModelServiceError, cause: str) -> None:
    others = {name: scripted(name, answer(f"from {name}")) for _, name in CAUSES}
    first = scripted("first", [error], fallback=Fallback(**others))
    events = ask(first)
    assert fold(events).get_content() == f"from {cause}"
    assert _switches(events) == [("first", f"scripted:{cause}", cause)]


def test_each_error_of_a_model_has_a_setting_or_falls_to_any() -> None:
    settings_ = set(FallbackConfig.model_fields) - {"any", "cooldown_s", "max_rest_s"}
    assert {cause for _, cause in CAUSES} == settings_
    assert {cause_of(ModelRequestError("x")), cause_of(ModelServiceError("x"))} == {"request", "other"}


def test_a_rate_limit_falls_to_the_models_of_overload_unless_it_has_its_own(scripted: Scripted, ask: Ask) -> None:
    small = scripted("small", answer("a"), answer("b"))
    assert fold(ask(scripted("first", [RateLimitedError("x")], fallback=Fallback(overload=small)))).get_content() == "a"
    own = scripted("own", answer("c"))
    both = Fallback(overload=small, rate_limit=own)
    assert fold(ask(scripted("first", [RateLimitedError("x")], fallback=both))).get_content() == "c"


def test_those_of_the_cause_are_asked_in_order_and_then_those_for_any_each_once(scripted: Scripted, ask: Ask) -> None:
    one, two = (scripted(name, [ContextLengthError(name)]) for name in ("one", "two"))
    three = scripted("three", answer("at last"))
    first = scripted("first", [ModelOverloadedError("x")], fallback=Fallback(overload=[one, two], any=[two, three]))
    events = ask(first)
    assert fold(events).get_content() == "at last"
    assert _switches(events) == [
        ("first", "scripted:one", "overload"),
        ("scripted:one", "scripted:two", "context"),
        ("scripted:two", "scripted:three", "context"),
    ]
    assert len(two.requests) == 1


def test_a_cause_without_models_is_raised_as_it_was(scripted: Scripted, ask: Ask) -> None:
    error = ContextLengthError("too long")
    small = scripted("small", answer("a"))
    with pytest.raises(ContextLengthError) as caught:
        ask(scripted("first", [error], fallback=Fallback(overload=small)))
    assert caught.value is error
    assert not hasattr(error, "__notes__")
    assert small.requests == []


@pytest.mark.parametrize("error", [LimitReachedError("spent", limit="cost"), ConfigError("wrong"), ValueError("bug")])
def test_what_no_model_can_mend_is_raised_as_it_is(scripted: Scripted, ask: Ask, error: Exception) -> None:
    small = scripted("small", answer("a"))
    with pytest.raises(type(error)) as caught:
        ask(scripted("first", [error], fallback=Fallback(any=small)))
    assert caught.value is error
    assert small.requests == []


def test_if_all_fail_the_first_error_is_raised_and_the_others_are_in_its_notes(
    scripted: Scripted, ask: Ask, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    error = ModelOverloadedError("busy")
    others = [
        scripted("one", [ModelAuthError("no right")]),
        "openai:needs-a-key",
        scripted("broken", [PluginError("it cannot be loaded")]),
    ]
    first = scripted("first", [error], fallback=Fallback(any=others))
    with pytest.raises(ModelOverloadedError) as caught:
        ask(first)
    assert caught.value is error
    notes = error.__notes__
    assert notes[0] == "scripted:one: ModelAuthError: no right"
    assert notes[1].startswith("openai:needs-a-key: MissingSecretError: ")
    assert notes[2] == "scripted:broken: PluginError: it cannot be loaded"


def test_an_answer_that_ends_in_the_middle_is_given_by_another_model(scripted: Scripted, ask: Ask) -> None:
    small = scripted("small", answer("whole"))
    first = scripted("first", [TextDelta("hal")], [TextDelta("hal")], fallback=Fallback(response=small))
    assert fold(ask(first)).get_content() == "whole"
    with pytest.raises(ModelResponseError, match="incomplete response"):
        ask(scripted("first", [TextDelta("hal")], fallback=Fallback(overload=small)))
    failing = [TextDelta("whole"), ModelFinished("stop"), ModelOverloadedError("x")]
    with pytest.raises(ModelOverloadedError) as caught:
        ask(scripted("first", failing, fallback=Fallback(any=scripted("other", [TextDelta("hal")]))))
    assert caught.value.__notes__ == [
        "scripted:other: ModelResponseError: scripted:other returned an incomplete response"
    ]


# --- what the other model is asked ---


def test_the_other_model_is_asked_what_was_asked(scripted: Scripted, ask: Ask) -> None:
    small = scripted("small", answer("a"))
    first = scripted(
        "first",
        [ModelOverloadedError("x")],
        fallback=Fallback(any=small),
        generate_cfg={
            "temperature": 0.3,
            "extra_headers": {"Authorization": "Bearer sk-secret"},
            "extra_body": {"only": "here"},
            "max_input_tokens": 10,
            "reasoning_effort": "low",
            "fncall_prompt_type": "native",
            "send_stop": False,
            "thought_in_content": True,
            "use_raw_api": False,
            "stop": ["END"],
        },
    )
    ask(first, "什么", WEATHER, config={"function_choice": "get_weather", "lang": "en"}, metadata={"mine": 1})
    (request,) = small.requests
    (original,) = first.requests
    assert request.messages == original.messages
    assert [dict(function) for function in request.functions] == [WEATHER]
    assert (request.model, request.lang, request.metadata["mine"]) == ("small", "en", 1)
    config = request.config
    assert (config.temperature, config.function_choice, config.stop) == (0.3, "get_weather", ("END",))
    assert (config.extra_headers, config.extra_body, config.max_input_tokens) == ({}, {}, None)
    own = {"reasoning_effort", "fncall_prompt_type", "send_stop", "thought_in_content", "use_raw_api"}
    assert not own & config.model_fields_set


@pytest.mark.parametrize(
    ("own", "asked", "max_retries"),
    [
        ({}, {}, 0),
        ({"max_retries": 2}, {}, 2),
        ({}, {"max_retries": 3}, 3),
        ({"max_retries": 2}, {"max_retries": 3}, 2),
    ],
)
def test_the_other_model_retries_only_if_that_is_asked_for(
    scripted: Scripted, ask: Ask, own: dict[str, int], asked: dict[str, int], max_retries: int
) -> None:
    small = scripted("small", answer("a"))
    small.config = small.config.model_copy(update={"generate_cfg": GenerateConfig(**own)})  # a script disables retries
    ask(scripted("first", [ModelOverloadedError("x")], fallback=Fallback(any=small)), config=asked)
    assert small.requests[0].config.max_retries == max_retries


def test_the_other_models_own_options_are_kept_but_for_what_the_question_is_about(scripted: Scripted, ask: Ask) -> None:
    own = {"temperature": 0.9, "extra_body": {"its": "own"}, "max_input_tokens": 99, "stop": ["FIN"], "seed": 1}
    small = scripted("small", answer("a"), generate_cfg=own)
    first = scripted("first", [ModelOverloadedError("x")], fallback=Fallback(any=small))
    ask(first, config={"temperature": 0.1, "max_tokens": 7, "seed": 5, "stop": ["END"], "extra_body": {"x": 1}})
    config = small.requests[0].config
    assert (config.temperature, config.max_tokens, config.seed) == (0.9, 7, 5)
    assert (config.extra_body, config.max_input_tokens, config.stop) == ({"its": "own"}, 99, ("FIN", "END"))


def test_tools_written_as_text_for_the_first_model_are_native_for_the_other(scripted: Scripted, ask: Ask) -> None:
    class Written(Preprocessor):
        name = "call_format"
        phase = "format"

        def prepare(self, request: ChatRequest) -> ChatRequest:
            from dataclasses import replace

            return replace(request, functions=())

    small = scripted("small", answer("a"))
    processors = [Fallback(any=small), Written()]
    first = scripted("first", [ModelOverloadedError("x")], processors=processors)
    ask(first, "hello", WEATHER)
    assert (len(first.requests[0].functions), len(small.requests[0].functions)) == (0, 1)


def test_a_model_that_takes_no_image_is_passed_over(scripted: Scripted, ask: Ask) -> None:
    blind = scripted("blind", facts=ModelFacts(images=False))
    seeing = scripted("seeing", answer("a cat"))
    first = scripted("first", [ModelOverloadedError("x")], fallback=Fallback(any=[blind, seeing]))
    image = [{"image": "data:image/png;base64,iVBORw0KGgo="}]
    assert fold(ask(first, image)).get_content() == "a cat"
    assert blind.requests == []


def test_a_model_that_sees_helps_one_that_does_not(scripted: Scripted, ask: Ask) -> None:
    seeing = scripted("seeing", answer("a cat"))
    fallback = Fallback(unsupported_input=seeing)
    first = scripted("first", facts=ModelFacts(images=False), fallback=fallback)
    assert fold(ask(first, [{"image": "data:image/png;base64,iVBORw0KGgo="}])).get_content() == "a cat"


def test_a_model_that_stands_in_looks_for_no_stand_in_of_its_own(scripted: Scripted, ask: Ask) -> None:
    third = scripted("third", answer("a"))
    second = scripted("second", [ModelOverloadedError("y")], fallback=Fallback(any=third))
    with pytest.raises(ModelOverloadedError, match="x"):
        ask(scripted("first", [ModelOverloadedError("x")], fallback=Fallback(any=second)))
    assert third.requests == []


# --- the place in the chain ---


def test_redaction_stands_outside_and_the_call_format_and_retries_inside() -> None:
    class Redaction(Preprocessor):
        name = "redaction"
        phase = "format"
        before = ("call_format",)

        def prepare(self, request: ChatRequest) -> ChatRequest:
            return request

    class Format(Redaction):
        name = CallFormatProcessor.name
        before = ()

    chain = in_order([Retry(), Format(), Fallback(), Redaction()])
    assert [one.name for one in chain] == ["redaction", "fallback", "call_format", "retry"]


def test_the_first_model_retries_before_another_is_asked(scripted: Scripted, ask: Ask) -> None:
    async def no_sleep(_: float) -> None:
        return None

    small = scripted("small", answer("a"))
    processors = [Fallback(overload=small), Retry(sleep=no_sleep)]
    error = ModelOverloadedError("x")
    first = scripted("first", [error], [error], [error], processors=processors, generate_cfg={"max_retries": 2})
    events = ask(first)
    assert len(first.requests) == 3
    assert [type(event) for event in events[:3]] == [RetryScheduled, RetryScheduled, PluginEvent]


# --- what is told ---


def test_what_was_out_is_made_void_and_only_then(scripted: Scripted, ask: Ask) -> None:
    for begun in ([], [TextDelta("half an ans")], [TextDelta("a"), StreamReset("again")]):
        small = scripted("small", answer("whole"))
        first = scripted("first", [*begun, ModelOverloadedError("x")], fallback=Fallback(any=small))
        events = ask(first)
        assert fold(events).get_content() == "whole"
        assert len([event for event in events if isinstance(event, StreamReset)]) == bool(begun)


def test_a_consumer_that_cannot_be_told_gets_the_error_once_something_is_out(scripted: Scripted, ask: Ask) -> None:
    small = scripted("small", answer("whole"))
    metadata = {ONLY_BEFORE_OUTPUT: True}
    error = ModelOverloadedError("x")
    with pytest.raises(ModelOverloadedError):
        ask(scripted("first", [TextDelta("h"), error], fallback=Fallback(any=small)), metadata=metadata)
    assert small.requests == []
    nothing_out = scripted("first", [UsageReported(Usage()), error], fallback=Fallback(any=small))
    assert fold(ask(nothing_out, metadata=metadata)).get_content() == "whole"


def test_the_note_is_in_the_language_of_the_conversation(scripted: Scripted, ask: Ask) -> None:
    first = scripted("first", [ModelOverloadedError("x")], fallback=Fallback(any=scripted("small", answer("a"))))
    (event,) = [event for event in ask(first, "你好") if isinstance(event, PluginEvent)]
    assert "无法回答" in event.data["note"]


@pytest.mark.parametrize("own", [{}, {"lang": "en"}], ids=["none of its own", "one of its own"])
@pytest.mark.parametrize(
    ("configured", "asked"), [({"lang": "zh"}, {}), ({}, {"lang": "zh"})], ids=["configuration", "call"]
)
def test_the_other_model_is_asked_in_the_language_of_the_first(
    scripted: Scripted, ask: Ask, configured: dict[str, Any], asked: dict[str, Any], own: dict[str, Any]
) -> None:
    small = scripted("small", answer("a"), generate_cfg=own)
    first = scripted("first", [ModelOverloadedError("x")], fallback=Fallback(any=small), generate_cfg=configured)
    ask(first, **asked)
    assert (first.requests[0].lang, small.requests[0].lang) == ("zh", "zh")


def test_what_failed_attempts_spent_is_in_the_usage(scripted: Scripted, ask: Ask) -> None:
    spent = UsageReported(Usage(prompt_tokens=10, completion_tokens=2, cost=Decimal("0.5"), currency="USD"))
    more = Usage(prompt_tokens=3, completion_tokens=4, cost=Decimal("0.25"), currency="USD")
    small = scripted("small", answer("a", usage=more), [TextDelta("a"), ModelFinished("stop")])
    failing = [spent, StreamReset("again"), spent, ModelOverloadedError("x")]
    first = scripted("first", failing, failing, fallback=Fallback(any=small))
    usage = fold(ask(first)).usage
    assert (usage.prompt_tokens, usage.completion_tokens, usage.cost) == (23, 8, Decimal("1.25"))
    assert fold(ask(first)).usage.prompt_tokens == 20  # the other said nothing of its own


def test_what_a_backend_wants_back_is_not_given_to_another(scripted: Scripted, ask: Ask) -> None:
    ended = [TextDelta("a"), ModelFinished("stop", model="small-1", response_id="r", data={"signature": "s"})]
    first = scripted("first", [ModelOverloadedError("x")], fallback=Fallback(any=scripted("small", ended)))
    events = ask(first)
    assert events[-1] == ModelFinished("stop", model="small-1", response_id="r")
    assert UsageReported not in map(type, events), "no model reported anything"


# --- time ---


@pytest.mark.parametrize("deadline", [10, 12], ids=["passed", "reached"])
def test_the_deadline_is_for_all_models_together(scripted: Scripted, ask: Ask, clock: Any, deadline: int) -> None:
    def slow(_: ChatRequest) -> list[Exception]:
        clock.now += 4
        return [ModelOverloadedError("x")]

    one = ScriptedModel(slow, config={"model": "one", "generate_cfg": {"deadline": 100}}, processors=[])
    two = ScriptedModel(slow, config={"model": "two", "generate_cfg": {"deadline": 1}}, processors=[])
    three = scripted("three", answer("a"))
    first = ScriptedModel(slow, processors=[Fallback(any=[one, two, three], clock=clock)])
    with pytest.raises(ModelOverloadedError):
        ask(first, config={"deadline": deadline})
    assert [one.requests[0].config.deadline, two.requests[0].config.deadline] == [deadline - 4, 1]
    assert three.requests == []


def test_a_model_that_was_overloaded_rests_and_is_asked_again_afterwards(
    scripted: Scripted, ask: Ask, clock: Any
) -> None:
    small = scripted("small", *[answer(f"{number}") for number in range(3)])
    fallback = Fallback(overload=small, cooldown_s=30, clock=clock)
    first = scripted("first", [ModelOverloadedError("x")], answer("back"), fallback=fallback)
    assert fold(ask(first)).get_content() == "0"
    clock.now += 29
    events = ask(first)
    assert fold(events).get_content() == "1"
    assert _switches(events) == [("first", "scripted:small", "overload")]
    clock.now += 2
    assert fold(ask(first)).get_content() == "back"
    assert len(first.requests) == 2


def test_a_rest_lasts_as_long_as_the_server_asks(scripted: Scripted, ask: Ask, clock: Any) -> None:
    small = scripted("small", answer("a"), answer("b"))
    fallback = Fallback(overload=small, cooldown_s=5, clock=clock)
    first = scripted("first", [RateLimitedError("x", retry_after_s=60)], answer("back"), fallback=fallback)
    ask(first)
    clock.now += 59
    assert fold(ask(first)).get_content() == "b"
    clock.now += 2
    assert fold(ask(first)).get_content() == "back"


@pytest.mark.parametrize("asked", [1e9, float("inf"), float("nan")])
@pytest.mark.parametrize(("settings", "rest_s"), [({}, 600), ({"max_rest_s": 50}, 50), ({"max_rest_s": 1}, 5)])
def test_a_server_cannot_choose_how_long_its_model_rests(
    scripted: Scripted, ask: Ask, clock: Any, asked: float, settings: dict[str, Any], rest_s: float
) -> None:
    small = scripted("small", answer("a"), answer("b"))
    fallback = Fallback(overload=small, cooldown_s=5, clock=clock, **settings)
    first = scripted("first", [RateLimitedError("x", retry_after_s=asked)], answer("back"), fallback=fallback)
    ask(first)
    clock.now += rest_s - 1
    assert fold(ask(first)).get_content() == "b"
    clock.now += 2
    assert fold(ask(first)).get_content() == "back"


def test_a_model_that_rests_is_asked_after_all_when_the_others_fail(scripted: Scripted, ask: Ask, clock: Any) -> None:
    small = scripted("small", answer("a"), [ModelRequestError("no")])
    fallback = Fallback(any=small, cooldown_s=30, clock=clock)
    first = scripted("first", [ModelOverloadedError("x")], answer("back"), fallback=fallback)
    ask(first)
    events = ask(first)
    assert fold(events).get_content() == "back"
    assert _switches(events) == [("first", "scripted:small", "overload"), ("scripted:small", "first", "request")]


def test_while_the_first_model_rests_all_that_stand_in_for_it_are_asked_before_it(
    scripted: Scripted, ask: Ask, clock: Any
) -> None:
    one = scripted("one", answer("1"), [ModelRequestError("no")])
    fallback = Fallback(any=[one, scripted("two", answer("2"))], cooldown_s=30, clock=clock)
    first = scripted("first", [ModelOverloadedError("x")], answer("back"), fallback=fallback)
    assert [fold(ask(first)).get_content() for _ in range(2)] == ["1", "2"]
    assert len(first.requests) == 1


def test_the_error_of_a_stand_in_is_raised_alone_if_no_other_model_may_be_asked(
    scripted: Scripted, ask: Ask, clock: Any
) -> None:
    error = ModelRequestError("no")
    small = scripted("small", answer("a"), [TextDelta("h"), error])
    fallback = Fallback(any=small, cooldown_s=30, clock=clock)
    first = scripted("first", [ModelOverloadedError("x")], fallback=fallback)
    ask(first)
    with pytest.raises(ModelRequestError) as caught:
        ask(first, metadata={ONLY_BEFORE_OUTPUT: True})
    assert caught.value is error
    assert not hasattr(error, "__notes__")
    assert len(first.requests) == 1


def test_a_model_that_fails_after_those_that_stand_in_for_it_ends_the_call(
    scripted: Scripted, ask: Ask, clock: Any
) -> None:
    small = scripted("small", answer("a"), [ModelRequestError("no")], answer("too late"))
    first = scripted(
        "first",
        [ModelOverloadedError("x")],
        [ModelTimeoutError("y")],
        fallback=Fallback(any=small, cooldown_s=30, clock=clock),
    )
    ask(first)
    with pytest.raises(ModelTimeoutError) as caught:
        ask(first)
    assert caught.value.__notes__ == ["scripted:small: ModelRequestError: no"]
    assert (len(small.requests), len(first.requests)) == (2, 2), "each is asked once"


def test_models_that_rest_are_passed_over_unless_all_of_them_rest(scripted: Scripted, ask: Ask, clock: Any) -> None:
    one = scripted("one", [ModelOverloadedError("x")], answer("one"))
    two = scripted("two", answer("two"), answer("two"), [ModelTimeoutError("x")])
    fallback = Fallback(any=[one, two], cooldown_s=30, clock=clock)
    first = scripted("first", *[[ModelResponseError("x")]] * 4, fallback=fallback)
    assert [fold(ask(first)).get_content() for _ in range(2)] == ["two", "two"]
    assert len(one.requests) == 1
    with pytest.raises(ModelResponseError):
        ask(first)
    assert fold(ask(first)).get_content() == "one"


def test_while_the_first_model_rests_models_that_rest_too_are_passed_over(
    scripted: Scripted, ask: Ask, clock: Any
) -> None:
    one = scripted("one", [ModelOverloadedError("x")], answer("one"))
    two = scripted("two", answer("two"), answer("two"))
    fallback = Fallback(any=[one, two], cooldown_s=30, clock=clock)
    first = scripted("first", [ModelOverloadedError("x")], answer("back"), fallback=fallback)
    assert [fold(ask(first)).get_content() for _ in range(2)] == ["two", "two"]
    assert (len(first.requests), len(one.requests)) == (1, 1)


def test_a_cause_that_time_does_not_mend_gives_no_rest(scripted: Scripted, ask: Ask, clock: Any) -> None:
    small = scripted("small", answer("a"))
    fallback = Fallback(any=small, cooldown_s=30, clock=clock)
    first = scripted("first", [ContextLengthError("x")], answer("short"), fallback=fallback)
    ask(first)
    assert fold(ask(first)).get_content() == "short"


@pytest.mark.parametrize(
    ("error", "rests"),
    [
        *((error, cause in ("rate_limit", "overload", "timeout", "connection")) for error, cause in CAUSES),
        (ModelRequestError("x"), False),
        (ModelServiceError("x"), False),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_a_model_rests_after_failures_that_the_next_call_would_meet_as_well(
    scripted: Scripted, ask: Ask, clock: Any, error: ModelServiceError, rests: bool
) -> None:
    small = scripted("small", answer("a"), answer("b"))
    fallback = Fallback(any=small, cooldown_s=30, clock=clock)
    first = scripted("first", [error], answer("itself"), fallback=fallback)
    ask(first)
    clock.now += 29.9
    assert fold(ask(first)).get_content() == ("b" if rests else "itself")
    assert (len(small.requests), len(first.requests)) == ((2, 1) if rests else (1, 2))
    if rests:
        clock.now += 0.1
        assert fold(ask(first)).get_content() == "itself"


def test_without_a_cooldown_no_model_rests(scripted: Scripted, ask: Ask, clock: Any) -> None:
    small = scripted("small", answer("a"))
    first = scripted("first", [ModelOverloadedError("x")], answer("itself"), fallback=Fallback(any=small, clock=clock))
    ask(first)
    assert fold(ask(first)).get_content() == "itself"


@pytest.mark.parametrize(
    ("retry_after_s", "rest_s"),
    [(None, 30), (10, 30), (30, 30), (45, 45), (60, 60), (61, 60), (1e9, 60), (float("nan"), 60)],
)
def test_a_rest_is_the_longer_of_the_cooldown_and_what_the_server_asks_up_to_the_longest(
    clock: Any, retry_after_s: float | None, rest_s: float
) -> None:
    rests = Rests(30, 60, clock)
    rests.note("m", ModelOverloadedError("x", retry_after_s=retry_after_s))
    rest = rests.of("m")
    assert rest is not None
    assert (rest.until - clock.now, rest.cause) == (rest_s, "overload")
    assert rests.of("other") is None
    clock.now += rest_s
    assert rests.of("m") is None


# --- settings ---


def test_models_may_be_given_in_any_form(scripted: Scripted, ask: Ask) -> None:
    model = scripted("object", answer("a"))
    forms: list[Any] = [
        "openai:a",
        {"model": "a", "model_type": "openai"},
        LLMConfig(model="a", model_type="openai"),
        model,
    ]
    for form in forms:
        assert FallbackConfig.parse({"any": form}).any == (form,)
        assert FallbackConfig.parse({"any": [form]}).any == (form,)
    assert FallbackConfig.parse({"any": forms}).by_cause()["any"] == tuple(forms)
    assert FallbackConfig.parse({"overload": forms}).by_cause()["rate_limit"] == tuple(forms)
    both = FallbackConfig.parse({"overload": "openai:a", "rate_limit": "openai:b"}).by_cause()
    assert (both["overload"], both["rate_limit"]) == (("openai:a",), ("openai:b",))
    assert set(both) == set(FallbackConfig.model_fields) - {"cooldown_s", "max_rest_s"}


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"overload": [3]}, "overload"),
        ({"overload": [""]}, "overload"),
        ({"overload": [" "]}, "overload"),
        ({"overloaded": "openai:m"}, "'overload'"),
        ({"cooldown_s": 0}, "cooldown_s"),
    ],
)
def test_settings_that_do_not_fit_are_named(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        FallbackConfig.parse(wrong)


def test_a_backend_that_is_not_installed_is_told_when_the_chain_is_made() -> None:
    with pytest.raises(PluginNotFoundError, match="nowhere"):
        Fallback(overload="nowhere:model")
    with pytest.raises(ConfigError, match="backend"):
        Fallback(overload="")
    with pytest.raises(PluginNotFoundError, match="openai"):
        Fallback(overload="openai:model", host=PluginHost(paths=[]))


def test_models_are_made_by_the_host_and_shown_without_white_space() -> None:
    host = PluginHost(Settings())
    forms = [" openai:small ", LLMConfig(model="claude-small"), {"model": "claude-small", "model_type": None}]
    candidates = Fallback(any=forms, host=host)._models["any"]
    assert [candidate.name for candidate in candidates] == ["openai:small", "claude-small", "claude-small"]
    model = candidates[0].model()
    assert model.host is host
    sync.run(model.aclose())


def test_a_key_is_shown_nowhere(scripted: Scripted, ask: Ask) -> None:
    secret = {"model_type": "openai", "model": "m", "api_key": "sk-secret", "base_url": "http://127.0.0.1:9/v1"}
    fallback = Fallback(any=[secret], cooldown_s=1)
    first = scripted("first", [ModelOverloadedError("x")], fallback=fallback)
    with pytest.raises(ModelOverloadedError) as caught:
        ask(first)
    shown = [repr(fallback), repr(fallback.config), str(fallback.config), *caught.value.__notes__]
    assert "openai:m: ModelConnectionError" in caught.value.__notes__[0]
    assert "sk-secret" not in " ".join(shown)
    with pytest.raises(ConfigError) as wrong:
        FallbackConfig.parse({"any": [secret, 3]})
    assert "sk-secret" not in str(wrong.value)
    with pytest.raises(ConfigError) as nested:
        FallbackConfig.parse({"any": [["sk-secret"]]})
    assert "sk-secret" not in str(nested.value)


@pytest.mark.parametrize(
    "cause", [name for name in FallbackConfig.model_fields if name not in ("cooldown_s", "max_rest_s")]
)
def test_the_models_of_no_cause_are_shown_with_a_configuration(cause: str) -> None:
    secret = {"model_type": "openai", "model": "m", "api_key": "sk-secret"}
    config = FallbackConfig.parse({cause: [secret]})
    assert getattr(config, cause)
    assert "sk-secret" not in f"{config!r} {config}"


# --- for real ---


def test_it_is_found_by_name_and_asks_another_server() -> None:
    with FakeOpenAI() as busy, FakeOpenAI() as free:
        busy.reply(error_reply(503, "overloaded"))
        free.reply(text("Hello.").cut(2))
        other = {"model_type": "openai", "model": "small", "base_url": free.url, "api_key": "sk-other"}
        model = get_chat_model(
            {
                "model_type": "openai",
                "model": "large",
                "base_url": busy.url,
                "api_key": "sk-example",
                "processors": [{"name": "fallback", "overload": [other]}],
            },
            host=PluginHost(),
        )
        assert model.quick_chat("Hi") == "Hello."
        assert free.requests[0].json["model"] == "small"
        assert "sk-example" not in str(free.requests[0].headers)
        sync.run(model.aclose())


def test_enabled_for_all_models_it_stands_in_once_and_does_not_go_round_in_circles() -> None:
    with FakeOpenAI() as server:
        server.reply(*[error_reply(503, "overloaded")] * 4)
        other = {"model_type": "openai", "model": "small", "base_url": server.url, "api_key": "sk-example"}
        name = "processor.fallback"
        host = PluginHost(Settings(enabled=(name,), options={name: {"overload": [other]}}))
        model = get_chat_model({**other, "model": "large"}, host=host)
        with pytest.raises(ModelOverloadedError):
            model.quick_chat("Hi")
        assert [request.json["model"] for request in server.requests] == ["large", "small"]
        sync.run(model.aclose())


def test_models_are_made_when_needed_once_and_closed_and_those_given_are_left_open(scripted: Scripted) -> None:
    closed: list[str] = []

    class Closing(ScriptedModel):
        async def aclose(self) -> None:
            closed.append(self.config.model)

    given = Closing([], config={"model": "given"}, processors=[])
    small, alike = ({"model_type": "openai", "model": "small"} for _ in range(2))
    fallback = Fallback(any=[small, given], overload=[alike], timeout=["openai:another"])
    (made, kept) = fallback._models["any"]
    (another,) = fallback._models["timeout"]
    assert fallback._models["overload"] == (made,)
    models: list[object] = []
    threads = [threading.Thread(target=lambda: models.append(made.model())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(map(id, models))) == 1
    assert kept.model() is given
    made._made = Closing([], config={"model": "made"}, processors=[])  # in the place of a backend's model
    another._made = Closing([], config={"model": "another"}, processors=[])
    asyncio.run(ScriptedModel([], processors=[fallback]).aclose())
    assert closed == []  # nothing was asked, so its chain does not exist
    first = scripted("first", [ContextLengthError("x")], fallback=fallback)
    with pytest.raises(ContextLengthError):
        asyncio.run(first.acomplete([{"role": "user", "content": "hello"}]))
    asyncio.run(first.aclose())
    assert sorted(closed) == ["another", "made"]


def test_leaving_early_closes_the_model_that_stands_in(scripted: Scripted) -> None:
    open_streams = [0]

    class Watched(ScriptedModel):
        async def stream(self, request: ChatRequest) -> AsyncIterator[ModelEvent]:
            open_streams[0] += 1
            try:
                yield TextDelta("word")
                await asyncio.sleep(3600)
            finally:
                open_streams[0] -= 1

    first = scripted("first", [ModelOverloadedError("x")], fallback=Fallback(any=Watched([], processors=[])))

    async def leave() -> None:
        events = first.astream([{"role": "user", "content": "hello"}])
        async for event in events:
            if isinstance(event, TextDelta):
                break
        await events.aclose()  # type: ignore[attr-defined]

    asyncio.run(leave())
    assert open_streams == [0]


FAILURES = st.sampled_from([error for error, _ in CAUSES])


@given(
    st.lists(st.tuples(st.lists(st.text(max_size=3), max_size=3), FAILURES | st.none()), min_size=1, max_size=5),
)
def test_the_answer_is_that_of_the_first_model_that_gives_one_or_the_first_error(
    models: list[tuple[list[str], ModelServiceError | None]],
) -> None:
    made = [
        ScriptedModel(
            [[*map(TextDelta, words), failure if failure is not None else ModelFinished("stop")]],
            config={"model": str(number)},
        )
        for number, (words, failure) in enumerate(models)
    ]
    first = ScriptedModel(made[0]._script, processors=[Fallback(any=made[1:])])
    expected = next(("".join(words) for words, failure in models if failure is None), None)
    asked = first.acomplete([{"role": "user", "content": "hello"}])
    if expected is None:
        with pytest.raises(ModelServiceError) as caught:
            asyncio.run(asked)
        assert caught.value is models[0][1]
    else:
        assert asyncio.run(asked).get_content() == expected
