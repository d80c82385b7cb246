"""Translate errors of the Messages protocol."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jackfield.errors import (
    ContentFilterError,
    ContextLengthError,
    ModelAuthError,
    ModelNotFoundError,
    ModelOverloadedError,
    ModelServiceError,
    RateLimitedError,
)
from jackfield_http import ErrorClass, Failures, class_of_status, json_value

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
# Matched by lower-case substrings, because their type is `invalid_request_error`, like that of most errors.
_TEXTS: tuple[tuple[str, ErrorClass], ...] = (
    ("prompt is too long", ContextLengthError),
    ("exceed context limit", ContextLengthError),
    ("maximum context length", ContextLengthError),
    ("content filtering policy", ContentFilterError),
    ("credit balance is too low", ModelAuthError),
)


def error_of_response(failures: Failures, status: int, body: bytes) -> ModelServiceError:
    """Return the error for an HTTP response.

    Args:
        failures: The request's error factory.
        status: The HTTP status, other than 2xx.
        body: The beginning of the response body.
    """
    try:
        value = json_value(body)
    except ValueError:
        value = body.decode("utf-8", "replace")
    if not isinstance(value, Mapping):
        return failures.refused(class_of(status, "", str(value)), str(value), status=status)
    kind, text = _kind_and_text(value)
    error_class = class_of(status, kind, text)
    return failures.refused(error_class, text, status=status, code=kind, request_id=_request_id(value))


def error_in_answer(failures: Failures, event: Mapping[str, Any]) -> ModelServiceError:
    """Return the error for an `error` event. An unknown error type counts as a server failure.

    Args:
        failures: The request's error factory.
        event: The event, which contains `error`.
    """
    kind, text = _kind_and_text(event)
    error_class = class_of(400 if kind == "invalid_request_error" else 500, kind, text)
    return failures.in_answer(error_class, text, code=kind, request_id=_request_id(event))


def class_of(status: int, kind: str, text: str) -> ErrorClass:
    """Return the most specific error class for a status, an error type and a message."""
    lowered = text.lower()
    if status < 500:
        for part, error_class in _TEXTS:
            if part in lowered:
                return error_class
    return _TYPES.get(kind) or class_of_status(status)


def _request_id(value: Mapping[str, Any]) -> str | None:
    request_id = value.get("request_id")
    return request_id if isinstance(request_id, str) else None


def _kind_and_text(value: Mapping[str, Any]) -> tuple[str, str]:
    """Return the type and message of an `error` object, or of the object some gateways send instead."""
    error = value.get("error") or value
    if not isinstance(error, Mapping):
        return "", str(error)
    kind = error.get("type") or error.get("code") or ""
    return str(kind), str(error.get("message") or error.get("detail") or "")
