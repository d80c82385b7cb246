"""Contract tests for processors."""

# ruff: noqa: S101 - these are tests: they assert

from __future__ import annotations

import asyncio
import copy
import random
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from typing import Any, ClassVar, get_args

import pytest

from jackfield import ChatRequest, GenerateConfig, LLMConfig, sync
from jackfield.errors import JackfieldError, ModelRequestError
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
from jackfield.messages import ContentItem, Message, ModelResponse, Usage
from jackfield.plugins import ProcessorSpec
from jackfield.processors import CallNext, Phase, Processor, closing, in_order
from jackfield.testing import ScriptedModel
from jackfield.tools import FunctionSchema
from jackfield_testkit.installed import forbid_default_host, plain_host
from jackfield_testkit.loopwatch import check_loop
from jackfield_testkit.streams import (
    FEW,
    GROWTH,
    HOSTILE_PIECES,
    MANY,
    Inner,
    each_through,
    fail_if_work_grows_faster,
    folded,
    gathered,
    recuts,
    shown,
    through,
    work_per_character,
)
from jackfield_testkit.suites.base import Suite

HARMLESS = "The quick brown fox jumps over the lazy dog. Die Möwe fliegt 🙂, 数据 and all."
ARGUMENTS = '{"place": "Paris", "days": [1, 2]}'
WEATHER: FunctionSchema = {
    "name": "get_weather",
    "description": "The weather at a place.",
    "parameters": {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]},
}
PNG = "data:image/png;base64,iVBORw0KGgo="
_NOTES: Sequence[ModelEvent] = (
    PluginEvent("jackfield-testkit.note", {"note": "a note"}),
    RetryScheduled(1, 0.5, "an attempt failed"),
    MediaDelta(ContentItem(image=PNG)),
    UsageReported(Usage(prompt_tokens=3, completion_tokens=5)),
)
_MOST_WORK = 400.0  # steps per character, one at a time; a processor with ten lines per delta takes 40


class ProcessorSuite(Suite):
    """Contract of processors: change only what they are meant to, and let everything else pass unchanged.

    ```python
    class TestShout(ProcessorSuite):
        component = "jackfield-acme/shout"
        texts = ["answers in which it changes something"]
    ```

    Attributes:
        component: The processor to test, as `distribution/name`, or only the name if it is unique.
        config: The processor's settings.
        texts: Answers that the processor changes. The result must not depend on how they are split.
        harmless: An answer that the processor leaves unchanged.
        messages: A conversation that the processor accepts.
        max_held: The maximum number of characters to buffer while more may follow, or None if the processor needs the
            whole answer.
        patience_s: How long to wait for something that should happen immediately, in seconds.
        giving_up_s: The CPU time, in seconds, after which a test with an answer of 250,000 characters gives up. Linear
            work needs only a small part of it.
    """

    component: ClassVar[str]
    config: ClassVar[Mapping[str, object]] = {}
    texts: ClassVar[Sequence[str]] = ()
    harmless: ClassVar[str] = HARMLESS
    messages: ClassVar[Sequence[Message]] = (Message("user", "hello"),)
    max_held: ClassVar[int | None] = None
    patience_s: ClassVar[float] = 20.0
    giving_up_s: ClassVar[float] = 20.0

    def make_processor(self) -> Processor:
        """Create a processor to test. Override this if yours needs more than `config`."""
        host = plain_host()
        processor: Processor = host.make(host.find("processor", self.component), self.config, Processor)
        return processor

    # --- its place ---

    def test_it_stands_in_a_phase_and_says_the_same_in_its_descriptor(self) -> None:
        processor = self.make_processor()
        assert processor.phase in get_args(Phase)
        assert processor.name not in (*processor.after, *processor.before), (
            "a processor cannot come before or after itself"
        )
        if not hasattr(self, "component"):
            return  # created by hand, and not offered by any plugin
        spec = plain_host().spec("processor", self.component, ProcessorSpec)
        stated = (spec.name, spec.phase, tuple(spec.after), tuple(spec.before))
        assert stated == (processor.name, processor.phase, tuple(processor.after), tuple(processor.before))

    def test_another_processor_beside_it_changes_nothing(self) -> None:
        for name in ("aaa_other", "zzz_other"):
            other = _other(name, self.make_processor().phase)
            for text in (self.harmless, *self.texts):
                chain: CallNext = Inner(shown(text))
                for processor in reversed(in_order([self.make_processor(), other])):
                    chain = processor.wrap(chain)
                assert folded(sync.run(gathered(chain(self._request())))) == self._answer(shown(text))

    def test_it_takes_plugins_and_keys_from_its_host(self, monkeypatch: pytest.MonkeyPatch) -> None:
        if type(self).make_processor is not ProcessorSuite.make_processor:
            pytest.skip("the processor is created by hand, perhaps without a host")
        answers = [self._answer(shown(text)) for text in (self.harmless, *self.texts)]
        forbid_default_host(monkeypatch)
        assert [self._answer(shown(text)) for text in (self.harmless, *self.texts)] == answers

    # --- the request ---

    def test_the_request_is_not_changed_but_replaced(self) -> None:
        request = self._request(metadata={"jackfield-testkit": {"list": [1]}})
        before = _frozen(request)
        inner = Inner(shown(self.harmless))
        sync.run(gathered(self.make_processor().wrap(inner)(request)))
        assert _frozen(request) == before, (
            "the processor changes the caller's request: create a new one with dataclasses.replace"
        )
        assert all(sent.messages for sent in inner.requests), "the processor sends a request without messages"

    def test_tools_and_metadata_get_through(self) -> None:
        metadata = {"jackfield-testkit": "mine"}
        inner = Inner(shown(self.harmless))
        processor = self.make_processor()
        sync.run(gathered(processor.wrap(inner)(self._request(metadata=metadata))))
        for sent in inner.requests:
            assert sent.metadata.get("jackfield-testkit") == "mine"
            if processor.phase != "format":  # which is meant to write tools as text
                assert WEATHER["name"] in [function["name"] for function in sent.functions]

    def test_options_get_through(self) -> None:
        options: dict[str, Any] = {"temperature": 0.25, "seed": 7, "max_tokens": 50}
        request = self._request(config=GenerateConfig(**options))
        inner = Inner(shown(self.harmless))
        sync.run(gathered(self.make_processor().wrap(inner)(request)))
        for sent in inner.requests:
            assert {name: getattr(sent.config, name) for name in options} == options, (
                "the processor drops the caller's options: create a new request with dataclasses.replace"
            )

    # --- the answer ---

    def test_what_does_not_concern_it_passes_as_it_is(self) -> None:
        events = shown(self.harmless)
        assert self._answer(events) == folded(events)
        nothing: list[ModelEvent] = [ModelFinished("stop")]
        assert self._answer(nothing) == folded(nothing)

    def test_calls_pass_as_they_are(self) -> None:
        for text in ("", self.harmless):
            calls: list[ModelEvent] = [
                *([TextDelta(text)] if text else []),
                FunctionCallDelta(0, "c1", "get_weather", ARGUMENTS[:9]),
                FunctionCallDelta(1, "c2", "get_weather", "{}"),
                FunctionCallDelta(0, arguments=ARGUMENTS[9:]),
                ModelFinished("tool_calls"),
            ]
            assert self._answer(calls) == folded(calls)

    def test_reasoning_passes_and_stays_apart_from_the_text(self) -> None:
        events: list[ModelEvent] = [ReasoningDelta("I think"), *shown(self.harmless)]
        assert self._answer(events) == folded(events)

    @pytest.mark.parametrize("note", _NOTES, ids=lambda note: type(note).__name__)
    def test_events_that_it_does_not_know_pass_in_their_order(self, note: ModelEvent) -> None:
        events = [note, TextDelta(self.harmless[:20]), note, TextDelta(self.harmless[20:]), note, ModelFinished("stop")]
        came = through(self.make_processor(), self._request(), events)
        assert [event for event in came if event == note] == [note] * 3
        assert folded(came) == folded(events)

    def test_an_answer_ends_once_and_nothing_comes_after(self) -> None:
        for text in ("", self.harmless, *self.texts):
            end = ModelFinished("stop", model="m", response_id="r1", created=7, data={"signature": "s"})
            came = through(self.make_processor(), self._request(), [TextDelta(text), end])
            assert [event for event in came if isinstance(event, ModelFinished)] == came[-1:]
            last = came[-1]
            assert isinstance(last, ModelFinished)
            assert (last.model, last.response_id, last.created, last.data) == ("m", "r1", 7, {"signature": "s"})

    def test_cutting_the_stream_elsewhere_never_changes_the_answer(self) -> None:
        for number, events in enumerate(self._streams()):
            expected = self._answer(events)
            cuts = list(recuts(events, seed=number))
            for cut, came in zip(cuts, each_through(self.make_processor(), self._request(), cuts), strict=True):
                assert folded(came) == expected, f"the response differs when it is split like this: {cut}"

    def test_after_a_reset_the_answer_begins_anew(self) -> None:
        for text in (self.harmless, *self.texts):
            expected = self._answer(shown(text))
            for place in range(0, len(text), max(1, len(text) // 9)):
                begun: list[ModelEvent] = [TextDelta(text[:place]), FunctionCallDelta(0, "c", "get_weather", "{")]
                events = [*begun, StreamReset("again"), *shown(text)]
                assert self._answer(events) == expected, "the processor keeps text that a reset has discarded"

    def test_streaming_and_waiting_give_the_same(self) -> None:
        for text in (self.harmless, *self.texts):
            model = self._model(shown(text), shown(text))
            streamed = sync.run(gathered(model.astream(list(self.messages))))
            assert folded(streamed).messages == sync.run(model.acomplete(list(self.messages))).messages

    def test_it_holds_back_no_more_than_it_says(self) -> None:
        if self.max_held is None:
            pytest.skip("the suite does not set max_held, the amount of text that may be held back")
        came: list[ModelEvent] = []
        text = self.harmless * 3
        missing: list[int] = []

        def look(number: int) -> None:
            missing.append(number - sum(len(event.text) for event in came if isinstance(event, TextDelta)))

        events: list[ModelEvent] = [*(TextDelta(letter) for letter in text), ModelFinished("stop")]
        sync.run(_gathered_into(came, self.make_processor().wrap(Inner(events, before_each=look))(self._request())))
        assert max(missing) <= self.max_held

    def test_the_work_grows_with_the_length_and_not_with_its_square(self) -> None:
        def work(length: int) -> float:
            processor, request = self.make_processor(), self._request()

            def run(events: list[ModelEvent]) -> None:
                asyncio.run(gathered(processor.wrap(Inner([*events, ModelFinished("stop")]))(request)))

            return work_per_character(run, length)

        work(10)  # the first call may import or create things
        short, long = work(FEW), work(MANY)
        assert long <= GROWTH * short + 20, (
            f"{short:.0f} steps per character for {FEW} characters, but {long:.0f} for {MANY}"
        )
        assert long <= _MOST_WORK

    @pytest.mark.parametrize("piece", HOSTILE_PIECES)
    def test_no_text_makes_the_work_grow_faster_than_its_length(self, piece: str) -> None:
        def run(events: list[ModelEvent]) -> None:
            processor, request = self.make_processor(), self._request()
            with suppress(JackfieldError):  # rejecting a text early is also a bound
                asyncio.run(gathered(processor.wrap(Inner([*events, ModelFinished("stop")]))(request)))

        fail_if_work_grows_faster(run, piece, self.giving_up_s)

    # --- early ends, and concurrent calls ---

    def test_an_error_inside_comes_out_as_it_is_and_closes_everything(self) -> None:
        for count in (0, 1, 3):
            error = ModelRequestError("refused", backend="testkit", code="no")
            events: list[ModelEvent | Exception] = [TextDelta("word ") for _ in range(count)]
            inner = Inner([*events, error])
            came: list[ModelEvent] = []
            with pytest.raises(ModelRequestError) as caught:
                sync.run(_gathered_into(came, self.make_processor().wrap(inner)(self._request())))
            assert caught.value is error, "the processor replaces the original error"
            assert inner.open == 0
            assert not [event for event in came if isinstance(event, ModelFinished)]

    def test_leaving_early_closes_what_is_inside(self) -> None:
        for text in (self.harmless, *self.texts):
            inner = Inner([*(TextDelta(letter) for letter in text), ModelFinished("stop")])
            sync.run(_first_of(self.make_processor().wrap(inner)(self._request())))
            assert inner.open == 0, "the inner stream stays open: use `async with jackfield.streams.closing(events)`"

    def test_a_cancelled_call_closes_what_is_inside(self) -> None:
        inner = _Silent()
        ended = sync.run(_cancelled(self.make_processor().wrap(inner)(self._request()), inner, self.patience_s))
        assert ended, "the processor continues after it is cancelled"
        assert inner.open == 0, "the inner stream stays open"

    def test_the_event_loop_is_never_held_up(self) -> None:
        processor = self.make_processor()

        def answer() -> Coroutine[Any, Any, object]:
            return gathered(processor.wrap(Inner(shown(self.harmless)))(self._request()))

        sync.run(answer())  # imports of the first call do not count
        check_loop(answer)

    def test_a_call_leaves_nothing_behind_for_the_next(self) -> None:
        processor = self.make_processor()
        for text in (*self.texts, self.harmless, *self.texts):
            assert folded(through(processor, self._request(text), shown(text))) == self._answer(shown(text), said=text)
            sync.run(_first_of(processor.wrap(Inner(shown(text)))(self._request(text))))  # one abandoned halfway

    def test_calls_at_the_same_time_do_not_mix(self) -> None:
        texts = [*self.texts, self.harmless]
        many = [f"{texts[number % len(texts)]} {number}" for number in range(8)]
        processor = self.make_processor()
        streams = [
            processor.wrap(Inner([*(TextDelta(letter) for letter in text), ModelFinished("stop")]))(self._request(text))
            for text in many
        ]
        answers = sync.run(_interleaved(streams))
        for text, events in zip(many, answers, strict=True):
            assert folded(events) == self._answer(shown(text), said=text)

    # --- parts ---

    def _request(self, said: str = "", **fields: Any) -> ChatRequest:
        messages = (*self.messages, *([Message("user", said)] if said else []))
        return ChatRequest(model="test-model", messages=messages, **{"functions": (WEATHER,), **fields})

    def _answer(self, events: Sequence[ModelEvent], *, said: str = "") -> ModelResponse:
        """Return a new processor's output for an answer."""
        return folded(through(self.make_processor(), self._request(said), events))

    def _model(self, *script: Sequence[ModelEvent]) -> ScriptedModel:
        return ScriptedModel(script, config=LLMConfig(model="scripted"), processors=[self.make_processor()])

    def _streams(self) -> list[list[ModelEvent]]:
        """Return answers of all kinds: the author's texts, and random ones built from them."""
        texts = [self.harmless, *self.texts]
        streams = [shown(text) for text in texts]
        for text in texts:
            streams.append([ReasoningDelta(text), TextDelta(text), ModelFinished("length")])
            streams.append([TextDelta(text[: len(text) // 2]), ModelFinished("length")])
        dice = random.Random(7)  # noqa: S311 - the same answers in every run
        words = [piece for text in texts for piece in (text, *text.split(" "), text[: len(text) // 2])]
        for _ in range(4):
            said = "".join(dice.choice(words) + dice.choice(["", " ", "\n"]) for _ in range(4))[:120]
            call = FunctionCallDelta(0, "c1", "get_weather", ARGUMENTS)
            streams.append([TextDelta(said), UsageReported(Usage()), call, ModelFinished("tool_calls")])
        return streams


class _Silent:
    """An inner stream that sends one word and then nothing for a long time."""

    def __init__(self) -> None:
        self.open = 0
        self.waiting: asyncio.Event | None = None

    def __call__(self, request: ChatRequest) -> AsyncIterator[ModelEvent]:  # noqa: ARG002 - as a chain is called
        return self._stream()

    async def _stream(self) -> AsyncIterator[ModelEvent]:
        self.open += 1
        try:
            yield TextDelta("word ")
            if self.waiting:
                self.waiting.set()
            await asyncio.sleep(3600)
        finally:
            self.open -= 1


async def _cancelled(events: AsyncIterator[ModelEvent], inner: _Silent, patience_s: float) -> bool:
    """Return True if a stream that is waiting stops when its reader is cancelled."""
    inner.waiting = asyncio.Event()
    task = asyncio.create_task(gathered(events))
    await asyncio.wait(
        [task, asyncio.create_task(inner.waiting.wait())], timeout=patience_s, return_when="FIRST_COMPLETED"
    )
    task.cancel()
    await asyncio.wait([task], timeout=patience_s)
    return task.cancelled()


async def _gathered_into(came: list[ModelEvent], events: AsyncIterator[ModelEvent]) -> None:
    async with closing(events):
        async for event in events:
            came.append(event)  # noqa: PERF401 - what came before an error is looked at, too


async def _first_of(events: AsyncIterator[ModelEvent]) -> ModelEvent:
    async with closing(events):
        return await anext(events)


async def _interleaved(streams: Sequence[AsyncIterator[ModelEvent]]) -> list[list[ModelEvent]]:
    """Read all streams in turn, one event at a time, and return their events."""
    came: list[list[ModelEvent]] = [[] for _ in streams]
    left = dict(enumerate(streams))
    while left:
        for number, events in list(left.items()):
            try:
                came[number].append(await anext(events))
            except StopAsyncIteration:
                del left[number]
    return came


def _other(its_name: str, its_phase: Phase) -> Processor:
    """Return a processor that does nothing."""

    class Other(Processor):
        name = its_name
        phase = its_phase

        def around(self, request: ChatRequest, call_next: Callable[..., Any]) -> AsyncIterator[ModelEvent]:
            return call_next(request)  # type: ignore[no-any-return]

    return Other()


def _frozen(request: ChatRequest) -> object:
    """Return a request's contents as independent values."""
    return (
        [message.model_dump() for message in request.messages],
        copy.deepcopy([dict(function) for function in request.functions]),
        request.config.model_dump(),
        copy.deepcopy(dict(request.metadata)),
        request.model,
        request.lang,
    )
