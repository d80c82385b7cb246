"""A run is a part of the trace of its request, unless there is a span already."""

from __future__ import annotations

import sys

import pytest

from jackfield_serve.tracing import join_trace

TRACE, SPAN = 0x4BF92F3577B34DA6A3CE929D0E0E4736, 0x00F067AA0BA902B7
PARENT = (b"traceparent", f"00-{TRACE:032x}-{SPAN:016x}-01".encode())


def current() -> tuple[int, int]:
    """The trace and the span that are current; 0 without one."""
    trace = pytest.importorskip("opentelemetry.trace")
    context = trace.get_current_span().get_span_context()
    return context.trace_id, context.span_id


def test_the_span_that_a_request_names_is_the_current_one_until_its_end() -> None:
    with join_trace([(b"host", b"x"), PARENT]):
        assert current() == (TRACE, SPAN)
    assert current() == (0, 0)


def test_the_span_is_taken_back_after_an_error() -> None:
    def fail() -> None:
        with join_trace([PARENT]):
            raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        fail()
    assert current() == (0, 0)


def test_the_state_of_the_trace_goes_with_it() -> None:
    trace = pytest.importorskip("opentelemetry.trace")
    with join_trace([PARENT, (b"tracestate", b"acme=1")]):
        assert trace.get_current_span().get_span_context().trace_state.get("acme") == "1"


@pytest.mark.parametrize(
    "headers",
    [[], [(b"host", b"x")], [(b"tracestate", b"acme=1")], [(b"traceparent", b"nonsense")], [(b"traceparent", b"\xff")]],
    ids=["none", "others", "state alone", "nonsense", "bytes"],
)
def test_a_request_without_a_trace_changes_nothing(headers: list[tuple[bytes, bytes]]) -> None:
    with join_trace(headers):
        assert current() == (0, 0)


def test_a_span_of_the_application_around_it_stays() -> None:
    other = (b"traceparent", f"00-{7:032x}-{8:016x}-01".encode())
    with join_trace([other]), join_trace([PARENT]):
        assert current() == (7, 8)


def test_without_opentelemetry_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    entered = False
    with join_trace([PARENT]):
        entered = True
    assert entered
