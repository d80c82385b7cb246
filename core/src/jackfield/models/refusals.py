"""What every backend does with a server's refusal, whatever its protocol: how long to wait, and what may be shown."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

MAX_SHOWN_CHARS = 500


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


def shown(text: str, key: str, limit: int = MAX_SHOWN_CHARS) -> str:
    """A server's text as an error may show it: on one line, without the key, cut at `limit` characters."""
    line = " ".join(text.split())
    if len(key) > 5:  # a shorter one is a placeholder, and may be part of any word
        line = line.replace(key, "[key]")
    return line if len(line) <= limit else line[:limit] + " …"


def _number(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return max(0.0, value) if math.isfinite(value) else None
