"""Runs with and without observers: the log, Prometheus, and OpenTelemetry with and without an SDK."""

from __future__ import annotations

from collections.abc import Sequence

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from prometheus_client import CollectorRegistry

from benchmarks.calls import ASK, add, our_agent, raw_client, repeat
from benchmarks.measure import Row, in_turns
from benchmarks.server import Servers
from jackfield.runs import Observer
from jackfield_otel.observer import OtelObserver
from jackfield_prometheus.observer import PrometheusObserver


class _Dropped(SpanExporter):
    """Exporter that discards spans, as if another thread sent them over a network."""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:  # noqa: ARG002 - nothing is sent
        return SpanExportResult.SUCCESS

    def shutdown(self) -> None:
        pass


def _with_sdk() -> OtelObserver:
    tracers = TracerProvider(shutdown_on_exit=False)
    tracers.add_span_processor(BatchSpanProcessor(_Dropped()))
    return OtelObserver(tracer_provider=tracers, meter_provider=MeterProvider(shutdown_on_exit=False))


def observed(servers: Servers) -> list[Row]:
    """Measure answers at full speed and paced, and a run of 20 turns with tool calls, with each observer.

    An SDK costs more than the rest of a run whose model and tools take no time, so such a run has no target with an
    SDK.
    """
    observers: dict[str, list[Observer]] = {
        "without": [],
        "otel without SDK": [OtelObserver()],
        "prometheus": [PrometheusObserver(CollectorRegistry())],
        "otel with SDK": [_with_sdk()],
    }
    rows: list[Row] = []
    with raw_client(servers.chat) as (loop, _):
        for label, model, tools, rounds in (
            ("answer of 10,000 chunks", "long", (), 15),
            ("answer of 500 chunks at 1 ms", "paced", (), 7),
            ("run of 20 turns", "tools-20", (add,), 25),
        ):
            agents = {name: our_agent(servers, model, *tools, observers=its) for name, its in observers.items()}
            cpu = in_turns(
                {name: repeat(loop, lambda agent=agent: agent.arun(ASK), 1) for name, agent in agents.items()},  # type: ignore[misc]
                rounds=rounds,
            )
            plain = cpu.pop("without")
            for name, mine in cpu.items():
                target = "" if (model, name) == ("tools-20", "otel with SDK") else "1.05"
                rows.append(Row(f"{label}, {name}", f"{mine:.2f} ms", f"without {plain:.2f} ms", mine / plain, target))
    return rows
