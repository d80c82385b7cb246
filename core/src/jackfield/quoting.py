"""Quote text from servers and libraries in error messages without the secrets that were sent to them.

`jackfield.secrets` hides a run's secrets in all output and can restore them. This module hides any eight consecutive
characters of a key, because a server may repeat the key truncated, encoded or in a different case.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterable, Mapping
from urllib.parse import quote

MAX_CHARS = 500
HIDDEN = "[key]"
"""The placeholder for a secret."""

_MAX_READ_CHARS = 20_000
_PIECE_CHARS = 8
_MAX_PLACEHOLDER_CHARS = 5  # shorter keys may be part of any word
_SECRET_NAMES = re.compile(r"auth|cookie|credential|key|passw|secret|session|signature|token", re.IGNORECASE)
_HARMLESS_HEADERS = frozenset({"accept", "accept-encoding", "accept-language", "content-type", "user-agent"})


def quote_text(text: str, secrets: str | SentSecrets, max_chars: int = MAX_CHARS) -> str:
    """Return foreign text for use in an error message: one line, without secrets, and truncated if it is long.

    Args:
        text: The text as it was received.
        secrets: The key that was sent ('' for none), or all secrets in the request.
        max_chars: The maximum length.
    """
    if isinstance(secrets, str):
        secrets = SentSecrets(secrets)
    line = " ".join(secrets.hide(text[:_MAX_READ_CHARS]).split())
    return line if len(line) <= max_chars else line[:max_chars] + " …"


class SentSecrets:
    """The secrets in a request, which are never shown, even if a server repeats them truncated or encoded.

    Args:
        keys: API keys and tokens. Any eight consecutive characters of a key are hidden. Keys of at most five characters
            are placeholders and are not hidden.
        headers: The request's headers. Headers whose names or values look like secrets are treated as keys. All other
            values are only hidden if they occur in full.
    """

    def __init__(self, *keys: str, headers: Mapping[str, str] | None = None) -> None:
        pairs = (headers or {}).items()
        keys += tuple(value.partition(" ")[2] or value for name, value in pairs if _holds_secret(name, value))
        values = [value for name, value in pairs if name.lower() not in _HARMLESS_HEADERS]
        self._keys = _unique(keys, _MAX_PLACEHOLDER_CHARS + 1)
        self._values = _unique(values, _PIECE_CHARS)

    def __bool__(self) -> bool:
        return bool(self._keys or self._values)

    def __repr__(self) -> str:
        return f"<{len(self._keys)} secrets>"

    def __reduce__(self) -> tuple[type[SentSecrets], tuple[()]]:
        return SentSecrets, ()  # other processes have their own secrets

    def hide(self, text: str) -> str:
        """Replace the secrets in the text with `HIDDEN`."""
        lowered = _lower_each(text)
        hidden = bytearray(len(text))  # 1 where a character is hidden
        for value in self._values:
            _mark(value.lower(), lowered, hidden)
        for key in self._keys:
            _mark_pieces(_pieces(key), lowered, hidden)
        if not any(hidden):
            return text
        runs = re.finditer(rb"\x00+|\x01+", bytes(hidden))
        return "".join(HIDDEN if hidden[run.start()] else text[run.start() : run.end()] for run in runs)


def _holds_secret(name: str, value: str) -> bool:
    if name.lower() in _HARMLESS_HEADERS:
        return False
    looks_random = len(value) >= 2 * _PIECE_CHARS and " " not in value and ":" not in value
    return looks_random or bool(_SECRET_NAMES.search(name))


def _unique(values: Iterable[str], min_chars: int) -> tuple[str, ...]:
    return tuple(dict.fromkeys(value for value in values if len(value) >= min_chars))


def _lower_each(text: str) -> str:
    """Convert text to lower case without changing the position of any character."""
    lowered = text.lower()
    if len(lowered) == len(text):
        return lowered
    # A few characters become longer in lower case.
    return "".join(char.lower() if len(char.lower()) == 1 else char for char in text)


def _mark(value: str, text: str, hidden: bytearray) -> None:
    at = text.find(value)
    while at >= 0:
        hidden[at : at + len(value)] = b"\1" * len(value)
        at = text.find(value, at + 1)


def _mark_pieces(pieces: frozenset[str], text: str, hidden: bytearray) -> None:
    size = len(next(iter(pieces)))
    for start in range(len(text) - size + 1):
        if text[start : start + size] in pieces:
            hidden[start : start + size] = b"\1" * size


def _pieces(key: str) -> frozenset[str]:
    """Return all fragments of a key in lower case, including its URL, JSON and base64 encodings."""
    raw = key.encode("utf-8", "surrogatepass")
    # Base64 of a key after other bytes has one of three offsets, and its ends depend on neighbouring bytes.
    encoded = [b64encode(bytes(before) + raw).decode()[before + 1 if before else 0 : -4] for before in range(3)]
    forms = [key, quote(key, safe="", errors="replace"), json.dumps(key)[1:-1], *encoded]
    size = min(_PIECE_CHARS, len(key))
    pieces = {form[start : start + size].lower() for form in forms for start in range(len(form) - size + 1)}
    return frozenset(pieces or {key.lower()})
