"""Translate server errors to Jackfield's."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from jackfield.errors import (
    ContentFilterError,
    ContextLengthError,
    ModelAuthError,
    ModelNotFoundError,
    ModelRequestError,
    ModelServiceError,
    RateLimitedError,
)
from jackfield_chat_completions.profiles import WHERE
from jackfield_http import Failures, class_of_status, json_value

# Codes and types are matched first, then texts, because some servers use only numeric codes.
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
    # Sent by LiteLLM, Ollama and vLLM with a status that suggests another error.
    (r"invalid model name|model ['\"`]?[^ ]{1,200}['\"`]? (was )?(not found|does not exist)", ModelNotFoundError),
)
# Servers such as llama.cpp answer an unsupported request with status 500; a retry would not help.
_IN_VAIN = re.compile(r"not supported|unsupported|not implemented", re.IGNORECASE)


def error_of_response(failures: Failures, status: int, body: bytes, *, where: str = WHERE) -> ModelServiceError:
    """Return the error for a failed HTTP response.

    Args:
        failures: Builds the request's errors.
        status: The HTTP status, never 2xx.
        body: The response body, which may be truncated.
        where: The settings that determine where models are looked up, for the advice in the message.
    """
    text, codes = _said(_json_or_text(body))
    error_class = _class_of(status, codes, text)
    advice = f"check the model's name, and {where}" if error_class is ModelNotFoundError else None
    return failures.refused(error_class, text, status=status, code=codes[0], advice=advice)


def error_in_stream(failures: Failures, chunk: Mapping[str, object]) -> ModelServiceError:
    """Return the error that a stream chunk reports. An error without a known code counts as a server failure."""
    text, codes = _said(chunk)
    code = codes[0]
    status = int(code) if code is not None and re.fullmatch(r"[45]\d\d", code) else None
    return failures.in_answer(_class_of(status or 500, codes, text), text, status=status, code=code)


def filtered_categories(results: object) -> str:
    """Return the triggered content filter categories, such as ` [violence, jailbreak]`, or '' if there are none.

    Args:
        results: The results by category, as sent by Azure: `{"violence": {"filtered": true, "severity": "high"}}`.
    """
    if not isinstance(results, Mapping):
        return ""
    found = [str(name) for name, result in results.items() if isinstance(result, Mapping) and result.get("filtered")]
    return f" [{', '.join(found)}]" if found else ""


def _json_or_text(body: bytes) -> object:
    try:
        return json_value(body)
    except ValueError:
        return _json_in_events(body) or body.decode("utf-8", "replace")


def _json_in_events(body: bytes) -> object:
    """Return the first JSON object in an event stream, the format in which some servers report errors, or None."""
    if not re.search(rb"^(data|event|error):", body, re.MULTILINE):
        return None
    for line in re.findall(rb"^(?:data|error): ?(.*)$", body, re.MULTILINE):
        try:
            value = json_value(line)
        except ValueError:
            continue
        if isinstance(value, Mapping):
            return value
    return None


Codes: TypeAlias = tuple[str | None, str, str]
"""The code, the inner code, and the type. The last two may be empty."""


def _said(answer: Any) -> tuple[str, Codes]:
    """Parse text and codes from `{"error": {…}}`, `{"error": "…"}`, `{"message": …}`, `{"detail": …}` or plain text."""
    if not isinstance(answer, Mapping):
        return (answer if isinstance(answer, str) else json.dumps(answer)), (None, "", "")
    error = answer.get("error") or answer
    if not isinstance(error, Mapping):
        return str(error), (None, "", "")
    inner = error.get("innererror")
    inner = inner if isinstance(inner, Mapping) else {}
    return _text_of(error) + filtered_categories(inner.get("content_filter_result")), _codes(error, inner)


def _text_of(error: Mapping[str, object]) -> str:
    text = error.get("message") or error.get("detail") or error
    return text if isinstance(text, str) else json.dumps(text, ensure_ascii=False)


def _codes(error: Mapping[str, object], inner: Mapping[str, object]) -> Codes:
    code = error.get("code")
    return None if code is None else str(code), str(inner.get("code") or ""), str(error.get("type") or "")


def _class_of(status: int, codes: Codes, text: str) -> type[ModelServiceError]:
    named = (_found(_CODES, code or "") for code in codes)
    return next(filter(None, named), None) or _class_of_text(status, text) or class_of_status(status)


def _class_of_text(status: int, text: str) -> type[ModelServiceError] | None:
    if status not in (400, 413, 422, 500):
        return None
    in_vain = ModelRequestError if status == 500 and _IN_VAIN.search(text) else None
    return _found(_TEXTS, text) or in_vain


def _found(patterns: Sequence[tuple[str, type[ModelServiceError]]], text: str) -> type[ModelServiceError] | None:
    return next((known for pattern, known in patterns if re.search(pattern, text, re.IGNORECASE)), None)
