"""From what DashScope says to Jackfield's errors: the one place.

The codes are those of the provider's page on error codes. Their spelling varies (`DataInspectionFailed`,
`data_inspection_failed`), so they are compared without case, dots and underscores.
"""

from __future__ import annotations

import json
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
from jackfield_http import class_of_status, request_id_of

ErrorClass = type[ModelServiceError]

# By how a code begins; the first that fits.
_CODES: tuple[tuple[str, ErrorClass], ...] = (
    # Not the filter: it could not read the file that it was to look at.
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
# By what a text holds, for codes that say little (`InvalidParameter`); in lower case.
_TEXTS: tuple[tuple[str, ErrorClass], ...] = (
    ("range of input length", ContextLengthError),
    ("maximum context length", ContextLengthError),
    ("exceed model limit", ContextLengthError),
    ("exceeds the maximum length", ContextLengthError),
    ("inappropriate content", ContentFilterError),
    ("model not exist", ModelNotFoundError),
)
_ADVICE: dict[ErrorClass, str] = {
    ContextLengthError: "shorten the history, or set max_input_tokens",
    ContentFilterError: "the provider's inspection refused the content: change it",
    ModelAuthError: "check the key (api_key, DASHSCOPE_API_KEY), its region, its rights and the account",
    ModelNotFoundError: "check the model's name, and that the key's region has it",
    RateLimitedError: "wait, or send less at once",
    ModelOverloadedError: "the server failed: try again",
    ModelRequestError: "change the request",
}
_OTHER_ENDPOINT = "the model is at the other endpoint: set endpoint to 'multimodal', or to 'text'"


def error_of_response(
    status: int,
    headers: Mapping[str, str],
    body: bytes,
    backend: str,
    *,
    key: str | Secrets = "",
    now: datetime | None = None,
) -> ModelServiceError:
    """The error that an HTTP answer means.

    Args:
        status: Not 2xx.
        headers: Names in lower case.
        body: What was read of it: a JSON object, an event of a stream, or anything.
        backend: Who asks.
        key: The secrets that were sent; they are taken out of the server's text.
        now: In place of the present, for `Retry-After` as a date.
    """
    problem = _problem_in(body)
    return _error(
        f"{backend}: HTTP {status}",
        problem,
        backend=backend,
        key=key,
        status=status,
        retry_after_s=retry_after_s(headers, now or datetime.now(UTC)),
        request_id=_text(problem.get("request_id")) or request_id_of(headers),
    )


def error_in_answer(
    problem: Mapping[str, Any],
    backend: str,
    *,
    status: int | None,
    key: str | Secrets = "",
    request_id: str | None = None,
) -> ModelServiceError:
    """The error that an object with a code means that came in place of an answer, or of the rest of it.

    Args:
        problem: With `code` and `message`.
        backend: Who asks.
        status: What the event itself gives as its status; the response's was 200.
        key: The secrets that were sent.
        request_id: If the object has none.
    """
    said = f"{backend}: error in the answer"
    return _error(
        said,
        problem,
        backend=backend,
        key=key,
        status=status,
        request_id=_text(problem.get("request_id")) or request_id,
    )


def _error(
    said: str,
    problem: Mapping[str, Any],
    *,
    backend: str,
    key: str | Secrets,
    status: int | None,
    retry_after_s: float | None = None,
    request_id: str | None = None,
) -> ModelServiceError:
    code = _text(problem.get("code"))
    text = _text(problem.get("message")) or ""
    error_class = class_of(status or 500, code or "", text)
    advice = _OTHER_ENDPOINT if "url error" in text.lower() else _ADVICE[error_class]
    if status is not None and 300 <= status < 400:
        text, advice = "the server redirects", "set base_url to where it is now"
    return error_class(
        f"{said}: {shown(text, key) or shown(code or '', key) or 'no reason given'} ({advice})",
        backend=backend,
        code=shown(code, key) if code else None,
        status=status,
        retry_after_s=retry_after_s,
        request_id=shown(request_id, key) if request_id else None,
    )


def class_of(status: int, code: str, text: str) -> ErrorClass:
    """The class for a status, a code and a text; the more exact wins."""
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
    """What says code and message: the object itself, the one under `error`, that of an event, or the text as it is."""
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
