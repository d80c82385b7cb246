"""Map model errors to causes."""

from __future__ import annotations

from jackfield.errors import (
    ContentFilterError,
    ContextLengthError,
    ModelAuthError,
    ModelConnectionError,
    ModelNotFoundError,
    ModelOverloadedError,
    ModelRequestError,
    ModelResponseError,
    ModelServiceError,
    ModelTimeoutError,
    RateLimitedError,
    UnsupportedInputError,
)

# The first matching class counts, so subclasses come before the classes they extend.
_CAUSES: tuple[tuple[type[ModelServiceError], str], ...] = (
    (RateLimitedError, "rate_limit"),
    (ModelOverloadedError, "overload"),
    (ModelTimeoutError, "timeout"),
    (ModelConnectionError, "connection"),
    (ModelResponseError, "response"),
    (ModelAuthError, "auth"),
    (ContextLengthError, "context"),
    (ContentFilterError, "content_filter"),
    (UnsupportedInputError, "unsupported_input"),
    (ModelNotFoundError, "not_found"),
    (ModelRequestError, "request"),
)
OTHER = "other"
RESTING: frozenset[str] = frozenset({"rate_limit", "overload", "timeout", "connection"})
"""Causes that would most likely affect the next call as well."""


def cause_of(error: Exception) -> str:
    """Return the cause of an error: the name of a `FallbackConfig` setting, `request`, or `other`."""
    return next((cause for kind, cause in _CAUSES if isinstance(error, kind)), OTHER)
