"""Keys that a header can carry, and headers as they are sent."""

from __future__ import annotations

from collections.abc import Mapping

from jackfield.errors import ConfigError
from jackfield_backend.keys import key_for_header

__all__ = ["HeaderPairs", "header_pairs", "key_for_header", "request_id_of"]

_REQUEST_IDS = ("x-request-id", "request-id", "apim-request-id")  # the last one is Azure's


class HeaderPairs(list[tuple[bytes, bytes]]):
    """Headers as they are sent, which show their names alone: keys are among them."""

    def __repr__(self) -> str:
        return f"<headers {', '.join(name.decode('latin-1') for name, _ in self)}>"


def header_pairs(*headers: Mapping[str, str]) -> HeaderPairs:
    """The headers as they are sent, names in lower case; of two with one name the later is.

    Raises:
        ConfigError: One has half a character, which nothing can carry.
    """
    joined = {name.lower(): value for some in headers for name, value in some.items()}
    try:
        return HeaderPairs((name.encode(), value.encode()) for name, value in joined.items())
    except UnicodeEncodeError:
        raise ConfigError("a header has half a character, which cannot be sent: check extra_headers") from None


def request_id_of(headers: Mapping[str, str]) -> str | None:
    """The server's id of a request, for its operators; None if it gives none.

    Args:
        headers: Of the response, names in lower case.
    """
    return next((headers[name] for name in _REQUEST_IDS if headers.get(name)), None)
