"""Translate the errors of failed answers."""

from __future__ import annotations

import re
from collections.abc import Mapping

from jackfield.errors import ContentFilterError, ModelRequestError, ModelServiceError
from jackfield_chat_completions.errors import error_in_stream
from jackfield_http import ErrorClass, Failures

# Error codes after which a retry is useless, since there is no HTTP status to tell.
_CODES: tuple[tuple[str, ErrorClass], ...] = (
    (r"policy|moderation", ContentFilterError),
    (r"^invalid_(prompt|image|base64)|image|data_residency", ModelRequestError),
)


def error_of_failure(failures: Failures, problem: object) -> ModelServiceError:
    """Return the error for an `error` event, or for the `error` of a failed response.

    Args:
        failures: The request's error factory.
        problem: The object that contains `code` and `message`.
    """
    if isinstance(problem, Mapping):
        code = str(problem.get("code") or "")
        for pattern, error_class in _CODES:
            if re.search(pattern, code):
                return failures.in_answer(error_class, str(problem.get("message") or ""), code=code)
    return error_in_stream(failures, {"error": problem})
