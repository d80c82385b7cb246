"""Translate errors to those of the protocol."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from acp import RequestError

from jackfield.servers import refusal_of

INVALID_PARAMS = -32602
_INTERNAL = -32603
_log = logging.getLogger(__name__)


@contextmanager
def errors_of_protocol() -> Iterator[None]:
    """Translate any error to a JSON-RPC error. Details of unexpected errors appear only in the log.

    Raises:
        RequestError: The block raised an error.
    """
    try:
        yield
    except RequestError:
        raise
    except ConnectionError:
        raise RequestError(_INTERNAL, "the connection was closed") from None
    except Exception as error:  # noqa: BLE001 - logged if unexpected
        refusal = refusal_of(error)
        if refusal.code == "internal":
            _log.exception("an editor request failed")
        data: dict[str, object] = {"code": refusal.code}
        if refusal.retry_after_s is not None:
            data["retryAfter"] = max(1, round(refusal.retry_after_s))
        code = INVALID_PARAMS if refusal.status < 500 and refusal.retry_after_s is None else _INTERNAL
        raise RequestError(code, refusal.message, data) from None
