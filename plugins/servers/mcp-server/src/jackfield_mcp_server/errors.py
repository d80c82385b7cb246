"""Errors in the form of JSON-RPC."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, PARSE_ERROR, ErrorData

from jackfield.servers import Refusal, refusal_of

BUSY = -32000
"""The code of an error after which the same request may succeed; its data names the time."""
_log = logging.getLogger(__name__)


def error_data(refusal: Refusal, *, code: int | None = None) -> ErrorData:
    """Return a refusal as an error of JSON-RPC, with `code` for an error of the client."""
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
    """Raise errors as those of JSON-RPC. The texts of unexpected ones go to the log only.

    Raises:
        MCPError: The block raised an error.
    """
    try:
        yield
    except MCPError:
        raise
    except Exception as error:  # noqa: BLE001 - the log has it
        refusal = refusal_of(error)
        if refusal.code == "internal":
            _log.exception("a request of MCP failed")
        data = error_data(refusal, code=INVALID_PARAMS)
        raise MCPError(data.code, data.message, data.data) from None
