"""Contract tests for call formats, which represent tool calls as text."""

# ruff: noqa: S101 - these are tests: they assert

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import pytest

from jackfield import ChatRequest, GenerateConfig, sync
from jackfield.events import (
    FunctionCallDelta,
    MediaDelta,
    ModelEvent,
    ModelFinished,
    PluginEvent,
    ReasoningDelta,
    RetryScheduled,
    TextDelta,
    UsageReported,
)
from jackfield.messages import SYSTEM, ContentItem, FinishReason, FunctionCall, Message, ModelResponse, Usage
from jackfield.processors import CallFormat, CallFormatProcessor
from jackfield.testing import ScriptedModel, answer
from jackfield.tools import FunctionSchema
from jackfield_testkit.installed import plain_host
from jackfield_testkit.streams import (
    FEW,
    GROWTH,
    HOSTILE_PIECES,
    MANY,
    fail_if_work_grows_faster,
    fed,
    folded,
    gathered,
    recuts,
    shown,
    through,
    work_per_character,
)
from jackfield_testkit.suites.base import Suite

Calls = list[tuple[str, Any]]

WEATHER: FunctionSchema = {
    "name": "get_weather",
    "description": "Tells the weather at a place.",
    "parameters": {
        "type": "object",
        "properties": {
            "place": {"type": "string", "description": "A town"},
            "days": {"type": "integer", "description": "How many days ahead"},
            "options": {"type": "object", "description": "More wishes"},
        },
        "required": ["place"],
    },
}
CLOCK: FunctionSchema = {
    "name": "get_time",
    "description": "Tells the hour.",
    "parameters": {"type": "object", "properties": {}, "required": []},
}
ARGUMENTS: Sequence[Mapping[str, object]] = (
    {"place": "Paris"},
    {"place": "東京 🗼", "days": 3},
    {"place": 'a "quoted" \\ place'},
    {"place": "two\nlines\tand a tab"},
    {"place": "x < y && z > 'w'"},
    {"place": "", "options": {"units": ["C", "F"], "deep": {"er": None, "yes": True}}},
    {"place": "{}[](),:", "days": -1},
)
WORDS = "I look it up. "
PLAIN = 'Die Antwort ist 42 < 43, <b>sure</b>: {"a": [1]} und 数据 🙂.'
PNG = "data:image/png;base64,iVBORw0KGgo="
HELLO = Message("user", "How is the weather?")
_NOTES: Sequence[ModelEvent] = (
    PluginEvent("jackfield-testkit.note", {"note": "a note"}),
    RetryScheduled(1, 0.5, "an attempt failed"),
    MediaDelta(ContentItem(image=PNG)),
    UsageReported(Usage(prompt_tokens=3, completion_tokens=5)),
)
_MOST_WORK = 400.0  # steps for each character, one at a time


class CallFormatSuite(Suite):
    """Contract of call formats: describe the tools, and find the calls in a model's text.

    ```python
    class TestAcme(CallFormatSuite):
        component = "jackfield-acme/acme"
    ```

    The suite learns the notation of calls by having the format render a history with calls.

    Attributes:
        component: The call format to test, as `distribution/name`, or only the name if it is unique.
        max_held: The maximum number of characters of an answer without calls to buffer while more may follow.
        giving_up_s: The CPU time, in seconds, after which a test with an answer of 250,000 characters gives up. Linear
            work needs only a small part of it.
    """

    component: ClassVar[str]
    max_held: ClassVar[int] = 64
    giving_up_s: ClassVar[float] = 20.0

    def make_format(self) -> CallFormat:
        """Create a call format to test."""
        host = plain_host()
        call_format: CallFormat = host.make(host.find("call_format", self.component), {}, CallFormat)
        return call_format

    def write(self, *calls: tuple[str, Mapping[str, Any]], text: str = "") -> str:
        """Return an answer with calls, as a model would write it.

        Override this if the format renders history differently.
        """
        messages = [HELLO, *([Message("assistant", text)] if text else []), *_called(*calls)]
        rendered = self.make_format().render(_request(*messages))
        return "\n".join(m.get_text_content() for m in rendered.messages if m.role == "assistant")

    # --- the prompt ---

    def test_a_model_is_told_all_about_each_tool(self) -> None:
        rendered = self.make_format().render(_request(HELLO))
        assert rendered.functions == ()
        said = _text(rendered)
        for function in (WEATHER, CLOCK):
            for told in (function["name"], function["description"], *function["parameters"]["properties"]):
                assert told in said, f"the prompt does not contain {told!r}"
        assert HELLO.get_text_content() in said

    def test_the_prompt_is_one_system_message_at_the_front(self) -> None:
        for first in ((), (Message(SYSTEM, "Be brief."),)):
            rendered = self.make_format().render(_request(*first, HELLO))
            systems = [number for number, message in enumerate(rendered.messages) if message.role == SYSTEM]
            assert systems in ([0], []), "backends accept a single system message, at the start"
            assert all(message.get_text_content() in _text(rendered) for message in first)

    def test_a_request_is_not_changed_but_replaced(self) -> None:
        request = _request(HELLO, *_called(("get_time", {})), _result("get_time", "noon"))
        before = [message.model_dump() for message in request.messages]
        self.make_format().render(request)
        assert [message.model_dump() for message in request.messages] == before
        assert request.functions == (WEATHER, CLOCK)

    def test_a_request_without_tools_and_calls_stays_as_it_is(self) -> None:
        request = replace(_request(Message(SYSTEM, "Be brief."), HELLO), functions=())
        assert self.make_format().render(request).messages == request.messages

    def test_a_choice_of_tools_is_told_to_the_model_and_not_to_the_backend(self) -> None:
        formats = self.make_format()
        free = _text(formats.render(_request(HELLO)))
        for choice in ("required", "get_time"):
            rendered = formats.render(_request(HELLO, config=GenerateConfig(function_choice=choice)))
            assert _text(rendered) != free, f"function_choice {choice!r} does not change the prompt"
            assert rendered.config.function_choice == "auto", "a backend without functions cannot be forced to call one"

    def test_where_no_tool_may_be_called_none_is_offered_and_no_call_is_read(self) -> None:
        config = GenerateConfig(function_choice="none")
        assert WEATHER["description"] not in _text(self.make_format().render(_request(HELLO, config=config)))
        written = self.write(("get_time", {}))
        answer = folded(
            through(CallFormatProcessor(self.make_format()), _request(HELLO, config=config), shown(written))
        )
        assert (_calls(answer), answer.get_content()) == ([], written)

    # --- the history ---

    def test_past_calls_and_results_are_told_in_order(self) -> None:
        history = [
            HELLO,
            *_called(("get_weather", {"place": "Rom"})),
            _result("get_weather", "It rains cats."),
            Message("assistant", "It rains."),
            Message("user", "And the time?"),
            *_called(("get_time", {})),
            _result("get_time", "High noon."),
        ]
        told = ("Rom", "It rains cats.", "It rains.", "And the time?", "get_time", "High noon.")
        for request in _ways_to_tell(history):
            rendered = self.make_format().render(request)
            assert rendered.functions == ()
            assert not [m for m in rendered.messages if m.role == "function" or m.function_call], (
                "calls and results must be rendered as text"
            )
            said = "\n".join(m.get_text_content() for m in rendered.messages if m.role != SYSTEM)
            places = [said.find(part) for part in told]
            assert -1 not in places, f"expected all of {told} in the prompt, got {said!r}"
            assert places[:5] == sorted(places[:5]), f"{told} appear in another order: {said!r}"
            assert places[5] > places[3], f"a result comes before its call: {said!r}"

    def test_images_in_results_are_kept(self) -> None:
        result = Message("function", [ContentItem(text="a plot"), ContentItem(image=PNG)], name="get_time")
        for request in _ways_to_tell([HELLO, *_called(("get_time", {})), result]):
            items = [item for message in self.make_format().render(request).messages for item in message.items]
            assert [item.image for item in items if item.image] == [PNG]
            assert any("a plot" in (item.text or "") for item in items)

    def test_an_image_in_a_result_is_a_note_for_a_model_that_takes_none(self) -> None:
        result = Message("function", [ContentItem(text="a plot"), ContentItem(image=PNG)], name="get_time")
        model = ScriptedModel([answer("I see.")] * 3, processors=[CallFormatProcessor(self.make_format())])
        for request in _ways_to_tell([HELLO, *_called(("get_time", {})), result]):
            sync.run(gathered(model.astream(request.messages, request.functions, config=request.config)))
            assert not any(message.is_multimodal() for message in model.requests[-1].messages)
            assert "a plot" in _text(model.requests[-1])
            assert "image omitted" in _text(model.requests[-1])

    def test_broken_and_empty_arguments_of_the_past_are_told_all_the_same(self) -> None:
        for arguments in ("", "{", "no json", '["a"]', '{"place": "R'):
            call = Message("assistant", "", function_call=FunctionCall("get_weather", arguments))
            for request in _ways_to_tell([HELLO, call, _result("get_weather", "I do not understand.")]):
                said = _text(self.make_format().render(request))
                assert "get_weather" in said
                assert "I do not understand." in said

    def test_it_speaks_to_people_of_each_language(self) -> None:
        history = [HELLO, *_called(("get_time", {})), _result("get_time", "正午")]
        for request in _ways_to_tell(history):
            assert "正午" in _text(self.make_format().render(replace(request, lang="zh")))

    # --- reading ---

    def test_a_call_is_read_as_it_is_written(self) -> None:
        for arguments in ARGUMENTS:
            answer = self._read(self.write(("get_weather", arguments)))
            assert _calls(answer) == [("get_weather", dict(arguments))]
            assert answer.get_content().strip() == ""
            assert answer.finish_reason == "tool_calls", "the finish reason must say that there are calls"
        assert _calls(self._read(self.write(("get_time", {})))) == [("get_time", {})]

    def test_several_calls_are_read_in_order_each_with_an_id(self) -> None:
        wanted: Calls = [("get_weather", {"place": "Rom"}), ("get_time", {}), ("get_weather", {"place": "Oslo"})]
        answer = self._read(self.write(*wanted))
        assert _calls(answer) == wanted
        ids = [message.function_id for message in answer.messages if message.function_call]
        assert len(set(ids)) == 3
        assert all(ids)

    def test_text_before_a_call_stays_text(self) -> None:
        answer = self._read(self.write(("get_time", {}), text=WORDS))
        assert _calls(answer) == [("get_time", {})]
        assert answer.get_content().strip() == WORDS.strip()

    def test_a_call_of_an_unknown_tool_is_a_call(self) -> None:
        # The tools report that it does not exist, and the model reads that.
        assert _calls(self._read(self.write(("no_such_tool", {"a": "b"})))) == [("no_such_tool", {"a": "b"})]

    def test_text_without_a_call_passes_whole(self) -> None:
        written = self.write(("get_weather", {"place": "Rom"}))
        for text in (PLAIN, " ", "a\n\nb\n", *(f"Ends: {written[:length]}" for length in range(1, len(written)))):
            answer = self._read(text)
            if not answer.get_function_calls():
                assert answer.get_content().strip() == text.strip(), "part of the response is held back forever"
                assert answer.finish_reason == "stop"

    def test_half_a_call_at_the_length_limit_runs_no_tool_with_half_of_its_arguments(self) -> None:
        whole = ("get_weather", {"place": "Rome and Paris", "days": 12})
        written = self.write(whole)
        for length in range(len(written)):
            for call in self._read(written[:length], reason="length").get_function_calls():
                assert call.name == "get_weather"
                assert _value(call.arguments) in (_NO_JSON, whole[1]), f"{written[:length]!r} is parsed as {call}"

    def test_whatever_a_model_writes_the_answer_ends_once_and_raises_nothing(self) -> None:
        written = self.write(("get_weather", {"place": "Rom"}), ("get_time", {}), text=WORDS)
        half = len(written) // 2
        broken = [written[:length] + written[length + 1 :] for length in range(len(written))]
        broken += [written[half:] + written[:half], written * 2, written[half:], written[:half] * 3, written[::-1]]
        for text in broken:
            events = fed(self.make_format().reader(_request(HELLO)), shown(text))
            assert [event for event in events if isinstance(event, ModelFinished)] == events[-1:]
            folded(events)

    def test_cutting_the_stream_elsewhere_never_changes_the_answer(self) -> None:
        formats, request = self.make_format(), _request(HELLO)
        for number, events in enumerate(self._streams()):
            expected = folded(fed(formats.reader(request), events))
            for cut in recuts(events, seed=number):
                came = folded(fed(formats.reader(request), cut))
                assert came == expected, f"the response differs when it is split like this: {cut}"

    def test_text_is_passed_on_before_the_answer_is_complete(self) -> None:
        reader = self.make_format().reader(_request(HELLO))
        came = 0
        for number, letter in enumerate(PLAIN * 5, start=1):
            came += len(folded(list(reader.feed(TextDelta(letter)))).get_content())
            assert number - came <= self.max_held, "too much text is held back, but people read while the model writes"

    def test_a_native_call_is_honoured_beside_those_in_the_text(self) -> None:
        native: list[ModelEvent] = [
            FunctionCallDelta(0, "n1", "get_weather", '{"place": '),
            FunctionCallDelta(1, "n2", "get_time", "{}"),
            FunctionCallDelta(0, arguments='"Bonn"}'),
        ]
        alone = folded(fed(self.make_format().reader(_request(HELLO)), [*native, ModelFinished("tool_calls")]))
        expected: Calls = [("get_weather", {"place": "Bonn"}), ("get_time", {})]
        assert _calls(alone) == expected
        assert [message.function_id for message in alone.messages] == ["n1", "n2"]
        written = TextDelta(self.write(("get_weather", {"place": "Rom"})))
        for order in ([written, *native], [*native, written], [native[0], written, *native[1:]]):
            both = folded(fed(self.make_format().reader(_request(HELLO)), [*order, ModelFinished("stop")]))
            assert sorted(_calls(both), key=str) == sorted([*expected, ("get_weather", {"place": "Rom"})], key=str)

    def test_reasoning_and_other_events_pass_as_they_are(self) -> None:
        written = self.write(("get_time", {}), text=WORDS)
        end = ModelFinished("stop", model="m", response_id="r1", created=7, data={"signature": "s"})
        events = [ReasoningDelta("I think"), *_NOTES, *map(TextDelta, written), *_NOTES, end]
        came = fed(self.make_format().reader(_request(HELLO)), events)
        assert [event for event in came if event in _NOTES] == [*_NOTES, *_NOTES]
        answer = folded(came)
        assert answer.messages[0].reasoning_content == "I think"
        assert _calls(answer) == [("get_time", {})]
        last = came[-1]
        assert isinstance(last, ModelFinished)
        assert (last.model, last.response_id, last.created, last.data) == ("m", "r1", 7, {"signature": "s"})

    def test_answers_at_the_same_time_do_not_mix(self) -> None:
        formats = self.make_format()
        places = [f"Place {number}" for number in range(8)]
        written = [self.write(("get_weather", {"place": place})) for place in places]
        readers = [formats.reader(_request(HELLO)) for _ in places]
        came: list[list[ModelEvent]] = [[] for _ in places]
        for position in range(max(map(len, written))):
            for number, reader in enumerate(readers):
                came[number] += reader.feed(TextDelta(written[number][position : position + 1]))
        for number, reader in enumerate(readers):
            came[number] += reader.feed(ModelFinished("stop"))
        assert [_calls(folded(events)) for events in came] == [[("get_weather", {"place": place})] for place in places]

    def test_the_work_grows_with_the_length_and_not_with_its_square(self) -> None:
        opening = self.write(("get_weather", {"place": "MIDDLE"})).partition("MIDDLE")[0]
        for before in ("", opening):  # in plain text, and in the arguments of a call

            def work(length: int, before: str = before) -> float:
                reader = self.make_format().reader(_request(HELLO))
                start: list[ModelEvent] = [TextDelta(before)] if before else []
                fed(reader, start)
                return work_per_character(lambda events: fed(reader, events), length)

            work(10)  # the first call may import or create things
            short, long = work(FEW), work(MANY)
            assert long <= GROWTH * short + 20, (
                f"{short:.0f} steps per character for {FEW} characters, but {long:.0f} for {MANY}"
            )
            assert long <= _MOST_WORK

    @pytest.mark.parametrize("piece", HOSTILE_PIECES)
    def test_no_text_makes_the_work_grow_faster_than_its_length(self, piece: str) -> None:
        opening = self.write(("get_weather", {"place": "MIDDLE"})).partition("MIDDLE")[0]
        for before in ("", opening):  # in plain text, and in the arguments of a call

            def read(events: list[ModelEvent], before: str = before) -> None:
                fed(self.make_format().reader(_request(HELLO)), [TextDelta(before), *events, ModelFinished("stop")])

            fail_if_work_grows_faster(read, piece, self.giving_up_s)

    # --- parts ---

    def _read(self, text: str, *, reason: FinishReason = "stop") -> ModelResponse:
        events: list[ModelEvent] = [TextDelta(text), ModelFinished(reason)]
        return folded(fed(self.make_format().reader(_request(HELLO)), events))

    def _streams(self) -> list[list[ModelEvent]]:
        written = self.write(("get_weather", {"place": 'a "b" \n東京🗼'}), ("get_time", {}), text=WORDS)
        single = self.write(("get_time", {}))
        texts = [PLAIN, written, f"{single}\n{PLAIN[:30]}", single[: len(single) // 2] + PLAIN[:30], single[:-1]]
        streams = [shown(text) for text in texts]
        streams += [[TextDelta(single[:-5]), ModelFinished("length")]]
        native = FunctionCallDelta(0, "n1", "get_time", '{"a": 1}')
        streams.append([ReasoningDelta("hm"), TextDelta(PLAIN), native, TextDelta(single), ModelFinished("stop")])
        return streams


_NO_JSON = object()


def _request(*messages: Message, config: GenerateConfig | None = None) -> ChatRequest:
    return ChatRequest(
        model="test-model", messages=messages, functions=(WEATHER, CLOCK), config=config or GenerateConfig()
    )


def _ways_to_tell(history: Sequence[Message]) -> list[ChatRequest]:
    """Return the same history with tools offered, with tools that must not be called, and without tools."""
    request = _request(*history)
    forbidden = replace(request, config=GenerateConfig(function_choice="none"))
    return [request, forbidden, replace(request, functions=())]


def _called(*calls: tuple[str, Mapping[str, Any]]) -> list[Message]:
    return [
        Message(
            "assistant",
            function_call=FunctionCall(name, json.dumps(arguments, ensure_ascii=False)),
            extra={"function_id": f"c{number}"},
        )
        for number, (name, arguments) in enumerate(calls, start=1)
    ]


def _result(name: str, text: str) -> Message:
    return Message("function", text, name=name, extra={"function_id": "c1"})


def _text(request: ChatRequest) -> str:
    return "\n".join(message.get_text_content() for message in request.messages)


def _calls(answer: ModelResponse) -> Calls:
    return [(call.name, call.get_parsed_arguments()) for call in answer.get_function_calls()]


def _value(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return _NO_JSON
