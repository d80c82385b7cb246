"""Translate DashScope's errors.

The codes are listed on the provider's page on error codes. Their spelling varies (`DataInspectionFailed`,
`data_inspection_failed`), so comparisons ignore case, dots and underscores.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
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
from jackfield_http import ErrorClass, Failures, class_of_status

# By the prefix of a code; the first match counts.
_CODES: tuple[tuple[str, ErrorClass], ...] = (
    # Nothing was refused here: the filter could not read a file.
    ("invalidparameterdatainspection", ModelRequestError),
    ("datainspection", ContentFilterError),
    ("invalidapikey", ModelAuthError),
    ("accessdenied", ModelAuthError),
    ("modelaccessdenied", ModelAuthError),
    ("workspaceaccessdenied", ModelAuthError),
    ("arrearage", ModelAuthError),
    ("allocationquotafreetieronly", ModelAuthError),
    ("modelnotfound", ModelNotFoundError),
    ("modelnotexist", ModelNotFoundError),
    ("throttling", RateLimitedError),
    ("limitrequests", RateLimitedError),
    ("badrequesttoolarge", ContextLengthError),
    ("requesttimeout", ModelOverloadedError),
    ("internalerror", ModelOverloadedError),
    ("serviceunavailable", ModelOverloadedError),
    ("modelunavailable", ModelOverloadedError),
    ("modelservicefailed", ModelOverloadedError),
    ("systemerror", ModelOverloadedError),
)
# By lower-case substrings of the message, for unspecific codes (`InvalidParameter`).
_TEXTS: tuple[tuple[str, ErrorClass], ...] = (
    ("range of input length", ContextLengthError),
    ("maximum context length", ContextLengthError),
    ("exceed model limit", ContextLengthError),
    ("exceeds the maximum length", ContextLengthError),
    ("inappropriate content", ContentFilterError),
    ("model not exist", ModelNotFoundError),
)
_ADVICE: Mapping[ErrorClass, str] = {
    ContentFilterError: "the provider's content inspection rejected the content: change the content",
    ModelAuthError: "check the API key (api_key, DASHSCOPE_API_KEY), its region and permissions, and the account",
    ModelNotFoundError: "check the model's name, and that the model is available in the API key's region",
}
_OTHER_ENDPOINT = "the model uses the other endpoint: set endpoint to 'multimodal' or 'text'"


def error_of_response(failures: Failures, status: int, body: bytes) -> ModelServiceError:
    """Return the error for an HTTP response.

    Args:
        failures: The request's error factory.
        status: The HTTP status, other than 2xx.
        body: The beginning of the response body: a JSON object, a stream event, or any text.
    """
    problem = _Problem.of(_problem_in(body))
    error_class = class_of(status, problem.code or "", problem.text)
    return failures.refused(
        error_class,
        problem.text,
        status=status,
        code=problem.code,
        advice=problem.advice(error_class),
        request_id=problem.request_id,
    )


def error_in_answer(failures: Failures, wire: Mapping[str, Any], *, status: int | None) -> ModelServiceError:
    """Return the error for an object with an error code, received instead of an answer or in the middle of one.

    Args:
        failures: The request's error factory.
        wire: The object, which contains `code` and `message`.
        status: The status in the event, if any; the HTTP status was 200.
    """
    problem = _Problem.of(wire)
    error_class = class_of(status or 500, problem.code or "", problem.text)
    return failures.in_answer(
        error_class,
        problem.text,
        status=status,
        code=problem.code,
        advice=problem.advice(error_class),
        request_id=problem.request_id,
    )


@dataclass(frozen=True, slots=True)
class _Problem:
    """The fields of a DashScope error."""

    text: str
    code: str | None
    request_id: str | None

    @classmethod
    def of(cls, wire: Mapping[str, Any]) -> _Problem:
        return cls(_text(wire.get("message")) or "", _text(wire.get("code")), _text(wire.get("request_id")))

    def advice(self, error_class: ErrorClass) -> str | None:
        return _OTHER_ENDPOINT if "url error" in self.text.lower() else _ADVICE.get(error_class)


def class_of(status: int, code: str, text: str) -> ErrorClass:
    """Return the most specific error class for a status, an error code and a message."""
    plain = code.lower().replace(".", "").replace("_", "")
    for beginning, error_class in _CODES:
        if plain.startswith(beginning):
            return error_class
    by_status = class_of_status(status)
    if by_status is ModelRequestError:
        lowered = text.lower()
        for part, error_class in _TEXTS:
            if part in lowered:
                return error_class
    return by_status


def _problem_in(body: bytes) -> Mapping[str, Any]:
    """Find the error object in a body, which may be JSON or an event stream; other text becomes the message."""
    text = body.decode("utf-8", "replace")
    for candidate in (text, *(line[5:] for line in text.splitlines() if line.startswith("data:"))):
        try:
            value = json.loads(candidate)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            inner = value.get("error")
            return {**value, **inner} if isinstance(inner, dict) else value
    return {"message": text}


def _text(value: object) -> str | None:
    if value is None or value == "":
        return None
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
