"""Runs that failed, as errors for clients."""

from __future__ import annotations

from collections.abc import Mapping

from jackfield.events import RunFailed
from jackfield.servers import RequestRefusedError

_OF_THE_REQUEST: Mapping[str, str] = {
    "ContextLengthError": "context_length_exceeded",
    "ContentFilterError": "content_filter",
    "UnsupportedInputError": "unsupported_input",
    "MissingFileError": "unsupported_input",
    "InvalidMessageError": "invalid_request",
}
_BUSY = frozenset({"RateLimitedError", "ModelOverloadedError"})
_RETRY_AFTER_S = 5.0


def failure_of(failed: RunFailed) -> RequestRefusedError:
    """Return the error of a run as a client may see it.

    Only errors about the request keep their text: others may contain addresses and names of the server's own.
    """
    code = _OF_THE_REQUEST.get(failed.kind)
    if code is not None:
        return RequestRefusedError(failed.error, code=code)
    if failed.kind in _BUSY:
        return RequestRefusedError(
            "the agent's model is busy: try again later",
            status=429,
            code="rate_limit_exceeded",
            retry_after_s=_RETRY_AFTER_S,
        )
    return RequestRefusedError(
        f"the run failed ({failed.kind}): the log of the server names the cause", status=500, code="server_error"
    )
