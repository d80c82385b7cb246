"""Count runs, answers and tool calls for Prometheus."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import ClassVar

from prometheus_client import CollectorRegistry

from jackfield.events import (
    ModelFinished,
    RetryScheduled,
    RunEvent,
    RunFailed,
    RunFinished,
    RunStarted,
    StreamReset,
    ToolFinished,
    TurnFinished,
    TurnStarted,
)
from jackfield.runs import Observer
from jackfield_prometheus.metrics import metrics_of

FAILED, ABANDONED = "failed", "abandoned"
"""Outcomes besides the stop reasons: the run failed with an error, or its reader left or its task was cancelled."""
_LEFT = ("GeneratorExit", "CancelledError")
_MAX_KNOWN_TOOLS = 10_000


@dataclass(slots=True)
class _RunState:
    """A run's data for later events. Times are performance counter values, in seconds.

    Attributes:
        agent: The agent that began the run, as a label.
        started: The start of the run.
        asked: The last model request.
        first_piece: The first chunk of its answer, or 0 before that.
        model: The model that gave the last answer.
    """

    agent: str
    started: float
    asked: float
    first_piece: float = 0.0
    model: str = ""


class PrometheusObserver(Observer):
    """Counts runs by outcome, tokens, cost, time to first token, tool calls and their failures.

    All observers in a process share their registry's metrics.

    Args:
        registry: The registry for the metrics. Defaults to the default registry of `prometheus_client`.
    """

    name: ClassVar[str] = "prometheus"

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self._registry = registry
        self._metrics = metrics_of(registry)
        self._runs: dict[str, _RunState] = {}
        self._tools: frozenset[str] = frozenset()

    def prepare(self, agent: object) -> None:
        """Register the agent's tool names as trusted, because no model made them up."""
        tools = getattr(agent, "function_map", {}).keys()
        if not tools <= self._tools and len(self._tools) < _MAX_KNOWN_TOOLS:
            self._tools |= tools

    def observe(self, event: RunEvent) -> None:
        """Count an event."""
        inner = event.event
        state = self._runs.get(event.run_id)
        if getattr(inner, "is_delta", True):
            if state is not None and not state.first_piece:
                state.first_piece = time.perf_counter()
            return
        if isinstance(inner, RunStarted):
            self._begin(event)
        elif state is not None:
            self._count(event, state)

    def exposition(self) -> str:
        """Return the metrics in Prometheus text format; see `jackfield_prometheus.exposition`."""
        from jackfield_prometheus.exposing import exposition

        return exposition(self._registry)

    def set_queue_length(self, runs: int) -> None:
        """Set the number of queued runs in this process. Called by servers that host runs."""
        self._metrics.queued.set(runs)

    def _begin(self, event: RunEvent) -> None:
        agent = self._metrics.labels.bounded("agent", event.agent)
        now = time.perf_counter()
        if event.run_id not in self._runs:
            self._metrics.running.labels(agent).inc()
        self._runs[event.run_id] = _RunState(agent, now, now)

    def _count(self, event: RunEvent, state: _RunState) -> None:
        match event.event:
            case TurnStarted():
                state.asked, state.first_piece, state.model = time.perf_counter(), 0.0, ""
            case StreamReset():
                state.first_piece = 0.0
            case ModelFinished(model=model):
                state.model = model
            case TurnFinished() as turn:
                self._count_answer(event.agent, turn, state)
            case ToolFinished() as call:
                self._count_call(event.agent, call)
            case RetryScheduled():
                self._metrics.retries.labels(self._metrics.labels.bounded("agent", event.agent)).inc()
            case RunFinished(stop_reason=reason):
                self._end(event.run_id, state, reason)
            case RunFailed(kind=kind):
                self._end(event.run_id, state, ABANDONED if kind in _LEFT else FAILED)

    def _count_answer(self, agent: str, turn: TurnFinished, state: _RunState) -> None:
        metrics, usage, now = self._metrics, turn.usage, time.perf_counter()
        labels = (metrics.labels.bounded("agent", agent), metrics.labels.bounded("model", state.model))
        metrics.tokens.labels(*labels, "input").inc(usage.prompt_tokens)
        metrics.tokens.labels(*labels, "output").inc(usage.completion_tokens)
        if usage.cached_tokens:
            metrics.cached_tokens.labels(*labels).inc(usage.cached_tokens)
        if usage.reasoning_tokens:
            metrics.reasoning_tokens.labels(*labels).inc(usage.reasoning_tokens)
        if usage.cost is None:
            metrics.unpriced.labels(*labels).inc()
        elif usage.cost > 0:
            metrics.cost.labels(*labels, usage.currency or "").inc(float(usage.cost))
        metrics.answer_seconds.labels(*labels).observe(now - state.asked)
        if state.first_piece:
            metrics.first_token_seconds.labels(*labels).observe(state.first_piece - state.asked)

    def _count_call(self, agent: str, call: ToolFinished) -> None:
        metrics, name = self._metrics, call.message.name or ""
        is_trusted = not call.error or name in self._tools
        labels = (metrics.labels.bounded("agent", agent), metrics.labels.bounded("tool", name, is_trusted=is_trusted))
        metrics.calls.labels(*labels).inc()
        if call.error:
            metrics.failures.labels(*labels, metrics.labels.bounded("error", call.error)).inc()
        metrics.call_seconds.labels(labels[1]).observe(call.seconds)

    def _end(self, run_id: str, state: _RunState, outcome: str) -> None:
        del self._runs[run_id]
        self._metrics.running.labels(state.agent).dec()
        self._metrics.runs.labels(state.agent, outcome).inc()
        self._metrics.run_seconds.labels(state.agent).observe(time.perf_counter() - state.started)
