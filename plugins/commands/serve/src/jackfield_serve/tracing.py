"""Let runs join the trace of the request that starts them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

_NAMES = (b"traceparent", b"tracestate")


@contextmanager
def join_trace(headers: Iterable[tuple[bytes, bytes]]) -> Iterator[None]:
    """Use the span from the request's `traceparent` header as the current span.

    Do nothing if another span is already active, such as that of a surrounding application, or if OpenTelemetry is not
    installed.
    """
    carrier = {name.decode(): value.decode("latin-1") for name, value in headers if name in _NAMES}
    if "traceparent" not in carrier:
        yield
        return
    try:
        from opentelemetry import context, trace
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
    except ImportError:
        yield
        return
    if trace.get_current_span().get_span_context().is_valid:
        yield
        return
    token = context.attach(TraceContextTextMapPropagator().extract(carrier))
    try:
        yield
    finally:
        context.detach(token)
