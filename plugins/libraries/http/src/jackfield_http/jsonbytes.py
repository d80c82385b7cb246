"""JSON as it is sent and received.

Halves of surrogate pairs, which no UTF-8 has, are replaced: one must not cost an answer.
"""

from __future__ import annotations

import json
from typing import Any


def json_bytes(value: Any) -> bytes:
    """A value as JSON in UTF-8."""
    import msgspec

    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        # From a cut text, or an odd file name.
        return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")


def json_value(data: bytes) -> Any:
    """The value of a JSON text.

    Raises:
        ValueError: It is none.
    """
    import msgspec

    try:
        return msgspec.json.decode(data)
    except msgspec.DecodeError:
        return _odd_value(data)
    except RecursionError as error:
        raise ValueError("the JSON is nested too deeply") from error


def _odd_value(data: bytes) -> Any:
    try:
        # Escapes of half a surrogate pair are JSON by its letter.
        return json.loads(json.dumps(json.loads(data), ensure_ascii=False).encode("utf-8", "replace"))
    except json.JSONDecodeError as error:
        # Without the cause, which carries all of the text: a server may have repeated a key in it.
        raise ValueError(f"{error.msg}, at character {error.pos}") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"the text is no {error.encoding}, at byte {error.start}") from None
    except RecursionError as error:
        raise ValueError("the JSON is nested too deeply") from error
