"""What a server asks for when it refuses, and what of its words may be shown."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable
from datetime import UTC, datetime
from urllib.parse import quote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jackfield_http.refusals import Secrets, retry_after_s, shown

NOW = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
KEY = "sk-" + "SECRET-1"


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


@given(st.lists(st.text(max_size=12) | st.just(KEY), max_size=6), st.integers(1, 80))
def test_what_is_shown_is_one_short_line_without_the_key(parts: list[str], limit: int) -> None:
    line = shown(" ".join(parts), KEY, limit)
    assert KEY not in line
    assert len(line) <= limit + 2
    assert "\n" not in line


def test_a_placeholder_for_a_key_is_a_word_like_any_other() -> None:
    assert shown("no key in EMPTY", "EMPTY") == "no key in EMPTY"


ODD_KEY = 'sk-"Quoted"\\/+%é-SECRET-42'  # with a form of its own in each encoding
FORMS: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "capitals": str.upper,
    "small": str.lower,
    "JSON": lambda key: json.dumps(key)[1:-1],
    "JSON, in capitals": lambda key: json.dumps(key)[1:-1].upper(),
    "URL": lambda key: quote(key, safe=""),
    "base64": lambda key: b64encode(key.encode()).decode(),
    "base64, after one byte": lambda key: b64encode(b":" + key.encode()).decode(),
    "base64, after two bytes": lambda key: b64encode(b"u:" + key.encode()).decode(),
}


@pytest.mark.parametrize("before", ["", "bad ", "İİİ "], ids=["alone", "after a word", "after long small letters"])
@pytest.mark.parametrize("name", FORMS)
def test_no_piece_of_a_key_is_shown_however_a_server_writes_it(name: str, before: str) -> None:
    written = FORMS[name](ODD_KEY)
    for start in range(0, len(written) - 16, 4):  # a server may quote a part of it
        line = shown(f"{before}{written[start : start + 16]} is wrong", ODD_KEY)
        visible = line.replace("[key]", "\0")
        # The ends of base64 also depend on what is beside them.
        assert all(written[at : at + 8] not in visible for at in range(4, len(written) - 12)), line
        assert line.endswith("is wrong")


@pytest.mark.parametrize("repeated", ["tenant-0042-Ab", "TENANT-0042-AB"])
def test_the_value_of_any_header_is_hidden_in_any_case(repeated: str) -> None:
    secrets = Secrets(headers={"X-Tenant": "tenant-0042-Ab", "Accept": "application/json"})
    assert shown(f"no {repeated} for application/json", secrets) == "no [key] for application/json"


@given(st.integers(1, 60))
def test_a_key_at_the_place_where_a_text_is_cut_is_hidden_before_it_is_cut(limit: int) -> None:
    line = shown("x" * 20 + ODD_KEY + "y" * 20, ODD_KEY, limit)
    assert not any(ODD_KEY[:size] in line for size in range(3, len(ODD_KEY)))
