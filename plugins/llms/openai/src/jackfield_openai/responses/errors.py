"""What an answer that failed means."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from jackfield.errors import ContentFilterError, ModelRequestError, ModelServiceError
from jackfield_backend.refusals import Secrets, shown
from jackfield_chat_completions.errors import error_in_stream

# Codes of this API alone, after which trying again is no use; there is no HTTP status that would say so.
_CODES: tuple[tuple[str, type[ModelServiceError], str], ...] = (
    (r"policy|moderation", ContentFilterError, "the provider's filter refused the content: change it"),
    (r"^invalid_(prompt|image|base64)|image|data_residency", ModelRequestError, "change the request"),
)


def error_of_failure(
    said: Any, backend: str, *, key: str | Secrets = "", variable: str = "", request_id: str | None = None
) -> ModelServiceError:
    """The error that an `error` event, or the `error` of a response that failed, means.

    Args:
        said: The object with `code` and `message`.
        backend: Who asked.
        key: The secrets that were sent; they are taken out of the server's text.
        variable: The environment variable that it may be set in, for the advice.
        request_id: The server's id of the request.
    """
    code = str(said.get("code") or "") if isinstance(said, Mapping) else ""
    for pattern, error_class, advice in _CODES:
        if re.search(pattern, code):
            reason = shown(str(said.get("message") or "no reason given"), key)
            text = f"{backend}: error in the middle of the answer: {reason} ({advice})"
            return error_class(
                text, backend=backend, code=shown(code, key), request_id=shown(request_id, key) if request_id else None
            )
    return error_in_stream({"error": said}, backend, key=key, variable=variable, request_id=request_id)
