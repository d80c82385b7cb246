"""Stop words in a model's chain: what is shown, what is sent, and what is left alone."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from jackfield import PluginHost, get_chat_model, sync
from jackfield.config import GenerateConfig, LLMConfig
from jackfield.errors import ConfigError
from jackfield.events import (
    FunctionCallDelta,
    MediaDelta,
    ModelEvent,
    ModelFinished,
    PluginEvent,
    ReasoningDelta,
    StreamReset,
    TextDelta,
    UsageReported,
)
from jackfield.messages import ContentItem, Message, Usage
from jackfield.models import STOPPED, Retry, fold
from jackfield.processors import Processor, in_order
from jackfield.request import ChatRequest
from jackfield.testing import ScriptedModel
from jackfield_stop_words.processor import StopWords
from jackfield_testkit.replies import text
from jackfield_testkit.server import FakeOpenAI
from jackfield_testkit.streams import Inner, gathered

CALL = FunctionCallDelta(0, "c1", "look", '{"at": "a STOP sign"}')
PART = FunctionCallDelta(0, "c1", "look", '{"at": ')


def _through(
    events: Sequence[ModelEvent], *, stop: tuple[str, ...] = ("STOP",), send: bool = True
) -> tuple[list[ModelEvent], Inner]:
    inner = Inner(events)
    request = ChatRequest(model="m", messages=(Message("user", "hi"),), config=GenerateConfig(stop=stop))
    came = sync.run(gathered(StopWords(send=send).wrap(inner)(request)))
    assert inner.open == 0
    return came, inner


def _deltas(text: str) -> list[ModelEvent]:
    return [TextDelta(letter) for letter in text]


def test_the_answer_ends_before_the_first_stop_word() -> None:
    came, _ = _through([*_deltas("go on STOP here STOP"), ModelFinished("length")])
    assert "".join(event.text for event in came if isinstance(event, TextDelta)) == "go on "
    assert came[-2:] == [PluginEvent(STOPPED, {"stop": "STOP"}), ModelFinished("stop")]


def test_the_server_is_left_at_once_and_asked_for_no_more() -> None:
    asked: list[int] = []
    inner = Inner([*_deltas("a STOP"), *_deltas("b" * 1000), ModelFinished("stop")], before_each=asked.append)
    request = ChatRequest(model="m", messages=(Message("user", "hi"),), config=GenerateConfig(stop=("STOP",)))
    sync.run(gathered(StopWords().wrap(inner)(request)))
    assert asked == list(range(6))
    assert inner.open == 0


def test_the_inner_stream_is_closed_before_the_end_is_told() -> None:
    async def open_at_the_end() -> int:
        inner = Inner([TextDelta("a STOP"), TextDelta("b"), ModelFinished("stop")])
        request = ChatRequest(model="m", messages=(Message("user", "hi"),), config=GenerateConfig(stop=("STOP",)))
        async for event in StopWords().wrap(inner)(request):
            if isinstance(event, ModelFinished):
                return inner.open
        raise AssertionError("it has no end")

    assert sync.run(open_at_the_end()) == 0


def test_usage_that_came_before_the_stop_word_is_kept() -> None:
    usage = Usage(prompt_tokens=3, completion_tokens=4)
    came, _ = _through([UsageReported(usage), *_deltas("a STOP b"), ModelFinished("stop")])
    assert fold(came).usage == usage


def test_half_a_stop_word_at_the_end_is_the_models_own_text() -> None:
    for reason in ("stop", "length"):
        came, _ = _through([*_deltas("We must STO"), ModelFinished(reason, model="m", response_id="r")])
        assert fold(came).get_content() == "We must STO"
        assert came[-1] == ModelFinished(reason, model="m", response_id="r")


def test_of_an_answer_that_broke_off_nothing_is_added() -> None:
    came, _ = _through(_deltas("We must STO"))
    assert fold(came).get_content() == "We must "
    assert not [event for event in came if isinstance(event, ModelFinished)]


def test_reasoning_and_arguments_of_calls_are_not_cut() -> None:
    events = [ReasoningDelta("shall I STOP?"), *_deltas("ok ST"), CALL, ModelFinished("tool_calls")]
    came, _ = _through(events)
    assert fold(came) == fold(events)


def test_a_stop_word_is_found_around_events_that_are_no_text() -> None:
    came, _ = _through([TextDelta("a ST"), ReasoningDelta("hm"), UsageReported(Usage()), TextDelta("OP b")])
    assert fold(came).get_content() == "a "


def test_what_comes_after_a_stop_word_is_dropped() -> None:
    after: list[ModelEvent] = [CALL, MediaDelta(ContentItem(image="http://h/a.png")), ReasoningDelta("hm")]
    came, _ = _through([*_deltas("a STOP"), *after, ModelFinished("tool_calls")])
    assert fold(came).messages == [Message("assistant", "a ")]
    assert fold(came).finish_reason == "stop"


def test_a_call_that_began_before_a_stop_word_comes_whole_and_nothing_else_does() -> None:
    end = ModelFinished("tool_calls", model="m", data={"signature": "s"})
    rest = FunctionCallDelta(0, arguments='"STOP"}')
    later = FunctionCallDelta(1, "c2", "look", "{}")
    came, _ = _through([TextDelta("a "), PART, TextDelta("STOP b"), later, rest, TextDelta("c"), end])
    assert fold(came) == fold([TextDelta("a "), PART, rest, end])


def test_after_a_reset_half_a_stop_word_is_forgotten() -> None:
    came, _ = _through([TextDelta("a ST"), PART, StreamReset("again"), TextDelta("OP STOP"), ModelFinished("stop")])
    assert fold(came).get_content() == "OP "
    assert fold(came).get_function_calls() == []


def test_without_stop_words_the_stream_is_the_inner_one_itself() -> None:
    stream = Inner([])(ChatRequest(model="m", messages=()))
    for stop in ((), ("",)):
        request = ChatRequest(model="m", messages=(), config=GenerateConfig(stop=stop))
        assert StopWords().around(request, lambda _: stream) is stream


def test_the_server_is_told_of_stop_words_unless_it_should_not_be() -> None:
    end: list[ModelEvent] = [*_deltas("a STOP"), ModelFinished("stop")]
    _, told = _through(end)
    assert told.requests[0].config.stop == ("STOP",)
    came, untold = _through(end, send=False)
    assert untold.requests[0].config.stop == ()
    assert fold(came).get_content() == "a "


def test_a_setting_that_does_not_fit_is_refused_by_its_name() -> None:
    with pytest.raises(ConfigError, match="send"):
        StopWords(send="perhaps")  # type: ignore[arg-type]


class _Other(Processor):
    phase = "transport"

    def around(self, request: ChatRequest, call_next):  # type: ignore[no-untyped-def]
        return call_next(request)


class _Cache(_Other):
    name = "cache"
    before = ("retry",)


def test_it_stands_inside_of_a_cache_and_around_all_attempts() -> None:
    chain = in_order([Retry(), StopWords(), _Cache()])
    assert [processor.name for processor in chain] == ["cache", "stop_words", "retry"]


def test_it_takes_stop_words_of_the_model_and_of_the_call() -> None:
    config = LLMConfig.parse({"model": "m", "generate_cfg": {"stop": "END"}, "processors": ["stop_words"]})
    model = ScriptedModel([[*_deltas("one END two"), ModelFinished("stop")]] * 2, config=config)
    question = [Message("user", "hi")]
    assert model.ask(question).text == "one "
    assert model.ask(question, config={"stop": "e"}).text == "on"


def test_a_real_server_that_ignores_stop_words_is_left_at_them() -> None:
    with FakeOpenAI() as server:
        # After the first pieces it says nothing more, and would wait for ever.
        server.reply(text(["Thought: look.\nObs", "ervation: it ", "rains"]).stall_after(3))
        model = get_chat_model(
            {
                "model_type": "openai",
                "model": "m",
                "base_url": server.url,
                "api_key": "sk-example",
                "processors": ["stop_words"],
                "generate_cfg": {"stop": ["Observation:"]},
            },
            host=PluginHost(),
        )
        assert model.quick_chat("Is there something?") == "Thought: look.\n"
        assert server.requests[0].json["stop"] == ["Observation:"]
        assert server.wait_until(lambda server: server.disconnects == 1)
