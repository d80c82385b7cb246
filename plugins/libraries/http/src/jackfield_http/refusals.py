"""What every backend does when a server refuses, whatever the protocol: how long to wait, and what may be shown."""

from __future__ import annotations

import json
import math
import re
from base64 import b64encode
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from urllib.parse import quote

MAX_SHOWN_CHARS = 500
HIDDEN = "[key]"
"""What stands in place of a secret."""
_MOST_READ_CHARS = 20_000
_PIECE = 8
_LONGEST_PLACEHOLDER = 5  # a shorter key may be part of any word
_NAMED_LIKE_SECRETS = re.compile(r"auth|cookie|credential|key|passw|secret|session|signature|token", re.IGNORECASE)
_NO_SECRETS = frozenset({"accept", "accept-encoding", "accept-language", "content-type", "user-agent"})


def retry_after_s(headers: Mapping[str, str], now: datetime) -> float | None:
    """How long the server asks to wait, in seconds, at least 0; None if it does not say.

    Args:
        headers: Names in lower case. `retry-after-ms`, as some send it, wins over `retry-after`, which is seconds or an
            HTTP date (RFC 9110).
        now: With its time zone.
    """
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    value = headers.get("retry-after")
    seconds = _number(value)
    if seconds is not None or value is None:
        return seconds
    try:
        until = parsedate_to_datetime(value)
    except ValueError:
        return None
    return max(0.0, (until.replace(tzinfo=until.tzinfo or UTC) - now).total_seconds())


class Secrets:
    """What was sent and must never be shown, however a server writes it: in another case, encoded, or cut.

    Args:
        keys: API keys and tokens. Every eight characters of one count as secret; five or fewer are a placeholder.
        headers: Headers as they are sent. Those that are named like secrets, or look like one, are treated as keys,
            others as a whole.
    """

    def __init__(self, *keys: str, headers: Mapping[str, str] | None = None) -> None:
        given = (headers or {}).items()
        named = [value.partition(" ")[2] or value for name, value in given if _like_a_secret(name, value)]
        self._keys = _unique((*keys, *named), _LONGEST_PLACEHOLDER + 1)
        self._wholes = _unique((value for name, value in given if name.lower() not in _NO_SECRETS), _PIECE)

    def __bool__(self) -> bool:
        return bool(self._keys or self._wholes)

    def __repr__(self) -> str:
        return f"<{len(self._keys)} secrets>"

    def __reduce__(self) -> tuple[type[Secrets], tuple[()]]:
        return Secrets, ()  # another process sends its own

    def out_of(self, text: str) -> str:
        """The text with `HIDDEN` in place of the secrets."""
        lowered = _lowered(text)
        hidden = bytearray(len(text))
        for value in self._wholes:
            _mark(value.lower(), lowered, hidden)
        for pieces in map(_pieces, self._keys):
            _mark_any(pieces, lowered, hidden)
        if not any(hidden):
            return text
        runs = re.finditer(rb"\x00+|\x01+", bytes(hidden))
        return "".join(text[run.start() : run.end()] if hidden[run.start()] == 0 else HIDDEN for run in runs)


def shown(text: str, key: str | Secrets, limit: int = MAX_SHOWN_CHARS) -> str:
    """A server's text in the form an error may show: on one line, without the key, cut at `limit` characters.

    Args:
        text: The text as received.
        key: What was sent: a key, or all secrets of the request.
        limit: In characters.
    """
    secrets = key if isinstance(key, Secrets) else Secrets(key)
    line = " ".join(secrets.out_of(text[:_MOST_READ_CHARS]).split())
    return line if len(line) <= limit else line[:limit] + " …"


def _like_a_secret(name: str, value: str) -> bool:
    if name.lower() in _NO_SECRETS:
        return False
    return bool(_NAMED_LIKE_SECRETS.search(name)) or (len(value) >= 2 * _PIECE and not set(value) & set(" :"))


def _unique(values: Iterable[str], least_chars: int) -> tuple[str, ...]:
    return tuple(dict.fromkeys(value for value in values if len(value) >= least_chars))


def _lowered(text: str) -> str:
    """A text in lower case, character by character."""
    lowered = text.lower()
    if len(lowered) == len(text):
        return lowered
    # A few characters have a longer lower case: places would not be the same.
    return "".join(char.lower() if len(char.lower()) == 1 else char for char in text)


def _mark(value: str, text: str, hidden: bytearray) -> None:
    at = text.find(value)
    while at >= 0:
        hidden[at : at + len(value)] = b"\1" * len(value)
        at = text.find(value, at + 1)


def _mark_any(pieces: frozenset[str], text: str, hidden: bytearray) -> None:
    size = len(next(iter(pieces)))
    for start in range(len(text) - size + 1):
        if text[start : start + size] in pieces:
            hidden[start : start + size] = b"\1" * size


def _pieces(key: str) -> frozenset[str]:
    """Every piece of a key, in lower case, as it is and as it is encoded in URLs, in JSON and in base64."""
    raw = key.encode("utf-8", "surrogatepass")
    # Base64 of what is behind other bytes begins at one of three places; its ends also depend on what is beside it.
    encoded = [b64encode(bytes(before) + raw).decode()[before + 1 if before else 0 : -4] for before in range(3)]
    forms = [key, quote(key, safe="", errors="replace"), json.dumps(key)[1:-1], *encoded]
    size = min(_PIECE, len(key))
    return frozenset(
        form[start : start + size].lower() for form in forms for start in range(len(form) - size + 1)
    ) or frozenset({key.lower()})


def _number(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return max(0.0, value) if math.isfinite(value) else None
