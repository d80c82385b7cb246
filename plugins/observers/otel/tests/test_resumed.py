"""A run that continues in another process links to the span under which it began."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ALWAYS_ON, Sampler
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, TraceState

from jackfield import FnCallAgent, tool
from jackfield.testing import ScriptedModel, answer, calls
from jackfield_otel.observer import OtelObserver, _pauses
from jackfield_records import fork
from jackfield_testkit.records import KilledError, MemoryStore


@tool(needs_approval=True)
def pay(amount: int) -> str:
    """Pay a sum."""
    return f"paid {amount}"


class Process:
    """A process with a tracer provider of its own, which knows nothing of the processes before it."""

    def __init__(self, store: MemoryStore, *, sampler: Sampler = ALWAYS_ON, is_traced: bool = True) -> None:
        _pauses.cache_clear()
        self._exporter = InMemorySpanExporter()
        provider = TracerProvider(sampler=sampler, shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.observers = [OtelObserver(propagate=False, tracer_provider=provider)] if is_traced else []
        self.store = store

    def agent(self, *script: Any) -> FnCallAgent:
        model = ScriptedModel(list(script))
        return FnCallAgent([pay], model, name="clerk", store=self.store, observers=self.observers)

    def runs(self) -> list[ReadableSpan]:
        """Return the spans of runs, in the order of their start."""
        spans = [span for span in self._exporter.get_finished_spans() if span.name == "invoke_agent clerk"]
        return sorted(spans, key=lambda span: span.start_time or 0)


@pytest.fixture(autouse=True)
def other_tests_keep_their_pauses() -> Iterator[None]:
    yield
    _pauses.cache_clear()


class LinksSeen(Sampler):
    """Samples all spans, and notes the links that each is to have."""

    def __init__(self) -> None:
        self.seen: list[trace.Link] = []

    def should_sample(self, *arguments: Any) -> Any:
        self.seen += next(one for one in arguments if isinstance(one, list | tuple))
        return ALWAYS_ON.should_sample(*arguments)

    def get_description(self) -> str:
        return "LinksSeen"


def ask_for(amount: int) -> Any:
    return calls(("pay", {"amount": amount}))


def ids(spans: Sequence[SpanContext | None]) -> list[tuple[int, int]]:
    return [(one.trace_id, one.span_id) for one in spans if one is not None]


def links_of(span: ReadableSpan) -> list[tuple[int, int]]:
    return ids([link.context for link in span.links])


def test_a_run_that_another_process_picks_up_links_to_the_span_under_which_it_began() -> None:
    store = MemoryStore()
    first = Process(store)
    store.writes_left = 2  # its answer
    with pytest.raises(KilledError):
        first.agent(ask_for(3)).ask("Pay.")
    store.restarted()
    [run_id] = store.kept
    second = Process(store)
    waits = second.agent().resume(run_id)
    third = Process(store)
    third.agent(answer("Paid.")).resume(run_id, approvals=dict.fromkeys(waits.waiting, True))
    [began], [picked_up], [resumed] = first.runs(), second.runs(), third.runs()
    assert links_of(began) == []
    assert links_of(picked_up) == links_of(resumed) == ids([began.context])
    assert len({span.context.trace_id for span in (began, picked_up, resumed) if span.context}) == 3


@pytest.mark.parametrize("caller", [0, 7], ids=["in three traces", "in one trace, of the caller"])
def test_a_run_that_continues_twice_in_one_process_links_to_its_beginning_and_to_the_span_before(caller: int) -> None:
    process = Process(MemoryStore())
    with trace.use_span(NonRecordingSpan(SpanContext(caller, caller, is_remote=True, trace_flags=TraceFlags(1)))):
        paused = process.agent(ask_for(3)).ask("Pay.")
        again = process.agent(ask_for(4)).resume(paused.run_id, approvals=dict.fromkeys(paused.waiting, True))
        process.agent(answer("Paid.")).resume(paused.run_id, approvals=dict.fromkeys(again.waiting, True))
    first, second, third = process.runs()
    assert links_of(second) == ids([first.context]), "once, although process and record know it"
    assert links_of(third) == ids([first.context, second.context])


def test_a_forked_run_links_to_the_run_it_was_forked_from_and_later_to_its_own_beginning() -> None:
    store = MemoryStore()
    first = Process(store)
    paused = first.agent(ask_for(3)).ask("Pay.")
    copy = asyncio.run(fork(store, paused.run_id))
    second = Process(store)
    again = second.agent(ask_for(4)).resume(copy, approvals=dict.fromkeys(paused.waiting, True))
    third = Process(store)
    third.agent(answer("Paid.")).resume(copy, approvals=dict.fromkeys(again.waiting, True))
    [began], [forked], [resumed] = first.runs(), second.runs(), third.runs()
    assert links_of(forked) == ids([began.context])
    assert links_of(resumed) == ids([forked.context])


@pytest.mark.parametrize("is_traced", [True, False], ids=["not sampled", "not traced"])
def test_a_run_links_to_no_span_that_was_not_exported(is_traced: bool) -> None:
    store = MemoryStore()
    paused = Process(store, sampler=ALWAYS_OFF, is_traced=is_traced).agent(ask_for(3)).ask("Pay.")
    assert store.events("Traced") == []
    second = Process(store)
    second.agent(answer("Paid.")).resume(paused.run_id, approvals=dict.fromkeys(paused.waiting, True))
    [span] = second.runs()
    assert links_of(span) == []


def test_the_record_keeps_the_state_of_the_trace_and_the_link_has_it() -> None:
    store = MemoryStore()
    first = Process(store)
    caller = SpanContext(7, 8, is_remote=True, trace_flags=TraceFlags(1), trace_state=TraceState([("vendor", "x")]))
    with trace.use_span(NonRecordingSpan(caller)):
        paused = first.agent(ask_for(3)).ask("Pay.")
    [kept] = store.events("Traced")
    assert kept["headers"].keys() == {"traceparent", "tracestate"}
    second = Process(store)
    second.agent(answer("Paid.")).resume(paused.run_id, approvals=dict.fromkeys(paused.waiting, True))
    [began], [resumed] = first.runs(), second.runs()
    assert links_of(resumed) == ids([began.context])
    assert resumed.links[0].context.trace_state == TraceState([("vendor", "x")])


@pytest.mark.parametrize(
    "traceparent", ["", "00-0-0-01", f"00-{0:032x}-{0:016x}-01", "ä" * 5000, f"ff-{7:032x}-{7:016x}-01"]
)
def test_a_damaged_trace_in_a_record_is_no_link(traceparent: str) -> None:
    store = MemoryStore()
    paused = Process(store).agent(ask_for(3)).ask("Pay.")
    headers = {"traceparent": traceparent}
    store.kept[paused.run_id].entries[1] = json.dumps({"event": "Traced", "run_id": paused.run_id, "headers": headers})
    sampler = LinksSeen()
    second = Process(store, sampler=sampler)
    second.agent(answer("Paid.")).resume(paused.run_id, approvals=dict.fromkeys(paused.waiting, True))
    assert (len(second.runs()), sampler.seen) == (1, [])


def test_a_new_run_after_a_resumed_one_has_no_link_of_it() -> None:
    """Also if the resumed one was seen by an observer without a receiver of spans."""
    store = MemoryStore()
    paused = Process(store).agent(ask_for(3)).ask("Pay.")
    second = Process(store)

    async def main() -> None:
        observer = second.observers[0]
        observer.prepare(None)
        observer.resume(paused.run_id, store.events("Traced")[0]["headers"])
        await second.agent(answer("Hello.")).aask("Hi")

    asyncio.run(main())
    [span] = second.runs()
    assert links_of(span) == []
