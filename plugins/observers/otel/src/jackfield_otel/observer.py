"""Trace runs for OpenTelemetry: agents, model requests, tool calls and searches, in one tree across agents."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from contextlib import AbstractContextManager
from functools import cache
from typing import ClassVar

from opentelemetry import _logs as logs
from opentelemetry import metrics, trace
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from jackfield.events import (
    ApprovalDecided,
    ApprovalNeeded,
    HandedOff,
    HistoryTrimmed,
    ModelFinished,
    RetryScheduled,
    RunEvent,
    RunFailed,
    RunFinished,
    RunStarted,
    StreamReset,
    ToolFinished,
    ToolStarted,
    TurnFinished,
    TurnStarted,
)
from jackfield.request import ChatRequest
from jackfield.runs import Observer
from jackfield.work import Work
from jackfield_otel import names
from jackfield_otel.config import ContentMode
from jackfield_otel.content import Content, content_mode
from jackfield_otel.measuring import Instruments
from jackfield_otel.pauses import Pauses, keys_of_calls
from jackfield_otel.run_trace import RunTrace, Telemetry

ABANDONED = "abandoned"
"""The stop reason of a run whose reader left or whose task was cancelled."""
_LEFT = ("GeneratorExit", "CancelledError")
_PROPAGATOR = TraceContextTextMapPropagator()


@cache
def _pauses() -> Pauses:
    """Return the process-wide memory of spans, because another agent may continue a run."""
    return Pauses()


class OtelObserver(Observer):
    """Traces and measures runs, following the semantic conventions for generative AI.

    Does nothing unless a tracer or meter provider is configured.

    Args:
        content: The destination for texts of runs. If None, the environment decides.
        propagate: True to send `traceparent` with requests to models and services.
        chunk_times: True to measure the times between an answer's chunks.
        tracer_provider, meter_provider, logger_provider: The providers to use. Default to the global ones.
    """

    name: ClassVar[str] = "otel"

    def __init__(
        self,
        content: ContentMode | None = None,
        propagate: bool = True,
        chunk_times: bool = False,
        *,
        tracer_provider: trace.TracerProvider | None = None,
        meter_provider: metrics.MeterProvider | None = None,
        logger_provider: logs.LoggerProvider | None = None,
    ) -> None:
        self._providers = (tracer_provider, meter_provider)
        self._propagate = propagate
        self._to = Telemetry(
            trace.get_tracer(names.SCOPE, tracer_provider=tracer_provider),
            Instruments(meter_provider),
            logs.get_logger(names.SCOPE, logger_provider=logger_provider),
            Content(content_mode(content)),
            _pauses(),
            chunk_times=chunk_times,
        )
        self._runs: dict[str, RunTrace] = {}
        self._starting = threading.local()

    def prepare(self, agent: object) -> None:
        """Set the agent of the next run in this thread, and collect its secrets if texts are written."""
        self._starting.agent, self._starting.trace = agent, {}
        if self._to.content and self._is_needed():
            self._to.content.include_secrets(agent)

    def observe(self, event: RunEvent) -> None:
        """Turn an event into spans and metrics."""
        inner = event.event
        run = self._runs.get(event.run_id)
        if run is None:
            if isinstance(inner, RunStarted) and self._is_needed():
                self._begin(event, inner)
        elif getattr(inner, "is_delta", True):
            run.see_piece()
        elif isinstance(inner, RunFinished | RunFailed):
            self._end(event.run_id, run, inner)
        else:
            _follow(run, event)

    def observe_request(self, run_id: str, request: ChatRequest) -> None:
        """Record a request's model, server and options."""
        run = self._runs.get(run_id)
        if run is not None:
            run.see_request(request)

    def surround(self, work: Work) -> AbstractContextManager[object] | None:
        """Return a context manager that makes the work's span current, or None if the run is not traced."""
        run = self._runs.get(work.run_id)
        if run is None:
            return None
        match work.kind:
            case "run":
                run.note_session(str(work.facts.get("session", "")))
                return run.inside
            case "tool_call":
                return run.inside_call(work.call_id, work.name)
            case "retrieval":
                return run.inside_search(work)
            case "embedding":
                return run.inside_embedding(work)
        return None  # from a later version

    def headers(self) -> Mapping[str, str]:
        """Return `traceparent` and `tracestate` of the current span. Baggage may be private and is not sent."""
        headers: dict[str, str] = {}
        if self._propagate:
            _PROPAGATOR.inject(headers)
        return headers

    def trace_of(self, run_id: str) -> Mapping[str, str]:
        """Return the context of the run's span if it is sampled, because a link to an unsampled span leads nowhere."""
        run = self._runs.get(run_id)
        headers: dict[str, str] = {}
        if run is not None and run.is_sampled:
            _PROPAGATOR.inject(headers, run.root_context)
        return headers

    def resume(self, run_id: str, trace: Mapping[str, str]) -> None:  # noqa: ARG002 - the run starts next
        """Set the original trace of the next run in this thread, to link to it."""
        self._starting.trace = trace

    def _is_needed(self) -> bool:
        """Return True if anything receives spans or metrics. The API's own providers record nothing."""
        tracing, measuring = self._providers
        return not (
            type(tracing or trace.get_tracer_provider()).__module__.startswith("opentelemetry.trace")
            and type(measuring or metrics.get_meter_provider()).__module__.startswith("opentelemetry.metrics")
        )

    def _begin(self, event: RunEvent, started: RunStarted) -> None:
        agent, began_in = getattr(self._starting, "agent", None), getattr(self._starting, "trace", {})
        self._starting.agent = None
        links = self._to.pauses.links_to(event.run_id, started.messages)
        began = trace.get_current_span(_PROPAGATOR.extract(began_in)).get_span_context()
        if began.is_valid and all(_ids(link.context) != _ids(began) for link in links):
            links.insert(0, trace.Link(began))
        self._runs[event.run_id] = RunTrace(event, started, agent, self._to, links)

    def _end(self, run_id: str, run: RunTrace, ending: RunFinished | RunFailed) -> None:
        del self._runs[run_id]
        if isinstance(ending, RunFinished):
            run.write_answer(ending.messages, ending.stop_reason)
            run.end(ending.stop_reason, "", "", ending.usage)
        elif ending.kind in _LEFT:
            run.end(ABANDONED, "", "", None)
        else:
            run.end("failed", ending.kind, ending.error, None)


def _ids(span: trace.SpanContext) -> tuple[int, int]:
    return span.trace_id, span.span_id


def _follow(run: RunTrace, event: RunEvent) -> None:
    match event.event:
        case TurnStarted():
            run.begin_turn()
        case ModelFinished() as finished:
            run.see_finish(finished)
        case TurnFinished() as turn:
            run.end_turn(turn)
        case ToolStarted(call_id=call_id, call=call):
            run.begin_call(call_id, call)
        case ToolFinished() as result:
            run.end_call(result)
        case StreamReset():
            run.reset_answer()
        case _:
            _note(run, event)


def _note(run: RunTrace, event: RunEvent) -> None:
    match event.event:
        case RetryScheduled(attempt=attempt, delay_s=delay_s):
            run.note(names.RETRY_EVENT, attempt=attempt, delay_s=delay_s)
        case HandedOff(to=to):
            run.hand_over(to)
        case ApprovalDecided(allowed=allowed, by=by):
            run.note(names.APPROVAL_EVENT, allowed=allowed, by=by)
        case ApprovalNeeded(calls=calls, call_ids=call_ids):
            run.wait_for(keys_of_calls(zip(call_ids, calls, strict=False)))
        case HistoryTrimmed(dropped=dropped, shortened=shortened):
            run.note(names.TRIMMED_EVENT, dropped=dropped, shortened=shortened)
