"""An OTLP receiver on 127.0.0.1 that decodes what real exporters send, and a real SDK that exports to it."""

from __future__ import annotations

import contextlib
import gzip
import http.server
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from jackfield_otel.config import ContentMode
from jackfield_otel.observer import OtelObserver

KINDS = {0: "unspecified", 1: "internal", 2: "server", 3: "client"}


@dataclass(frozen=True)
class ReceivedSpan:
    """A span as it arrived. Ids are hexadecimal; `parent` is '' for the root of a trace."""

    trace: str
    id: str
    parent: str
    name: str
    kind: str
    attributes: dict[str, Any]
    events: list[tuple[str, dict[str, Any]]]
    links: list[str]
    error: bool
    text: str
    start: int
    end: int


@dataclass
class Receiver:
    """Everything that arrived. `flush` makes the SDK send what it has."""

    bodies: dict[str, list[bytes]] = field(default_factory=dict)
    providers: list[Any] = field(default_factory=list)

    def flush(self) -> None:
        """Have the SDK send everything."""
        for provider in self.providers:
            assert provider.force_flush(30_000)

    def spans(self) -> list[ReceivedSpan]:
        """Return all spans, in the order of their start."""
        self.flush()
        spans: list[ReceivedSpan] = []
        for body in self.bodies.get("/v1/traces", []):
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                for scope in resource.scope_spans:
                    spans += [_span(span) for span in scope.spans]
        return sorted(spans, key=lambda span: span.start)

    def tree(self) -> list[str]:
        """Return the names of all spans, indented below their parents, in the order of their start."""
        spans = self.spans()
        by_id = {span.id: span for span in spans}

        def depth(span: ReceivedSpan) -> int:
            return 0 if span.parent not in by_id else 1 + depth(by_id[span.parent])

        def lines(parent: str | None) -> Iterator[str]:
            for span in spans:
                if (span.parent if span.parent in by_id else None) == parent:
                    yield f"{'  ' * depth(span)}{span.name}"
                    yield from lines(span.id)

        return list(lines(None))

    def metrics(self) -> dict[str, list[tuple[dict[str, Any], int, float]]]:
        """Return the histograms: for each set of attributes the number of values and their sum."""
        return {
            metric.name: [
                (_attributes(point.attributes), point.count, point.sum) for point in metric.histogram.data_points
            ]
            for metric in self._last_metrics()
        }

    def scales(self) -> dict[str, tuple[str, tuple[float, ...]]]:
        """Return the unit and the boundaries of each histogram."""
        return {
            metric.name: (metric.unit, tuple(metric.histogram.data_points[0].explicit_bounds))
            for metric in self._last_metrics()
        }

    def _last_metrics(self) -> list[Any]:
        self.flush()
        return [
            metric
            for body in self.bodies.get("/v1/metrics", [])[-1:]
            for resource in ExportMetricsServiceRequest.FromString(body).resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
        ]

    def log_events(self) -> list[tuple[str, dict[str, Any], str]]:
        """Return the events of the logs: name, attributes and the id of the span."""
        self.flush()
        return [
            (record.event_name, _attributes(record.attributes), record.span_id.hex())
            for body in self.bodies.get("/v1/logs", [])
            for resource in ExportLogsServiceRequest.FromString(body).resource_logs
            for scope in resource.scope_logs
            for record in scope.log_records
        ]


def _span(span: Any) -> ReceivedSpan:
    return ReceivedSpan(
        span.trace_id.hex(),
        span.span_id.hex(),
        span.parent_span_id.hex(),
        span.name,
        KINDS[span.kind],
        _attributes(span.attributes),
        [(event.name, _attributes(event.attributes)) for event in span.events],
        [link.span_id.hex() for link in span.links],
        span.status.code == 2,
        span.status.message,
        span.start_time_unix_nano,
        span.end_time_unix_nano,
    )


def _attributes(pairs: Any) -> dict[str, Any]:
    return {pair.key: _value(pair.value) for pair in pairs}


def _value(value: AnyValue) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value(entry) for entry in value.array_value.values]
    if kind == "kvlist_value":
        return _attributes(value.kvlist_value.values)
    return None if kind is None else getattr(value, kind)


@contextlib.contextmanager
def receiving() -> Iterator[tuple[Receiver, str]]:
    """Run a receiver; give it and its URL."""
    receiver = Receiver()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            receiver.bodies.setdefault(self.path, []).append(body)
            self.send_response(200)
            self.send_header("Content-Type", "application/x-protobuf")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield receiver, f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class SDK:
    """A real SDK that exports to the receiver."""

    def __init__(self, receiver: Receiver, url: str) -> None:
        self.tracers = TracerProvider()
        self.tracers.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(f"{url}/v1/traces")))
        reader = PeriodicExportingMetricReader(OTLPMetricExporter(f"{url}/v1/metrics"), 3_600_000)
        self.meters = MeterProvider([reader], shutdown_on_exit=False)
        self.loggers = LoggerProvider(shutdown_on_exit=False)
        self.loggers.add_log_record_processor(BatchLogRecordProcessor(OTLPLogExporter(f"{url}/v1/logs")))
        receiver.providers += [self.tracers, self.meters, self.loggers]
        self.tracer = self.tracers.get_tracer("a program")

    def observer(self, content: ContentMode | None = None) -> OtelObserver:
        """Return an observer that writes to this SDK."""
        return OtelObserver(
            content, tracer_provider=self.tracers, meter_provider=self.meters, logger_provider=self.loggers
        )

    def close(self) -> None:
        """End the threads of the SDK."""
        for provider in (self.tracers, self.meters, self.loggers):
            provider.shutdown()


@pytest.fixture
def received(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Receiver, SDK]]:
    """A receiver, and an SDK that exports to it."""
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    with receiving() as (receiver, url):
        sdk = SDK(receiver, url)
        yield receiver, sdk
        sdk.close()
