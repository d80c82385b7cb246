"""Readers of a run get everything once, whenever they come, leave and return, and to whichever process."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from jackfield import FnCallAgent
from jackfield.agents import Agent, Event, Run
from jackfield.events import (
    AgentEvent,
    ApprovalDecided,
    FunctionCallDelta,
    ModelEvent,
    ModelFinished,
    PluginEvent,
    PreparationProgress,
    ReasoningDelta,
    ResponseReplaced,
    RetryScheduled,
    RunEvent,
    RunFinished,
    RunStarted,
    StreamReset,
    TextDelta,
    ToolFinished,
    ToolProgress,
    ToolStarted,
    TurnFinished,
    TurnStarted,
    UsageReported,
)
from jackfield.messages import ASSISTANT, FUNCTION, FunctionCall, Message, Usage
from jackfield.models import BaseChatModel
from jackfield.request import ChatRequest
from jackfield.runs import Observer
from jackfield.stores import StoredRun
from jackfield.testing import ScriptedModel, answer, calls
from jackfield_records.entries import head_of
from jackfield_serving import MemoryStore, Numbered, Serving, ServingLimits
from jackfield_serving.live import LiveRun
from jackfield_serving.requests import Request

STEPS = (RunStarted, TurnFinished, ToolFinished, RunFinished)


@dataclass
class Seen:
    """The state of a client after some events: complete steps, and the pieces of the answers that are being made.

    Attributes:
        steps: The steps of each run, in their order.
        started: How often each call was said to begin.
    """

    steps: defaultdict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    order: list[str] = field(default_factory=list)
    started: Counter[tuple[str, str]] = field(default_factory=Counter)
    _texts: dict[str, dict[tuple[type, int], str]] = field(default_factory=lambda: defaultdict(dict))

    def feed(self, event: RunEvent) -> None:
        """Take an event; a complete answer must be the text that came in pieces."""
        inner, texts = event.event, self._texts[event.run_id]
        if isinstance(inner, TurnStarted | StreamReset):
            texts.clear()
        elif isinstance(inner, TextDelta | ReasoningDelta):
            texts[type(inner), 0] = texts.get((type(inner), 0), "") + inner.text
        elif isinstance(inner, FunctionCallDelta):
            key = (FunctionCallDelta, inner.index)
            texts[key] = texts.get(key, "") + f"{inner.id}{inner.name}{inner.arguments}"
        elif isinstance(inner, ToolStarted):
            self.started[event.run_id, inner.call_id] += 1
        elif isinstance(inner, TurnFinished):
            assert {key: text for key, text in texts.items() if text} == texts_in(inner.messages), "in pieces"
            texts.clear()
        if isinstance(inner, ToolFinished):
            assert self.started[event.run_id, inner.call_id], "no call ends that has not begun"
        if isinstance(inner, STEPS):
            self.steps[event.run_id].append(f"{event.agent} {step_name(inner)}")
            self.order.append(f"{event.run_id} {step_name(inner)}")


def step_name(event: object) -> str:
    match event:
        case TurnFinished(turn=turn):
            return f"turn {turn}"
        case ToolFinished(call_id=call_id):
            return f"result of {call_id}"
    return type(event).__name__


def texts_in(messages: Iterable[Message]) -> dict[tuple[type, int], str]:
    texts: dict[tuple[type, int], str] = defaultdict(str)
    index = 0
    for message in messages:
        texts[TextDelta, 0] += message.get_text_content()
        texts[ReasoningDelta, 0] += str(message.reasoning_content or "")
        if message.function_call:
            call = message.function_call
            texts[FunctionCallDelta, index] += f"{message.function_id}{call.name}{call.arguments}"
            index += 1
    return {key: text for key, text in texts.items() if text}


class ScriptedAgent(Agent):
    """An agent whose run consists of given events; others may do something between them."""

    resumable = True

    def __init__(self, script: Sequence[ModelEvent | AgentEvent], **options: Any) -> None:
        super().__init__(name="scripted", **options)
        self.script = script

    async def events(self, run: Run) -> AsyncIterator[Event]:
        for event in self.script:
            yield event
            await asyncio.sleep(0)


class Traces(Observer):
    """Gives each run a trace, which the record keeps as an entry that is no event."""

    name = "traces"

    def observe(self, event: RunEvent) -> None:
        """Note nothing."""

    def trace_of(self, run_id: str) -> Mapping[str, str]:
        return {"traceparent": f"00-{run_id}-00f067aa0ba902b7-01"}


pieces = st.one_of(
    st.builds(TextDelta, st.text("abc", min_size=0, max_size=5)),
    st.builds(ReasoningDelta, st.text("xyz", min_size=1, max_size=5)),
    st.builds(ToolProgress, st.just(0), st.just("none"), st.text("p", max_size=3)),
    st.builds(PreparationProgress, st.sampled_from(("read", "index"))),
    st.just(UsageReported(Usage(prompt_tokens=1))),
)
call_pieces = st.lists(st.text("{}:1", max_size=4), max_size=4)


@st.composite
def attempts(draw: st.DrawFn, call_ids: Sequence[str]) -> tuple[list[ModelEvent], list[Message]]:
    """One attempt of a model: its events, and its messages."""
    events: list[Any] = draw(st.lists(pieces, max_size=12))
    arguments = [draw(call_pieces) for _ in call_ids]
    for index, (call_id, parts) in enumerate(zip(call_ids, arguments, strict=True)):
        events.append(FunctionCallDelta(index, id=call_id, name="work"))
        events += [FunctionCallDelta(index, arguments=part) for part in parts]
    text = "".join(one.text for one in events if isinstance(one, TextDelta))
    reasoning = "".join(one.text for one in events if isinstance(one, ReasoningDelta))
    messages = [Message(ASSISTANT, text, reasoning_content=reasoning or None)] if text or reasoning else []
    for call_id, parts in zip(call_ids, arguments, strict=True):
        call = FunctionCall("work", "".join(parts))
        messages.append(Message(ASSISTANT, "", function_call=call, extra={"function_id": call_id}))
    return events, messages


@st.composite
def scripts(draw: st.DrawFn) -> list[Any]:
    """The events of a run: answers with failed attempts before them, calls, reports, and an end."""
    script: list[Any] = []
    for turn in range(1, draw(st.integers(1, 4)) + 1):
        call_ids = [f"{turn}.{number}" for number in range(draw(st.integers(0, 3)))]
        script.append(TurnStarted(turn))
        for number in range(draw(st.integers(0, 2))):
            script += draw(attempts(call_ids))[0]
            script += [RetryScheduled(number, 0.0, "broken"), StreamReset("broken")]
        events, messages = draw(attempts(call_ids))
        script += [*events, ModelFinished("stop"), TurnFinished(turn, tuple(messages), Usage(prompt_tokens=1))]
        if draw(st.booleans()):
            script.append(PluginEvent("zoo.report", {"turn": turn}))
        script += [ApprovalDecided(one, FunctionCall("work", "{}"), True, "approve") for one in call_ids[:1]]
        script += [ToolStarted(index, one, FunctionCall("work", "{}")) for index, one in enumerate(call_ids)]
        for index, one in enumerate(call_ids):
            script += [ToolProgress(index, one, "half")] * draw(st.integers(0, 5))
            result = Message(FUNCTION, "done", name="work", extra={"function_id": one})
            script.append(ToolFinished(index, one, result, 0.1))
    return [*script, RunFinished("finished", (), Usage())]


@dataclass(frozen=True)
class Visit:
    """A visit of a reader: when it begins, in steps of the loop; how much it reads, and how fast; at which process."""

    wait: int
    count: int
    pause: int
    process: int


visits = st.builds(Visit, st.integers(0, 40), st.integers(0, 12), st.integers(0, 5), st.integers(0, 1))
readers = st.lists(st.lists(visits, max_size=4), min_size=1, max_size=6)


async def read_all(servings: Sequence[Serving], run_id: str, plan: Sequence[Visit]) -> list[Numbered]:
    """Return the events of a reader that comes and goes as planned, and at last stays until the end."""
    events: list[Numbered] = []
    for visit in [*plan, Visit(0, 1_000_000, 0, plan[-1].process if plan else 0)]:
        for _ in range(visit.wait):
            await asyncio.sleep(0)
        after = events[-1].number if events else 0
        stream = servings[visit.process].attach(run_id, after=after)
        left = visit.count
        try:
            while left:
                events.append(await anext(stream))
                left -= 1
                for _ in range(visit.pause):
                    await asyncio.sleep(0)
        except StopAsyncIteration:
            pass
        await stream.aclose()  # type: ignore[attr-defined]
    return events


def check(events: Sequence[Numbered], expected: Seen, *, stayed: bool) -> None:
    numbers = [one.number for one in events]
    assert numbers == sorted(set(numbers)), "numbers grow"
    seen = Seen()
    for _, event in events:
        seen.feed(event)
    assert seen.steps == expected.steps
    assert seen.order == expected.order
    assert seen.started.keys() == expected.started.keys()
    if stayed:  # to those who come back from elsewhere, a call may begin again
        assert seen.started == expected.started


ANSWERED: list[Any] = [
    *(TurnStarted(1), TextDelta("one "), TextDelta("two"), ModelFinished("stop")),
    *(TurnFinished(1, (Message(ASSISTANT, "one two"),), Usage()), RunFinished("finished", (), Usage())),
]


@given(scripts(), readers, st.integers(1, 60), st.integers(1, 60), st.booleans())
@example(ANSWERED, [[Visit(0, 2, 1, 0), Visit(1, 1, 1, 1)], [Visit(2, 9, 0, 1)]], 60, 60, True)
@settings(max_examples=settings().max_examples // 2)
def test_a_reader_gets_everything_once_whenever_and_wherever_it_comes(
    script: list[Any], plans: list[list[Visit]], buffer_events: int, buffer_chars: int, is_traced: bool
) -> None:
    async def main() -> None:
        limits = ServingLimits(buffer_events=buffer_events, buffer_chars=buffer_chars)
        store = MemoryStore()
        agent = ScriptedAgent(script, observers=[Traces()] if is_traced else [])
        async with (
            asyncio.timeout(60),
            Serving({"a": agent}, store=store, limits=limits) as serving,
            Serving({"a": agent}, store=store, poll_s=0.0) as other,
        ):
            run_id = await serving.start("a", "Go")
            expected = Seen()
            expected.feed(RunEvent(run_id, 1, "scripted", 0, RunStarted(())))
            for event in script:
                expected.feed(RunEvent(run_id, 1, "scripted", 0, event))
            servings = (serving, other)
            results = await asyncio.gather(*(read_all(servings, run_id, plan) for plan in plans))
            for plan, events in zip(plans, results, strict=True):
                check(events, expected, stayed=not plan)
            for late in servings:
                check([one async for one in late.attach(run_id)], expected, stayed=True)
            names = [head_of(entry).event for entry in (await store.read(run_id))[1]]
            assert names[1 : 1 + is_traced] == ["Traced"] * is_traced == [name for name in names if name == "Traced"]

    asyncio.run(main())


@pytest.mark.parametrize(("buffer_events", "secret"), [(5, ""), (2000, ""), (2000, "sk-Zq83bXw4Rk2LpV7Tn")])
def test_events_of_agents_that_work_side_by_side_come_once(buffer_events: int, secret: str) -> None:
    """Their steps are recorded in an order of their own, while their events wait in queues.

    An entry with a hidden secret is written anew, with its fields in another order.
    """

    def helper(name: str) -> FnCallAgent:
        texts = [answer(f"{name} says {number}, at length and in pieces") for number in range(6)]
        return FnCallAgent(llm=ScriptedModel(texts), name=name, description="Helps.")

    async def main() -> None:
        asked: list[tuple[str, dict[str, object]]] = [
            ("ann", {"request": f"a {secret}"}),
            ("ben", {"request": f"b {secret}"}),
            ("cy", {"request": "c"}),
        ]
        script = [calls(*asked), calls(*asked), answer("All three have said it.")]
        tools = [helper(name).as_tool() for name in ("ann", "ben", "cy")]
        config = {"model": "scripted", **({"api_key": secret} if secret else {})}
        agent = FnCallAgent(tools, ScriptedModel(script, config=config), name="host")
        store = MemoryStore()
        limits = ServingLimits(buffer_events=buffer_events)
        async with (
            asyncio.timeout(60),
            Serving({"a": agent}, store=store, limits=limits) as serving,
            Serving({"a": agent}, store=store, poll_s=0.0) as other,
        ):
            run_id = await serving.start("a", "Go")
            servings = (serving, other)
            plans = [
                [Visit(wait, count, pause, process)]
                for process in (0, 1)
                for pause in (0, 3)
                for wait, count in ((0, 10_000), (0, 7), (5, 20), (40, 3), (90, 60))
            ]
            results = await asyncio.gather(*(read_all(servings, run_id, plan) for plan in plans))
            late = [one async for one in other.attach(run_id)]
            expected = Seen()
            for _, event in late:
                expected.feed(event)
            assert len(expected.steps) == 7
            for events in results:
                check(events, expected, stayed=False)

    asyncio.run(main())


STARTED, TURN = '{"event": "RunStarted"}', '{"event": "TurnFinished"}'
NESTED = ['{"asked": {"run_id": "n"}, "below": 1, "event": "RunStarted"}', '{"below": 1, "event": "TurnFinished"}']


@pytest.mark.parametrize(
    ("entries", "repeated"),
    [
        pytest.param([], set(), id="new"),
        pytest.param([STARTED], set(), id="no step"),
        pytest.param([STARTED, TURN], {"r"}, id="a turn"),
        pytest.param([STARTED, TURN, *NESTED], {"r", "n"}, id="a turn, and a nested run"),
        pytest.param([STARTED, TURN, STARTED], set(), id="begun again"),
        pytest.param([STARTED, TURN, STARTED, TURN], {"r"}, id="a turn after it began again"),
    ],
)
def test_only_messages_that_a_continued_run_repeats_are_kept_from_readers(
    entries: list[str], repeated: set[str]
) -> None:
    live = LiveRun(StoredRun(run_id="r"), "a", Request(), entries=entries, limits=ServingLimits())
    for run_id in ("r", "n"):
        for text in ("first", "later"):
            live.publish(RunEvent(run_id, 0, "a", 0, ResponseReplaced((Message(ASSISTANT, text),))))
    shown = {(one.event.run_id, one.event.event.messages[0].content) for one in live.after(live.floor) or ()}
    assert {("r", "later"), ("n", "later")} <= shown
    assert {run_id for run_id in ("r", "n") if (run_id, "first") not in shown} == repeated


def test_a_reader_of_the_record_continues_live_in_the_middle_of_an_answer() -> None:
    gate = asyncio.Event()

    class Gated(ScriptedAgent):
        async def events(self, run: Run) -> AsyncIterator[Event]:
            async for event in super().events(run):
                yield event
                if isinstance(event, ToolStarted):
                    await gate.wait()

    call = Message(ASSISTANT, "", function_call=FunctionCall("work", "{}"), extra={"function_id": "c"})
    result = Message(FUNCTION, "done", name="work", extra={"function_id": "c"})
    script: list[Any] = [
        TurnStarted(1),
        *[ReasoningDelta("think "), TextDelta("one "), TextDelta("two"), FunctionCallDelta(0, "c", "work", "{}")],
        ModelFinished("tool_calls"),
        TurnFinished(1, (Message(ASSISTANT, "one two", reasoning_content="think "), call), Usage()),
        *[ToolStarted(0, "c", FunctionCall("work", "{}")), ToolFinished(0, "c", result, 0.1)],
        *[TurnStarted(2), TextDelta("end"), ModelFinished("stop")],
        TurnFinished(2, (Message(ASSISTANT, "end"),), Usage()),
        RunFinished("finished", (), Usage()),
    ]

    async def main() -> None:
        store = MemoryStore()
        agent = Gated(script)
        async with (
            asyncio.timeout(60),
            Serving({"a": agent}, store=store) as serving,
            Serving({"a": agent}, store=store, poll_s=0.0) as other,
        ):
            run_id = await serving.start("a", "Go")
            while not any(isinstance(one, Message) for one in (await serving.run(run_id)).response):
                await asyncio.sleep(0)
            beginnings: list[list[Numbered]] = []
            for count in range(1, 9):  # RunStarted, and the answer in pieces
                stream = other.attach(run_id)
                beginnings.append([await anext(stream) for _ in range(count)])
                await stream.aclose()  # type: ignore[attr-defined]
            gate.set()
            expected = Seen()
            expected.feed(RunEvent(run_id, 1, "scripted", 0, RunStarted(())))
            for event in script:
                expected.feed(RunEvent(run_id, 1, "scripted", 0, event))
            for beginning in beginnings:
                rest = [one async for one in serving.attach(run_id, after=beginning[-1].number)]
                check([*beginning, *rest], expected, stayed=True)

    asyncio.run(main())


def test_readers_that_wait_read_no_record_however_many_runs_end_at_once() -> None:
    class CountingStore(MemoryStore):
        reads = 0

        async def read(self, run_id: str, *, after: int = 0) -> tuple[StoredRun, list[str]]:
            self.reads += 1
            return await super().read(run_id, after=after)

    class WaitingModel(BaseChatModel):
        backend = "waiting"

        async def stream(self, request: ChatRequest) -> AsyncIterator[ModelEvent]:
            await may_answer.wait()
            yield TextDelta("yes")
            yield ModelFinished("stop")

    may_answer = asyncio.Event()

    async def main() -> int:
        store = CountingStore()
        async with Serving({"a": FnCallAgent(llm=WaitingModel({"model": "m"}), name="a")}, store=store) as serving:

            async def read_end(run_id: str) -> object:
                return [numbered.event.event async for numbered in serving.attach(run_id)][-1]

            readers = [asyncio.create_task(read_end(await serving.start("a", "?"))) for _ in range(100)]
            await asyncio.sleep(0.05)
            may_answer.set()
            assert all(isinstance(end, RunFinished) for end in await asyncio.gather(*readers))
            return store.reads

    assert asyncio.run(main()) == 0
