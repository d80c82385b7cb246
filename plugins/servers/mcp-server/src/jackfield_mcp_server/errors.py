"""Translate errors to JSON-RPC errors."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, PARSE_ERROR, ErrorData

from jackfield.servers import Refusal, refusal_of

BUSY = -32000
"""Error code for requests that may succeed if retried; the error's data says when."""
_log = logging.getLogger(__name__)


def error_data(refusal: Refusal, *, code: int | None = None) -> ErrorData:
    """Convert a refusal to a JSON-RPC error; `code` applies only to errors caused by the client."""
    data: dict[str, object] = {"code": refusal.code}
    if refusal.retry_after_s is not None:
        data["retryAfter"] = max(1, round(refusal.retry_after_s))
    if refusal.code == "invalid_json":
        code = PARSE_ERROR
    elif refusal.retry_after_s is not None:
        code = BUSY
    elif refusal.status >= 500:
        code = INTERNAL_ERROR
    return ErrorData(code=INVALID_REQUEST if code is None else code, message=refusal.message, data=data)


@contextmanager
def errors_of_protocol() -> Iterator[None]:
    """Translate any error to a JSON-RPC error. Details of unexpected errors appear only in the log.

    Raises:
        MCPError: The block raised an error.
    """
    try:
        yield
    except MCPError:
        raise
    except Exception as error:  # noqa: BLE001 - logged if unexpected
        refusal = refusal_of(error)
        if refusal.code == "internal":
            _log.exception("an MCP request failed")
        data = error_data(refusal, code=INVALID_PARAMS)
        raise MCPError(data.code, data.message, data.data) from None
