"""From what a server or the network says to Jackfield's errors: the one place."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from jackfield.errors import (
    ContentFilterError,
    ContextLengthError,
    ModelAuthError,
    ModelConnectionError,
    ModelNotFoundError,
    ModelOverloadedError,
    ModelRequestError,
    ModelServiceError,
    ModelTimeoutError,
    RateLimitedError,
)
from jackfield.models.refusals import retry_after_s, shown

# Matched against code and type first, then against the text, for servers whose code is only a number.
_CODES: tuple[tuple[str, type[ModelServiceError]], ...] = (
    (r"context_length_exceeded|string_above_max_length", ContextLengthError),
    (r"content_filter|content_policy|data_?inspection_?failed|responsible_?ai", ContentFilterError),
    (r"insufficient_quota|billing|arrearage|invalid_api_key|authentication|permission", ModelAuthError),
    (r"model_not_found|model_?not_?exist", ModelNotFoundError),
    (r"rate_limit|too_many_requests|throttling", RateLimitedError),
)
_TEXTS: tuple[tuple[str, type[ModelServiceError]], ...] = (
    (
        r"maximum context length|context (length|window|size)|prompt is too long|too many (input )?tokens"
        r"|range of input length",
        ContextLengthError,
    ),
    (r"inappropriate content|content management policy", ContentFilterError),
)
_STATUSES: dict[int, type[ModelServiceError]] = {
    401: ModelAuthError,
    402: ModelAuthError,
    403: ModelAuthError,
    404: ModelNotFoundError,
    408: ModelOverloadedError,  # the server's own time-out; 409 and 425 also ask for another attempt
    409: ModelOverloadedError,
    413: ContextLengthError,
    425: ModelOverloadedError,
    429: RateLimitedError,
}
_ADVICE: dict[type[ModelServiceError], str] = {
    ContextLengthError: "shorten the history, or set max_input_tokens",
    ContentFilterError: "the provider's filter refused the content: change it",
    ModelAuthError: "check the key (api_key, OPENAI_API_KEY), its rights and its quota",
    ModelNotFoundError: "check the model's name, and base_url, which usually ends in /v1",
    RateLimitedError: "wait, or send less at once",
    ModelOverloadedError: "the server failed: try again",
    ModelRequestError: "change the request",
}


def error_of_response(
    status: int, headers: Mapping[str, str], body: bytes, backend: str, *, key: str = "", now: datetime | None = None
) -> ModelServiceError:
    """The error that an HTTP answer means.

    Args:
        status: Not 2xx.
        headers: Names in lower case.
        body: What was read of it.
        backend: Who asks.
        key: The secret that was sent; it is taken out of the server's text.
        now: In place of the present, for `Retry-After` as a date.
    """
    text, code, kind = _said(_json_or_text(body))
    error_class = _class_of(status, code, kind, text)
    reason = shown(text, key) or "no reason given"
    if 300 <= status < 400:
        reason = "the server redirects: set base_url to where it is now"
    return error_class(
        f"{backend}: HTTP {status}: {reason} ({_ADVICE[error_class]})",
        backend=backend,
        code=code,
        status=status,
        retry_after_s=retry_after_s(headers, now or datetime.now(UTC)),
        request_id=headers.get("x-request-id") or headers.get("request-id"),
    )


def error_in_stream(
    chunk: Mapping[str, Any], backend: str, *, key: str = "", request_id: str | None = None
) -> ModelServiceError:
    """The error that a chunk of a stream means; without a known code, the server's own failure."""
    text, code, kind = _said(chunk)
    status = int(code) if code is not None and re.fullmatch(r"[45]\d\d", code) else None
    error_class = _class_of(status or 500, code, kind, text)
    reason = shown(text, key) or "no reason given"
    return error_class(
        f"{backend}: error in the middle of the answer: {reason} ({_ADVICE[error_class]})",
        backend=backend,
        code=code,
        status=status,
        request_id=request_id,
    )


@contextmanager
def translated(backend: str, url: str, *, timeout_s: float) -> Iterator[None]:
    """Turn what the network raises into Jackfield's errors."""
    import httpcore2

    try:
        yield
    except httpcore2.ReadTimeout as error:
        raise ModelTimeoutError(
            f"{backend}: {url} was silent for {timeout_s:g} s: raise request_timeout, or try again", backend=backend
        ) from error
    except (httpcore2.ConnectError, httpcore2.ConnectTimeout, httpcore2.ProxyError) as error:
        raise ModelConnectionError(
            f"{backend}: {url} cannot be reached ({_reason(error)}): check base_url and the network, and that it runs",
            backend=backend,
        ) from error
    except httpcore2.LocalProtocolError:
        # Without the cause: it shows the header, which may hold a key.
        raise ModelRequestError(
            f"{backend}: a header cannot be sent: check extra_headers, organization and project", backend=backend
        ) from None
    except (httpcore2.NetworkError, httpcore2.TimeoutException, httpcore2.ProtocolError) as error:
        raise ModelConnectionError(
            f"{backend}: the connection to {url} broke ({_reason(error)}): try again", backend=backend
        ) from error


def _reason(error: Exception) -> str:
    return shown(str(error), "", 200) or type(error).__name__


def _json_or_text(body: bytes) -> Any:
    text = body.decode("utf-8", "replace")
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _said(answer: Any) -> tuple[str, str | None, str]:
    """Text, code and type, from `{"error": {…}}`, `{"error": "…"}`, `{"message": …}`, `{"detail": …}` or plain text."""
    if not isinstance(answer, Mapping):
        return (answer if isinstance(answer, str) else json.dumps(answer)), None, ""
    error = answer.get("error") or answer
    if not isinstance(error, Mapping):
        return str(error), None, ""
    text = error.get("message") or error.get("detail") or error
    code = error.get("code")
    return (
        text if isinstance(text, str) else json.dumps(text, ensure_ascii=False, default=str),
        None if code is None else str(code),
        str(error.get("type") or ""),
    )


def _class_of(status: int, code: str | None, kind: str, text: str) -> type[ModelServiceError]:
    named = _found(_CODES, code or "") or _found(_CODES, kind)
    if named is None and status in (400, 413, 422, 500):
        named = _found(_TEXTS, text)
    if named is not None:
        return named
    return _STATUSES.get(status) or (ModelOverloadedError if status >= 500 else ModelRequestError)


def _found(patterns: Sequence[tuple[str, type[ModelServiceError]]], text: str) -> type[ModelServiceError] | None:
    return next((known for pattern, known in patterns if re.search(pattern, text, re.IGNORECASE)), None)
