"""Encode and decode JSON in wire format.

UTF-8 cannot encode surrogates, but they must not cost an answer: a pair becomes the character it encodes, and a lone
surrogate becomes U+FFFD.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any


def json_bytes(value: Any) -> bytes:
    """Return a value as UTF-8 encoded JSON."""
    import msgspec

    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        # From a cut text, or an odd file name.
        return well_formed(json.dumps(value, ensure_ascii=False)).encode()


def json_value(data: bytes) -> Any:
    """Parse JSON.

    Raises:
        ValueError: The data is not JSON.
    """
    import msgspec

    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return _odd_value(data, ())
    except RecursionError as error:
        raise ValueError("the JSON is nested too deeply") from error


def json_piece(data: bytes, texts: Collection[str]) -> Any:
    """Parse JSON, preserving lone surrogates at the edges of texts that continue in the next object.

    Args:
        data: JSON that the fast decoder rejects.
        texts: The keys of the texts that continue. All other texts are read as by `json_value`.

    Raises:
        ValueError: The data is not JSON.
    """
    return _odd_value(data, texts)


def well_formed(text: str) -> str:
    """Return a text with surrogates replaced, so that UTF-8 can encode it."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _odd_value(data: bytes, texts: Collection[str]) -> Any:
    try:
        # By the standard, escapes of lone surrogates are valid JSON.
        return _mend(json.loads(data), texts)
    except json.JSONDecodeError as error:
        # Without the cause, which carries the whole text and may include a key repeated by the server.
        raise ValueError(f"{error.msg}, at character {error.pos}") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"the text is not {error.encoding}, at byte {error.start}") from None
    except RecursionError as error:
        raise ValueError("the JSON is nested too deeply") from error


def _mend(value: Any, texts: Collection[str], *, continues: bool = False) -> Any:
    match value:
        case str():
            return _mend_inside(value) if continues else well_formed(value)
        case list():
            return [_mend(item, texts, continues=continues) for item in value]
        case dict():
            return {well_formed(key): _mend(item, texts, continues=key in texts) for key, item in value.items()}
    return value


def _mend_inside(text: str) -> str:
    start = 1 if "\udc00" <= text[:1] <= "\udfff" else 0
    end = len(text) - 1 if "\ud800" <= text[start:][-1:] <= "\udbff" else len(text)
    return text[:start] + well_formed(text[start:end]) + text[end:]
