"""Models asked as Qwen-Agent and OpenAI's clients ask theirs."""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield import FnCallAgent, sync
from jackfield.config import LLMConfig
from jackfield.events import (
    FunctionCallDelta,
    MediaDelta,
    ModelEvent,
    ModelFinished,
    ReasoningDelta,
    TextDelta,
    UsageReported,
)
from jackfield.messages import ContentItem, FunctionCall, Message, Usage
from jackfield.models import Retry, fold
from jackfield.request import ChatRequest, ModelFacts
from jackfield.testing import ScriptedModel, answer, calls

SECRET = "sk-" + "SECRET"
ASK = [{"role": "user", "content": "q"}]
DONE = ModelFinished("stop")
ADD = {"name": "add", "description": "Adds.", "parameters": {"type": "object", "properties": {}, "required": []}}
Gather = Callable[[AsyncIterator[Any]], list[Any]]


class Naps:
    """A clock that only notes how long it should have slept."""

    def __init__(self) -> None:
        self.slept_s: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.slept_s.append(seconds)


def scripted(*steps: Sequence[ModelEvent | Exception], naps: Naps | None = None, **generate: Any) -> ScriptedModel:
    """A model with retries that take no time."""
    config = LLMConfig.parse({"model": "scripted", "generate_cfg": generate})
    return ScriptedModel(steps, config=config, processors=[Retry(sleep=naps or Naps(), jitter=lambda: 1.0)])


WAYS: dict[str, Callable[[ScriptedModel], object]] = {
    "whole": lambda model: model.chat(ASK, [ADD], stream=False, extra_generate_cfg={"seed": 7}),
    "growing": lambda model: list(model.chat(ASK, [ADD], extra_generate_cfg={"seed": 7})),
    "in pieces": lambda model: list(model.chat(ASK, [ADD], delta_stream=True, extra_generate_cfg={"seed": 7})),
    "raw": lambda model: list(model.raw_chat(ASK, [ADD], generate_cfg={"seed": 7})),
    "raw and whole": lambda model: model.raw_chat(ASK, [ADD], stream=False, generate_cfg={"seed": 7}),
    "as OpenAI's": lambda model: list(model.quick_chat_oai(ASK, [ADD])),
}


@pytest.mark.parametrize("way", WAYS)
def test_tools_and_options_reach_the_model_however_it_is_asked(way: str) -> None:
    model = scripted(answer("a"), temperature=0.5)
    WAYS[way](model)
    [request] = model.requests
    assert [function["name"] for function in request.functions] == ["add"]
    assert (request.config.temperature, request.config.seed) == (0.5, None if "OpenAI" in way else 7)
    assert bool(request.config.use_raw_api) == ("raw" in way)


def test_dicts_in_dicts_out_and_messages_in_messages_out() -> None:
    expected = [Message("assistant", "hello")]
    assert scripted(answer("hello")).chat(ASK, stream=False) == [{"role": "assistant", "content": "hello"}]
    assert scripted(answer("hello")).chat([Message("user", "q")], stream=False) == expected
    assert list(scripted(answer("hello")).chat([Message("user", "q")]))[-1] == expected
    mixed = [{"role": "system", "content": "s"}, Message("user", "q")]
    assert scripted(answer("hello")).chat(mixed, stream=False) == expected


def test_a_stream_gives_growing_lists_and_ends_with_what_no_stream_gives() -> None:
    script = answer("a longer answer than one piece", reasoning="let me think")
    growing = list(scripted(script).chat([Message("user", "q")]))
    assert growing[-1] == scripted(script).chat([Message("user", "q")], stream=False)
    whole = [[message.get_text_content() for message in snapshot][-1] for snapshot in growing]
    assert all(late.startswith(early) for early, late in itertools.pairwise(whole) if early)


def test_snapshots_of_a_chat_never_change_afterwards() -> None:
    snapshots, as_they_were = [], []
    for messages in scripted(answer("a longer answer than one piece")).chat([Message("user", "q")]):
        snapshots.append(messages)
        as_they_were.append([message.replace() for message in messages])
    assert snapshots == as_they_were


pieces = st.lists(
    st.one_of(
        st.text(min_size=1, max_size=4).map(TextDelta),
        st.text(min_size=1, max_size=4).map(ReasoningDelta),
        st.builds(FunctionCallDelta, st.integers(0, 1), st.just("c"), st.just("f"), st.text(max_size=4)),
    ),
    max_size=6,
)


@given(pieces)
def test_the_items_of_a_delta_stream_add_up_to_the_answer(events: list[ModelEvent]) -> None:
    script = [*events, DONE]
    items = [
        message for messages in scripted(script).chat([Message("user", "q")], delta_stream=True) for message in messages
    ]
    whole = fold(script)
    assert "".join(message.get_text_content() for message in items) == whole.get_content()
    assert "".join(str(message.reasoning_content or "") for message in items) == "".join(
        str(message.reasoning_content or "") for message in whole.messages
    )
    assert sum(len(m.function_call.arguments) for m in items if m.function_call) == sum(
        len(call.arguments) for call in whole.get_function_calls()
    )


def delta_calls(*events: ModelEvent) -> list[Message]:
    stream = scripted([*events, DONE]).chat([Message("user", "q")], delta_stream=True)
    return [message for messages in stream for message in messages]


def test_every_delta_of_a_call_carries_the_id_of_the_call() -> None:
    items = delta_calls(FunctionCallDelta(0, "call_9", "f", '{"a"'), FunctionCallDelta(0, arguments=": 1}"))
    assert [message.function_id for message in items] == ["call_9", "call_9"]


def test_a_call_without_an_id_has_the_same_id_in_pieces_as_in_the_whole() -> None:
    events = [FunctionCallDelta(index, name="f", arguments="{}") for index in (0, 1)]
    whole = fold([*events, DONE])
    assert [message.function_id for message in delta_calls(*events)] == [one.function_id for one in whole.messages]


def test_no_snapshot_repeats_the_one_before() -> None:
    class Waiting(ScriptedModel):
        async def stream(self, request: ChatRequest) -> AsyncIterator[ModelEvent]:
            yield TextDelta("a")
            await asyncio.to_thread(is_seen.wait)  # so that the rest comes in a batch of its own
            yield UsageReported(Usage(prompt_tokens=1))
            yield DONE

    is_seen = threading.Event()
    snapshots = []
    for messages in Waiting([]).chat([Message("user", "q")]):
        snapshots.append(messages)
        is_seen.set()
    assert snapshots == [[Message("assistant", "a")]]


def test_no_argument_is_lost_from_a_delta_stream_when_the_name_comes_late() -> None:
    items = delta_calls(FunctionCallDelta(0, arguments='{"a"'), FunctionCallDelta(0, "c", "f", ": 1}"))
    assert "".join(message.function_call.arguments for message in items if message.function_call) == '{"a": 1}'


def test_media_come_through_a_delta_stream() -> None:
    item = ContentItem(image="http://x/a.png")
    assert [message.content for message in delta_calls(MediaDelta(item))] == [[item]]


def test_no_messages_are_an_error_before_anything_is_asked() -> None:
    model = scripted(answer("x"))
    for stream in (True, False):
        with pytest.raises(ValueError, match="messages cannot be empty"):
            model.chat([], stream=stream)
    assert model.requests == []


def test_a_stream_asks_at_its_first_next() -> None:
    model = scripted(answer("x"))
    growing = model.chat(ASK)
    assert model.requests == []
    next(growing)
    assert len(model.requests) == 1


def test_asking_leaves_the_callers_messages_and_options_alone() -> None:
    messages, functions, options = [{"role": "user", "content": "q"}], [dict(ADD)], {"stop": "END"}
    scripted(answer("x")).chat(messages, functions, stream=False, extra_generate_cfg=options)
    assert (messages, functions, options) == ([{"role": "user", "content": "q"}], [ADD], {"stop": "END"})


# --- as OpenAI's clients speak ---


def test_quick_chat_oai_gives_openais_shape_with_ids_and_usage() -> None:
    usage = Usage(prompt_tokens=7, completion_tokens=3)
    events = calls(("add", {"a": 1}), ("add", {"a": 2}), text="I will")
    script = [ReasoningDelta("why"), *(usage_of(event, usage) for event in events)]
    last = list(scripted(script).quick_chat_oai(ASK, [{"type": "function", "function": ADD}]))[-1]
    message = last["choices"][0]["message"]
    assert (message["role"], message["content"], message["reasoning_content"]) == ("assistant", "I will", "why")
    assert [(call["id"], call["function"]["arguments"]) for call in message["tool_calls"]] == [
        ("call_1", '{"a": 1}'),
        ("call_2", '{"a": 2}'),
    ]
    assert last["choices"][0]["finish_reason"] == "tool_calls"
    assert last["usage"] == {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}


def usage_of(event: ModelEvent, usage: Usage) -> ModelEvent:
    return UsageReported(usage) if isinstance(event, UsageReported) else event


def test_quick_chat_oai_keeps_the_ids_of_calls_and_results() -> None:
    model = scripted(answer("done"))
    history = [
        {"role": "system", "content": "s"},
        {"role": "user", "content": [{"type": "text", "text": "q"}]},
        {
            "role": "assistant",
            "tool_calls": [{"id": "c7", "type": "function", "function": {"name": "add", "arguments": "{}"}}],
        },
        {"role": "tool", "tool_call_id": "c7", "content": "3"},
    ]
    list(model.quick_chat_oai(history))
    assert model.requests[0].messages == (
        Message("system", "s"),
        Message("user", [{"text": "q"}]),
        Message("assistant", "", function_call=FunctionCall("add", "{}"), extra={"function_id": "c7"}),
        Message("function", "3", name="add", extra={"function_id": "c7"}),
    )


def test_openais_older_function_messages_are_taken_too() -> None:
    model = scripted(answer("done"))
    list(model.quick_chat_oai([*ASK, {"role": "function", "name": "add", "content": "3"}]))
    assert model.requests[0].messages[-1] == Message("function", "3", name="add")


def test_a_part_without_a_counterpart_is_an_error_that_names_it() -> None:
    with pytest.raises(ValueError, match="'hologram'"):
        list(scripted(answer("x")).quick_chat_oai([{"role": "user", "content": [{"type": "hologram"}]}]))


# --- raw_chat ---


class FormatModel(ScriptedModel):
    """A model without tools of its own, so that a call format would be looked up."""

    backend = "scripted"


def test_raw_chat_uses_native_calls_whatever_format_is_configured() -> None:
    model = FormatModel(lambda request: calls(("add", {"a": 1})), facts=ModelFacts(native_tools=False))
    for stream in (True, False):
        answered = model.raw_chat(ASK, [ADD], stream=stream)
        last = list(answered)[-1] if stream else answered
        assert last[-1]["function_call"] == {"name": "add", "arguments": '{"a": 1}'}
    assert all(request.config.use_raw_api and request.functions == (ADD,) for request in model.requests)


def test_raw_chat_takes_functions_that_are_wrapped_as_openai_does() -> None:
    model = scripted(answer("x"))
    model.raw_chat(ASK, [{"type": "function", "function": ADD}], stream=False)
    assert model.requests[0].functions == (ADD,)


def test_an_empty_answer_is_a_message_with_empty_content_however_it_is_asked_for() -> None:
    model = ScriptedModel(lambda _: answer(""))
    empty = Message("assistant", "")
    asked = [Message("user", "go")]
    assert model.chat(asked, stream=False) == [empty]
    assert list(model.chat(asked))[-1] == [empty]
    assert list(model.chat(asked, delta_stream=True)) == [[empty]]
    assert sync.run(model.acomplete(asked)).messages == [empty]
    assert model.quick_chat("go") == ""
    assert FnCallAgent(llm=model).run_nonstream(asked) == [empty]
