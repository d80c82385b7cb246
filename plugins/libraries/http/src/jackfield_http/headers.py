"""Keys that a header can carry, and headers as they are sent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from jackfield.errors import ConfigError

HeaderPairs: TypeAlias = list[tuple[bytes, bytes]]


def key_for_header(key: str | None) -> str:
    """A key without the space around it, which comes from copying; "" for none.

    Raises:
        ConfigError: It has characters that no header can carry. It is said here, and without the key, because an HTTP
            library would show the whole header.
    """
    stripped = (key or "").strip()
    if not (stripped.isascii() and stripped.isprintable()):
        raise ConfigError("the key has characters that no HTTP header can carry: copy it again")
    return stripped


def header_pairs(*headers: Mapping[str, str]) -> HeaderPairs:
    """The headers as they are sent, names in lower case; of two with one name the later is."""
    joined = {name.lower(): value for some in headers for name, value in some.items()}
    return [(name.encode(), value.encode()) for name, value in joined.items()]
