"""JSON as it is sent and received.

Halves of surrogate pairs, which no UTF-8 has, must not cost an answer: two that stand together become their character,
and one alone becomes U+FFFD.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any


def json_bytes(value: Any) -> bytes:
    """A value as JSON in UTF-8."""
    import msgspec

    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        # From a cut text, or an odd file name.
        return well_formed(json.dumps(value, ensure_ascii=False)).encode()


def json_value(data: bytes) -> Any:
    """The value of a JSON text.

    Raises:
        ValueError: It is not JSON.
    """
    import msgspec

    try:
        return msgspec.json.decode(data)
    except msgspec.DecodeError:
        return _odd_value(data, ())
    except RecursionError as error:
        raise ValueError("the JSON is nested too deeply") from error


def json_piece(data: bytes, texts: Collection[str]) -> Any:
    """The value of a JSON text whose texts continue in the next one: a half character at the edge of one is kept.

    Args:
        data: The JSON, as no fast decoder reads it.
        texts: The keys of such texts; everywhere else, all is as `json_value` gives it.

    Raises:
        ValueError: It is not JSON.
    """
    return _odd_value(data, texts)


def well_formed(text: str) -> str:
    """A text that UTF-8 can carry."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _odd_value(data: bytes, texts: Collection[str]) -> Any:
    try:
        # Escapes of half a surrogate pair are JSON by its letter.
        return _mended(json.loads(data), texts)
    except json.JSONDecodeError as error:
        # Without the cause, which carries all of the text: a server may have repeated a key in it.
        raise ValueError(f"{error.msg}, at character {error.pos}") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"the text is not {error.encoding}, at byte {error.start}") from None
    except RecursionError as error:
        raise ValueError("the JSON is nested too deeply") from error


def _mended(value: Any, texts: Collection[str], *, goes_on: bool = False) -> Any:
    match value:
        case str():
            return _but_its_edges(value) if goes_on else well_formed(value)
        case list():
            return [_mended(item, texts, goes_on=goes_on) for item in value]
        case dict():
            return {well_formed(key): _mended(item, texts, goes_on=key in texts) for key, item in value.items()}
    return value


def _but_its_edges(text: str) -> str:
    start = 1 if "\udc00" <= text[:1] <= "\udfff" else 0
    end = len(text) - 1 if "\ud800" <= text[start:][-1:] <= "\udbff" else len(text)
    return text[:start] + well_formed(text[start:end]) + text[end:]
