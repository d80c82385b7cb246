"""From what a server of the Messages protocol says to Jackfield's errors: the one place."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from jackfield.errors import (
    ContentFilterError,
    ContextLengthError,
    ModelAuthError,
    ModelNotFoundError,
    ModelOverloadedError,
    ModelRequestError,
    ModelServiceError,
    RateLimitedError,
)
from jackfield_backend.refusals import Secrets, retry_after_s, shown
from jackfield_http import class_of_status, json_value

ErrorClass = type[ModelServiceError]

KEY_VARIABLE = "ANTHROPIC_API_KEY"
_TYPES: dict[str, ErrorClass] = {
    "authentication_error": ModelAuthError,
    "billing_error": ModelAuthError,
    "permission_error": ModelAuthError,
    "not_found_error": ModelNotFoundError,
    "request_too_large": ContextLengthError,
    "rate_limit_error": RateLimitedError,
    "timeout_error": ModelOverloadedError,
    "api_error": ModelOverloadedError,
    "overloaded_error": ModelOverloadedError,
}
# By what a text holds, in lower case: the type of these is `invalid_request_error`, as of most others.
_TEXTS: tuple[tuple[str, ErrorClass], ...] = (
    ("prompt is too long", ContextLengthError),
    ("exceed context limit", ContextLengthError),
    ("maximum context length", ContextLengthError),
    ("content filtering policy", ContentFilterError),
    ("credit balance is too low", ModelAuthError),
)
_ADVICE: dict[ErrorClass, str] = {
    ContextLengthError: "shorten the history, or set max_input_tokens",
    ContentFilterError: "the provider's filter refused the content: change it",
    ModelAuthError: f"check the key (api_key, {KEY_VARIABLE}), its rights and the account's balance",
    ModelNotFoundError: "check the model's name, and base_url",
    RateLimitedError: "wait, or send less at once",
    ModelOverloadedError: "the server failed: try again",
    ModelRequestError: "change the request",
}


def error_of_response(
    status: int,
    headers: Mapping[str, str],
    body: bytes,
    backend: str,
    *,
    key: str | Secrets = "",
    withheld: str = "",
    now: datetime | None = None,
) -> ModelServiceError:
    """The error that an HTTP answer means.

    Args:
        status: Not 2xx.
        headers: Names in lower case.
        body: What was read of it.
        backend: Who asks.
        key: The secrets that were sent; they are taken out of the server's text.
        withheld: Why a key that is set was not sent, for the advice.
        now: In place of the present, for `Retry-After` as a date.
    """
    kind, text = _said(body)
    error_class = class_of(status, kind, text)
    advice = withheld if withheld and error_class is ModelAuthError else _ADVICE[error_class]
    if 300 <= status < 400:
        text, advice = "the server redirects", "set base_url to where it is now"
    request_id = headers.get("request-id") or headers.get("x-request-id")
    return error_class(
        f"{backend}: HTTP {status}: {shown(text, key) or 'no reason given'} ({advice})",
        backend=backend,
        code=shown(kind, key) if kind else None,
        status=status,
        retry_after_s=retry_after_s(headers, now or datetime.now(UTC)),
        request_id=shown(request_id, key) if request_id else None,
    )


def error_in_answer(
    event: Mapping[str, Any], backend: str, *, key: str | Secrets = "", request_id: str | None = None
) -> ModelServiceError:
    """The error that an `error` event means; one of a type that nobody knows is the server's own failure.

    Args:
        event: With the error under `error`.
        backend: Who asks.
        key: The secrets that were sent.
        request_id: The server's id of the request.
    """
    kind, text = _kind_and_text(event)
    error_class = class_of(400 if kind == "invalid_request_error" else 500, kind, text)
    return error_class(
        f"{backend}: error in the answer: {shown(text, key) or 'no reason given'} ({_ADVICE[error_class]})",
        backend=backend,
        code=shown(kind, key) if kind else None,
        request_id=shown(request_id, key) if request_id else None,
    )


def class_of(status: int, kind: str, text: str) -> ErrorClass:
    """The class for a status, a type and a text; the more exact wins."""
    lowered = text.lower()
    by_text = next((error_class for part, error_class in _TEXTS if part in lowered), None)
    if by_text is not None and status < 500:
        return by_text
    return _TYPES.get(kind) or class_of_status(status)


def _said(body: bytes) -> tuple[str, str]:
    try:
        value = json_value(body)
    except ValueError:
        return "", body.decode("utf-8", "replace")
    return _kind_and_text(value) if isinstance(value, Mapping) else ("", str(value))


def _kind_and_text(said: Mapping[str, Any]) -> tuple[str, str]:
    """Type and message, of an `error` object, or of one that some gateways put in its place."""
    error = said.get("error") or said
    if not isinstance(error, Mapping):
        return "", str(error)
    kind = error.get("type") or error.get("code") or ""
    return str(kind), str(error.get("message") or error.get("detail") or "")
