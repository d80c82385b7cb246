"""An error has the class that says what to do, by its type, its text, or its status."""

from __future__ import annotations

import json
from typing import Any

import pytest

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
from jackfield_anthropic.errors import error_in_answer, error_of_response
from jackfield_http import Failures, class_of_status

FAILURES = Failures("anthropic", headers={"request-id": "req_1"})
TYPES = [
    ("authentication_error", ModelAuthError),
    ("billing_error", ModelAuthError),
    ("permission_error", ModelAuthError),
    ("not_found_error", ModelNotFoundError),
    ("request_too_large", ContextLengthError),
    ("rate_limit_error", RateLimitedError),
    ("timeout_error", ModelOverloadedError),
    ("api_error", ModelOverloadedError),
    ("overloaded_error", ModelOverloadedError),
]


def refused(status: int, body: Any) -> ModelServiceError:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return error_of_response(FAILURES, status, content)


@pytest.mark.parametrize(("kind", "error_class"), TYPES)
def test_a_type_says_more_than_the_status_and_the_same_in_an_answer(
    kind: str, error_class: type[ModelServiceError]
) -> None:
    problem = {"type": "error", "error": {"type": kind, "message": "because"}, "request_id": "req_2"}
    error = refused(418, problem)
    assert (type(error), error.status, error.code, error.request_id) == (error_class, 418, kind, "req_2")
    assert str(error).startswith("anthropic: HTTP 418: because (")
    inside = error_in_answer(FAILURES, problem)
    assert (type(inside), inside.status, inside.code, inside.request_id) == (error_class, None, kind, "req_2")
    assert str(inside).startswith("anthropic: error in the response: because (")


@pytest.mark.parametrize(
    ("text", "error_class"),
    [
        ("Prompt is too long: 9 > 8", ContextLengthError),
        ("input length and `max_tokens` exceed context limit", ContextLengthError),
        ("This model's maximum context length is 8", ContextLengthError),
        ("Output blocked by content filtering policy", ContentFilterError),
        ("Your credit balance is too low", ModelAuthError),
        ("odd", ModelRequestError),
    ],
)
def test_a_text_says_more_than_a_type_unless_the_server_failed(text: str, error_class: type[ModelServiceError]) -> None:
    problem = {"error": {"type": "invalid_request_error", "message": text}}
    assert type(refused(400, problem)) is error_class
    assert type(refused(499, problem)) is error_class
    assert type(error_in_answer(FAILURES, problem)) is error_class
    assert type(refused(500, problem)) is ModelOverloadedError
    assert type(refused(400, text.encode())) is error_class


@pytest.mark.parametrize(
    ("body", "code", "text"),
    [
        ({"error": {"code": "E7", "detail": "why"}}, "E7", "why"),
        ({"type": "odd", "message": "why"}, "odd", "why"),
        ({"error": "why"}, None, "why"),
        ({"error": {}, "detail": "why"}, None, "why"),
        ({"error": {"type": "odd"}}, "odd", "odd"),
        ({}, None, "no reason given"),
        ([1], None, "[1]"),
        (b"<html>", None, "<html>"),
        (b"\xff", None, "\ufffd"),
    ],
)
def test_an_error_of_a_gateway_is_read_in_its_form(body: Any, code: str | None, text: str) -> None:
    error = refused(400, body)
    assert str(error) == f"anthropic: HTTP 400: {text} (change the request)"
    assert (error.code, error.request_id) == (code, "req_1")


@pytest.mark.parametrize("request_id", [None, 7, ""])
def test_the_id_of_a_request_is_a_text(request_id: object) -> None:
    assert refused(400, {"error": {"message": "x"}, "request_id": request_id}).request_id == "req_1"


@pytest.mark.parametrize("status", [401, 404, 413, 429, 503, 529])
def test_without_a_known_type_the_status_decides(status: int) -> None:
    assert type(refused(status, {"error": {"type": "new_error", "message": "x"}})) is class_of_status(status)
    assert type(error_in_answer(FAILURES, {"error": {"type": "new_error"}})) is ModelOverloadedError
