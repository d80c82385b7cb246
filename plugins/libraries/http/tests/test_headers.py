"""Headers of observers, and how long a server asks to wait in the headers of its refusal."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jackfield.work import Work, surrounded
from jackfield_http import header_pairs
from jackfield_http.headers import retry_after_s, with_outgoing

TRACED = {"traceparent": "00-1-2-01", "x-own": "added"}
NOW = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "2"}, 2),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "-1"}, 0),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after-ms": "0", "retry-after": "9"}, 0),
        ({"retry-after": "Thu, 01 Jan 2026 12:01:00 GMT"}, 60),
        ({"retry-after": "Thu, 01 Jan 2026 11:00:00 GMT"}, 0),
        ({"retry-after": "Thu, 01 Jan 2026 13:01:00 +0100"}, 60),
        ({"retry-after": "Thu, 01 Jan 2026 12:01:00 -0000"}, 60),
        ({"retry-after": ""}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "nan"}, None),
    ],
)
def test_how_long_to_wait_is_read_as_seconds_or_as_a_date(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after_s(headers, NOW) == seconds


@given(
    st.text(max_size=40)
    | st.from_regex(
        r"\A(Mon, )?[0-9]{1,3} [JFMA][a-z]{2} [0-9]{1,6} [0-9]{1,3}:[0-9]{1,3}(:[0-9]{1,3})? "
        r"([+-][0-9]{1,12}|GMT|[A-Z]{1,4})\Z"
    )
)
@example("Fri, 31 Dec 9999 23:59:59 -2359")
@example("Mon, 1 Jan 1 00:00:00 +2359")
@example("Mon, 1 Jan 2026 00:00:00 +999999999999")
def test_whatever_a_server_sends_is_a_time_from_now_on_or_nothing(value: str) -> None:
    for headers in ({"retry-after": value}, {"retry-after-ms": value}):
        seconds = retry_after_s(headers, NOW)
        assert seconds is None or 0 <= seconds < float("inf")


class Adds:
    """Observers that add headers to requests."""

    def enter(self, work: Work) -> Callable[[BaseException | None], None]:
        return lambda _: None

    def headers(self) -> dict[str, str]:
        return TRACED


def test_no_header_of_an_observer_is_sent_beside_one_of_the_same_name() -> None:
    own = header_pairs({"X-Own": "mine", "Accept": "*/*"})
    with surrounded(Work(kind="run", run_id="r"), Adds()):
        assert with_outgoing(own) == [(b"x-own", b"mine"), (b"accept", b"*/*"), (b"traceparent", b"00-1-2-01")]
    assert with_outgoing(own) == own
