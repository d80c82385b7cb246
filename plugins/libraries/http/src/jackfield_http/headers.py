"""Keys that a header can carry, and headers as they are sent."""

from __future__ import annotations

from collections.abc import Mapping

from jackfield.errors import ConfigError
from jackfield.secrets import ForgetLocals
from jackfield_http.keys import key_for_header

__all__ = ["NO_KEY", "HeaderPairs", "header_pairs", "key_for_header", "request_id_of"]

NO_KEY = "EMPTY"
"""Sent, by convention, to servers that need no API key."""
_OF_THE_KEY = frozenset({"authorization", "api-key", "x-api-key"})
_OF_THE_BODY = frozenset({"accept-encoding", "content-type"})
_OF_THE_CONNECTION = frozenset({"content-length", "host", "transfer-encoding"})
_WITHOUT_KEY = f"Bearer {NO_KEY}"
# The first is Anthropic's, before which a gateway may put its own `x-request-id`; the last one is Azure's.
_REQUEST_IDS = ("request-id", "x-request-id", "apim-request-id")


class HeaderPairs(list[tuple[bytes, bytes]]):
    """Headers as they are sent, which show their names alone: keys are among them."""

    def __repr__(self) -> str:
        return f"<headers {', '.join(name.decode('latin-1') for name, _ in self)}>"


def header_pairs(*headers: Mapping[str, str], extra: Mapping[str, str] | None = None) -> HeaderPairs:
    """The headers as they are sent, names in lower case; of two with one name the later is.

    Args:
        headers: Those of the backend.
        extra: What a user has put into `extra_headers`; they win over all but the key's and those of the body.

    Raises:
        ConfigError: An extra one would take the place of the key or describe the body wrongly, or one has half a
            character, which nothing can carry.
    """
    with ForgetLocals():  # keys are among them
        own = _joined(*headers)
        for name in _joined(extra or {}):
            _refuse_taking_over(name, own)
        return _as_sent(_joined(own, extra or {}))


def _joined(*headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for some in headers for name, value in some.items()}


def _as_sent(headers: Mapping[str, str]) -> HeaderPairs:
    try:
        return HeaderPairs((name.encode(), value.encode()) for name, value in headers.items())
    except UnicodeEncodeError:
        raise ConfigError("a header contains half a character, which cannot be sent: check extra_headers") from None


def _refuse_taking_over(name: str, own: Mapping[str, str]) -> None:
    if name in _OF_THE_KEY and own.get(name, _WITHOUT_KEY) != _WITHOUT_KEY:
        raise ConfigError(f"extra_headers must not contain {name!r}, which carries the API key: set api_key instead")
    if name in _OF_THE_CONNECTION or (name in _OF_THE_BODY and name in own):
        raise ConfigError(f"extra_headers must not contain {name!r}, which the backend itself sets: remove it")


def request_id_of(headers: Mapping[str, str]) -> str | None:
    """The server's id of a request, for its operators; None if it gives none.

    Args:
        headers: Of the response, names in lower case.
    """
    return next((headers[name] for name in _REQUEST_IDS if headers.get(name)), None)
