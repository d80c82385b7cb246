"""Headers in wire format."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime

from jackfield.errors import ConfigError
from jackfield.secrets import ForgetLocals
from jackfield.work import outgoing_headers

NO_KEY = "EMPTY"
"""The conventional key for servers that require none."""
_KEY_HEADERS = frozenset({"authorization", "api-key", "x-api-key"})
_BODY_HEADERS = frozenset({"accept-encoding", "content-type"})
_CONNECTION_HEADERS = frozenset({"content-length", "host", "transfer-encoding"})
_WITHOUT_KEY = f"Bearer {NO_KEY}"
# The first is Anthropic's, before which a gateway may put its own `x-request-id`; the last one is Azure's.
_REQUEST_IDS = ("request-id", "x-request-id", "apim-request-id")


class HeaderPairs(list[tuple[bytes, bytes]]):
    """Headers in wire format. `repr` shows only their names, because values may be keys."""

    def __repr__(self) -> str:
        return f"<headers {', '.join(name.decode('latin-1') for name, _ in self)}>"


def header_pairs(*headers: Mapping[str, str], extra: Mapping[str, str] | None = None, key: str = "") -> HeaderPairs:
    """Return headers in wire format, with lowercase names. The last header of a name wins.

    Args:
        headers: The backend's headers.
        extra: The user's `extra_headers`. They override all others, except for the key and the headers that describe
            the body.
        key: The API key. Any header that contains it counts as carrying the key.

    Raises:
        ConfigError: An extra header would replace the key or misdescribe the body, or a header contains a lone
            surrogate, which cannot be sent.
    """
    with ForgetLocals():  # keys are among them
        own = _joined(*headers)
        for name in _joined(extra or {}):
            _refuse_taking_over(name, own, key)
        return _as_sent(_joined(own, extra or {}))


def with_outgoing(headers: HeaderPairs) -> HeaderPairs:
    """Add the headers set by observers of the current run, such as `traceparent`. Existing headers are not replaced."""
    observer_headers = outgoing_headers()
    if not observer_headers:
        return headers
    own = {name for name, _ in headers}
    added = ((name.encode(), value.encode()) for name, value in observer_headers.items())
    return HeaderPairs([*headers, *(pair for pair in added if pair[0] not in own)])


def _joined(*headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for some in headers for name, value in some.items()}


def _as_sent(headers: Mapping[str, str]) -> HeaderPairs:
    try:
        return HeaderPairs((name.encode(), value.encode()) for name, value in headers.items())
    except UnicodeEncodeError:
        raise ConfigError("a header contains a lone surrogate, which cannot be sent: check extra_headers") from None


def _refuse_taking_over(name: str, own: Mapping[str, str], key: str) -> None:
    value = own.get(name, _WITHOUT_KEY)
    is_for_keys = name in _KEY_HEADERS
    contains_key = key not in ("", NO_KEY) and key in value
    if (is_for_keys or contains_key) and value != _WITHOUT_KEY:
        raise ConfigError(f"extra_headers must not contain {name!r}, which carries the API key: set api_key instead")
    if name in _CONNECTION_HEADERS or (name in _BODY_HEADERS and name in own):
        raise ConfigError(f"extra_headers must not contain {name!r}, which the backend itself sets: remove it")


def request_id_of(headers: Mapping[str, str]) -> str | None:
    """Return the server's id for a request, for its operators, or None if there is none.

    Args:
        headers: The response headers, with lowercase names.
    """
    for name in _REQUEST_IDS:
        if headers.get(name):
            return headers[name]
    return None


def retry_after_s(headers: Mapping[str, str], now: datetime) -> float | None:
    """Return the wait that the server requests, in seconds and at least 0, or None if it requests none.

    Args:
        headers: The response headers, with lowercase names. `retry-after-ms`, which some servers send, takes precedence
            over `retry-after`, which holds seconds or an HTTP date (RFC 9110).
        now: The current time, with its time zone.
    """
    milliseconds = _nonnegative(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    value = headers.get("retry-after")
    seconds = _nonnegative(value)
    if seconds is not None or value is None:
        return seconds
    from email.utils import parsedate_to_datetime  # for errors only

    try:
        until = parsedate_to_datetime(value)
    except ValueError:
        return None
    return max(0.0, (until.replace(tzinfo=until.tzinfo or UTC) - now).total_seconds())


def _nonnegative(text: str | None) -> float | None:
    """Return a finite number, with negative values raised to 0, or None if the text is not a number."""
    try:
        value = float(text or "")
    except ValueError:
        return None
    return max(0.0, value) if math.isfinite(value) else None
