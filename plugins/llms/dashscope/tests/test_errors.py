"""Errors: the class by what can be done, the facts, and never the key."""

from __future__ import annotations

import json
from datetime import UTC, datetime

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
from jackfield.quoting import SentSecrets
from jackfield_dashscope.errors import class_of, error_in_answer, error_of_response
from jackfield_http import Failures

NOW = datetime(2026, 11, 1, 12, 0, tzinfo=UTC)

# As the provider's page on error codes has them.
DOCUMENTED: list[tuple[int, str, str, type[ModelServiceError]]] = [
    (400, "InvalidParameter", "Required parameter(s) missing or invalid", ModelRequestError),
    (400, "InvalidParameter", "Range of input length should be [1, 129024]", ContextLengthError),
    (400, "InvalidParameter", "Model not exist.", ModelNotFoundError),
    (400, "InvalidParameter", "url error, please check url!", ModelRequestError),
    (400, "InvalidParameter.DataInspection", "The media format is not supported", ModelRequestError),
    (400, "DataInspectionFailed", "Output data may contain inappropriate content.", ContentFilterError),
    (400, "data_inspection_failed", "Input data may contain inappropriate content.", ContentFilterError),
    (400, "Arrearage", "Access denied, please make sure your account is in good standing.", ModelAuthError),
    (401, "InvalidApiKey", "Invalid API-key provided.", ModelAuthError),
    (403, "AccessDenied.Unpurchased", "Access to model denied.", ModelAuthError),
    (403, "Model.AccessDenied", "Model access denied.", ModelAuthError),
    (403, "AllocationQuota.FreeTierOnly", "The free tier of the model has been exhausted.", ModelAuthError),
    (404, "ModelNotFound", "Model can not be found.", ModelNotFoundError),
    (408, "RequestTimeOut", "Request timed out, please try again later.", ModelOverloadedError),
    (413, "BadRequest.TooLarge", "Payload Too Large", ContextLengthError),
    (429, "Throttling", "Requests throttling triggered.", RateLimitedError),
    (429, "Throttling.RateQuota", "Requests rate limit exceeded", RateLimitedError),
    (429, "Throttling.AllocationQuota", "Allocated quota exceeded", RateLimitedError),
    (429, "SomethingNew", "slow down", RateLimitedError),
    (500, "InternalError.Algo", "An internal error has occured during execution", ModelOverloadedError),
    (503, "ModelUnavailable", "Model is unavailable, please try again later.", ModelOverloadedError),
    (500, "SomethingNew", "The maximum context length was never the problem", ModelOverloadedError),
    (400, "SomethingNew", "no", ModelRequestError),
]


@pytest.mark.parametrize(("status", "code", "text", "expected"), DOCUMENTED)
def test_an_error_has_the_class_of_what_can_be_done(
    status: int, code: str, text: str, expected: type[ModelServiceError]
) -> None:
    assert class_of(status, code, text) is expected


@pytest.mark.parametrize(("status", "code", "text", "expected"), DOCUMENTED)
def test_inside_an_answer_the_code_says_the_same(
    status: int, code: str, text: str, expected: type[ModelServiceError]
) -> None:
    error = error_in_answer(Failures("b"), {"code": code, "message": text}, status=status)
    assert type(error) is expected
    assert (error.code, error.status) == (code, status)
    assert text.strip() in str(error)


@pytest.mark.parametrize(
    ("expected", "codes"),
    [
        (ModelRequestError, ["InvalidParameter.DataInspection"]),
        (ContentFilterError, ["DataInspectionFailed", "data.inspection"]),
        (
            ModelAuthError,
            ["InvalidApiKey", "AccessDenied", "access_denied.x", "Model.AccessDenied", "Workspace.AccessDenied",
             "Arrearage", "AllocationQuota.FreeTierOnly"],
        ),
        (ModelNotFoundError, ["ModelNotFound", "model_not_found", "Model.NotExist"]),
        (RateLimitedError, ["Throttling.User", "LimitRequests"]),
        (ContextLengthError, ["BadRequest.TooLarge"]),
        (
            ModelOverloadedError,
            ["RequestTimeOut", "InternalError", "Internal_Error.Timeout", "ServiceUnavailable", "ModelUnavailable",
             "ModelServiceFailed", "SystemError"],
        ),
    ],
)  # fmt: skip
def test_a_code_says_more_than_the_status_however_it_is_spelt(
    expected: type[ModelServiceError], codes: list[str]
) -> None:
    for code in codes:
        for spelt in (code, code.upper(), code.replace(".", "_")):
            assert class_of(418, spelt, "") is expected, spelt
            assert class_of(500, spelt, "") is expected, spelt
        assert class_of(418, f"My{code}", "") is ModelRequestError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Range of input length should be [1, 9]", ContextLengthError),
        ("the maximum context length is 9", ContextLengthError),
        ("tokens exceed model limit", ContextLengthError),
        ("it exceeds the maximum length", ContextLengthError),
        ("Inappropriate Content", ContentFilterError),
        ("Model not exist.", ModelNotFoundError),
    ],
)
def test_a_text_says_more_than_a_request_that_is_just_wrong(text: str, expected: type[ModelServiceError]) -> None:
    for status in (400, 422, 302):
        assert class_of(status, "InvalidParameter", text) is expected
    assert class_of(401, "InvalidParameter", text) is ModelAuthError
    assert class_of(503, "InvalidParameter", text) is ModelOverloadedError


@pytest.mark.parametrize(
    ("code", "text", "advice"),
    [
        ("DataInspectionFailed", "x", "the provider's content inspection rejected the content: change the content"),
        (
            "InvalidApiKey",
            "x",
            "check the API key (api_key, DASHSCOPE_API_KEY), its region and permissions, and the account",
        ),
        ("ModelNotFound", "x", "check the model's name, and that the model is available in the API key's region"),
        (
            "InvalidParameter",
            "URL error, please check url",
            "the model uses the other endpoint: set endpoint to 'multimodal' or 'text'",
        ),
        ("Throttling", "x", "wait, or send fewer requests at once"),
        ("InvalidParameter", "x", "change the request"),
    ],
)
def test_an_error_says_what_to_do_at_this_provider(code: str, text: str, advice: str) -> None:
    problem = {"code": code, "message": text, "request_id": "r"}
    error = error_of_response(Failures("b"), 418, json.dumps(problem).encode())
    assert str(error) == f"b: HTTP 418: {text} ({advice})"
    inside = error_in_answer(Failures("b"), problem, status=418)
    assert str(inside) == f"b: error in the response: {text} ({advice})"
    assert (error.request_id, inside.request_id) == ("r", "r")


@pytest.mark.parametrize(
    ("body", "code", "text"),
    [
        (b'id:1\n:HTTP_STATUS/400\ndata:{"code": "E", "message": "m"}\n\n', "E", "m"),
        (b'data:[1]\ndata:{x\ndata:{"code": "E", "message": "m"}\ndata:{"code": "F"}', "E", "m"),
        (b'{"request_id": "r", "error": {"code": "E", "message": "m"}}', "E", "m"),
        (b'{"error": "text", "message": "m"}', None, "m"),
        (b'{"message": {"a": ["\xc3\xa9"]}, "code": 7}', "7", '{"a": ["\u00e9"]}'),
        (b"", None, "no reason given"),
        (b"\xff gone", None, "\ufffd gone"),
    ],
)
def test_a_problem_is_found_in_any_form(body: bytes, code: str | None, text: str) -> None:
    error = error_of_response(Failures("b"), 400, body)
    assert (error.code, str(error)) == (code, f"b: HTTP 400: {text} (change the request)")


def test_an_error_in_an_answer_without_a_status_is_a_failure_of_the_server() -> None:
    assert type(error_in_answer(Failures("b"), {"code": "New", "message": "x"}, status=None)) is ModelOverloadedError
    assert type(error_in_answer(Failures("b"), {"code": "New", "message": "x"}, status=400)) is ModelRequestError


def test_a_model_at_the_other_endpoint_is_told_how_to_get_there() -> None:
    body = json.dumps({"code": "InvalidParameter", "message": "url error, please check url!"}).encode()
    assert "endpoint" in str(error_of_response(Failures("b"), 400, body))


def test_the_form_of_the_compatible_mode_is_read_too() -> None:
    body = json.dumps({"error": {"code": "Arrearage", "message": "pay"}, "request_id": "abc"}).encode()
    error = error_of_response(Failures("b"), 400, body)
    assert isinstance(error, ModelAuthError)
    assert (error.code, error.request_id) == ("Arrearage", "abc")


@pytest.mark.parametrize("code", ["sk-very-secret", "x"])
def test_the_key_is_in_no_part_of_an_error(code: str) -> None:
    body = json.dumps({"code": code, "message": "your key sk-very-secret\n is wrong"}).encode()
    error = error_of_response(Failures("b", SentSecrets("sk-very-secret")), 401, body)
    assert "sk-very-secret" not in f"{error} {error!r} {error.__dict__}"
    assert "your key [key] is wrong" in str(error)


@pytest.mark.parametrize(
    "body", [b"", b"\xff\xfe", b"null", b"[1]", b"data:\ndata:{", b'{"message": {"a": 1}}', b"[" * 20_000]
)
def test_what_nobody_can_read_is_an_error_by_its_status(body: bytes) -> None:
    error = error_of_response(Failures("b", headers={"x-request-id": "abc"}), 502, body)
    assert isinstance(error, ModelOverloadedError)
    assert error.request_id == "abc"
    assert len(str(error)) < 800


def test_a_redirect_says_what_to_set() -> None:
    assert "base_url" in str(error_of_response(Failures("b"), 302, b""))
