"""What servers say becomes an error whose class says what to do."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
from jackfield_chat_completions.errors import error_in_stream, error_of_response, filtered_categories
from jackfield_http import Failures, class_of_status
from jackfield_http.keys import FoundKey

NOW = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)


def refusal(status: int, body: Any = "", headers: dict[str, str] | None = None, key: str = "") -> ModelServiceError:
    content = body if isinstance(body, bytes) else body.encode() if isinstance(body, str) else json.dumps(body).encode()
    return error_of_response(Failures("openai", SentSecrets(key), headers or {}, now=NOW), status, content)


@pytest.mark.parametrize(
    ("status", "body", "error_class"),
    [
        (400, {"error": {"message": "no", "code": None}}, ModelRequestError),
        (400, {"error": {"message": "no", "code": "context_length_exceeded"}}, ContextLengthError),
        (
            400,
            {"object": "error", "message": "This model's maximum context length is 8192 tokens", "code": 400},
            ContextLengthError,
        ),
        (400, {"error": {"message": "the request exceeds the available context size"}}, ContextLengthError),
        (400, {"error": {"message": "flagged", "code": "content_filter"}}, ContentFilterError),
        (400, {"error": {"message": "x", "code": "DataInspectionFailed"}}, ContentFilterError),
        (400, {"error": {"message": "x", "code": "data_inspection_failed"}}, ContentFilterError),
        (400, {"error": {"message": "x", "code": "model_not_found"}}, ModelNotFoundError),
        (400, {"error": {"message": "x", "innererror": {"code": "ResponsibleAIPolicyViolation"}}}, ContentFilterError),
        (400, {"error": {"code": "BadRequest", "innererror": "odd"}}, ModelRequestError),
        (401, {"error": {"message": "x", "code": "invalid_api_key"}}, ModelAuthError),
        (402, {"error": {"message": "no balance"}}, ModelAuthError),
        (403, "<html>", ModelAuthError),
        (404, {"detail": "Not Found"}, ModelNotFoundError),
        (408, "", ModelOverloadedError),
        (413, "", ContextLengthError),
        (422, {"detail": [{"loc": ["body"], "msg": "missing"}]}, ModelRequestError),
        (429, {"error": {"message": "slow", "type": "tokens", "code": "rate_limit_exceeded"}}, RateLimitedError),
        (500, {"error": "boom"}, ModelOverloadedError),
        (529, "", ModelOverloadedError),
        (500, {"error": {"message": "image input is not supported - hint: use --mmproj"}}, ModelRequestError),
        (500, {"error": {"message": "tools param requires --jinja flag: unsupported"}}, ModelRequestError),
        (400, {"error": {"message": "/chat/completions: Invalid model name passed in model=x"}}, ModelNotFoundError),
        (400, {"error": {"message": "model 'x' not found"}}, ModelNotFoundError),
        (400, {"error": {"message": "The model `x` does not exist."}}, ModelNotFoundError),
        (500, b'data: {"error": {"message": "audio is not supported"}}\n\ndata: [DONE]\n\n', ModelRequestError),
        (
            500,
            b'event: error\ndata: {"code": 400, "message": "x", "type": "context_length_exceeded"}',
            ContextLengthError,
        ),
        (307, "", ModelRequestError),
    ],
)
def test_the_class_follows_code_and_status(status: int, body: Any, error_class: type[ModelServiceError]) -> None:
    error = refusal(status, body)
    assert type(error) is error_class
    assert error.status == status


@pytest.mark.parametrize(
    ("error_class", "codes"),
    [
        (ContextLengthError, ["context_length_exceeded", "string_above_max_length"]),
        (
            ContentFilterError,
            ["content_filter", "content_policy_violation", "DataInspectionFailed", "data_inspection_failed",
             "ResponsibleAIPolicyViolation", "responsible_ai"],
        ),
        (
            ModelAuthError,
            ["insufficient_quota", "billing_hard_limit_reached", "Arrearage", "invalid_api_key",
             "authentication_error", "permission_denied"],
        ),
        (ModelNotFoundError, ["model_not_found", "ModelNotExist", "model_not_exist"]),
        (RateLimitedError, ["rate_limit_exceeded", "too_many_requests", "Throttling.RateQuota"]),
        (ModelRequestError, ["odd", "", "model", "context"]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("place", ["code", "inner code", "type"])
def test_a_code_says_more_than_the_status_wherever_it_is(
    place: str, error_class: type[ModelServiceError], codes: list[str]
) -> None:
    for code in codes:
        named = {"code": {"code": code}, "inner code": {"innererror": {"code": code}}, "type": {"type": code}}
        error = refusal(418, {"error": {"message": "x", **named[place]}})
        assert type(error) is error_class, code
        assert error.code == ((code or None) if place == "code" else None)


def test_of_several_codes_the_outermost_counts() -> None:
    body = {"code": "invalid_api_key", "innererror": {"code": "content_filter"}, "type": "rate_limit"}
    assert type(refusal(400, {"error": body})) is ModelAuthError
    assert type(refusal(400, {"error": body | {"code": "odd"}})) is ContentFilterError
    assert type(refusal(400, {"error": body | {"code": "odd", "innererror": {}}})) is RateLimitedError
    assert type(refusal(400, {"error": {**body, "message": "maximum context length"}})) is ModelAuthError


@pytest.mark.parametrize(
    ("text", "error_class"),
    [
        ("This model's MAXIMUM context length is 5", ContextLengthError),
        ("exceeds the context window", ContextLengthError),
        ("exceeds the context length", ContextLengthError),
        ("exceed context size (8192)", ContextLengthError),
        ("prompt is too long: 9 tokens", ContextLengthError),
        ("too many tokens", ContextLengthError),
        ("too many input tokens", ContextLengthError),
        ("Range of input length should be [1, 9]", ContextLengthError),
        ("Output data may contain inappropriate content.", ContentFilterError),
        ("triggering Azure's content management policy", ContentFilterError),
        ("Invalid model name", ModelNotFoundError),
        ("model 'x' not found", ModelNotFoundError),
        ('model "x" was not found', ModelNotFoundError),
        ("The model `x` does not exist.", ModelNotFoundError),
        ("the model x does not exist", ModelNotFoundError),
        (f"model '{'x' * 201}' does not exist", None),
        ("model 'a b' does not exist", None),
        ("tokens are odd", None),
    ],
)
def test_a_text_says_more_than_a_status_that_says_little(
    text: str, error_class: type[ModelServiceError] | None
) -> None:
    for status in (400, 413, 422, 500):
        error = refusal(status, {"error": {"message": text}})
        assert type(error) is (error_class or class_of_status(status)), status
    for status in (401, 404, 429, 503):
        assert type(refusal(status, {"error": {"message": text}})) is class_of_status(status)


@pytest.mark.parametrize("text", ["Audio is NOT supported", "unsupported", "not implemented: images"])
def test_a_failure_at_what_a_server_cannot_do_is_not_tried_again(text: str) -> None:
    assert type(refusal(500, {"error": text})) is ModelRequestError
    assert type(refusal(503, {"error": text})) is ModelOverloadedError
    assert type(refusal(400, {"error": text})) is ModelRequestError
    assert type(refusal(413, {"error": text})) is ContextLengthError


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ({"error": {"message": "m", "detail": "d"}, "message": "outer"}, "m"),
        ({"error": {"detail": "d"}}, "d"),
        ({"error": "plain", "message": "outer"}, "plain"),
        ({"error": {}, "message": "outer"}, "outer"),
        ({"message": "outer"}, "outer"),
        ({"detail": "d"}, "d"),
        ({"detail": [{"msg": "missing ä"}]}, '[{"msg": "missing ä"}]'),
        ({"odd": 1}, '{"odd": 1}'),
        ({"error": 7}, "7"),
        (["a", 1], '["a", 1]'),
        ('"text"', "text"),
        ("Bad gateway", "Bad gateway"),
        (b"\xff bad", "\ufffd bad"),
        (b'error: {"message": "m"}', "m"),
        (b'event: error\ndata: [1]\ndata: {x\ndata:{"message": "m"}\ndata: {"message": "n"}', "m"),
        (b"data: [DONE]", "data: [DONE]"),
        (b'said data: {"message": "m"}', 'said data: {"message": "m"}'),
    ],
)
def test_the_servers_own_text_is_found_in_any_form(body: Any, text: str) -> None:
    assert str(refusal(400, body)) == f"openai: HTTP 400: {text} (change the request)"


def test_advice_about_a_model_that_does_not_exist_names_the_settings_that_say_where_it_is() -> None:
    assert str(refusal(404)).endswith("(check the model's name, and base_url, which usually ends in /v1)")
    error = error_of_response(Failures("azure"), 404, b"", where="azure_deployment")
    assert str(error).endswith("(check the model's name, and azure_deployment)")
    assert "azure_deployment" not in str(error_of_response(Failures("azure"), 400, b"", where="azure_deployment"))
    for status, code, is_advised in ((400, b"model_not_found", True), (404, b"invalid_api_key", False)):
        body = b'{"error": {"code": "' + code + b'"}}'
        error = error_of_response(Failures("azure"), status, body, where="azure_deployment")
        assert ("azure_deployment" in str(error)) is is_advised


@pytest.mark.parametrize(
    ("code", "status", "error_class"),
    [
        (400, 400, ModelRequestError),
        ("404", 404, ModelNotFoundError),
        (529, 529, ModelOverloadedError),
        (4000, None, ModelOverloadedError),
        (399, None, ModelOverloadedError),
        (600, None, ModelOverloadedError),
        ("odd", None, ModelOverloadedError),
        (None, None, ModelOverloadedError),
    ],
)
def test_an_error_in_a_stream_may_state_its_status(
    code: object, status: int | None, error_class: type[ModelServiceError]
) -> None:
    error = error_in_stream(
        Failures("openai", headers={"x-request-id": "r"}), {"error": {"message": "x", "code": code}}
    )
    assert (type(error), error.status) == (error_class, status)
    assert (error.code, error.request_id) == (None if code is None else str(code), "r")
    assert str(error).startswith("openai: error in the response: x (")


@pytest.mark.parametrize(
    ("results", "shown"),
    [
        (None, ""),
        ([], ""),
        ({}, ""),
        ({"hate": {"filtered": False}}, ""),
        ({"hate": {"filtered": True}, "violence": {"filtered": True}}, " [hate, violence]"),
        ({"hate": True, "error": None, "violence": {"filtered": True}}, " [violence]"),
    ],
)
def test_the_findings_of_a_filter_are_named(results: object, shown: str) -> None:
    assert filtered_categories(results) == shown


def test_a_used_up_quota_is_no_rate_limit_because_waiting_does_not_help() -> None:
    error = refusal(429, {"error": {"message": "You exceeded your quota", "code": "insufficient_quota"}})
    assert isinstance(error, ModelAuthError)
    assert not error.retryable
    assert error.code == "insufficient_quota"


@pytest.mark.parametrize("header", ["x-request-id", "request-id", "apim-request-id"])
def test_facts_are_kept(header: str) -> None:
    error = refusal(429, "", {"retry-after": "7", header: "req_9"})
    assert (error.retry_after_s, error.request_id, error.backend) == (7, "req_9", "openai")


def test_the_servers_text_is_told_short_and_without_the_key() -> None:
    key = "sk-very-secret"
    error = refusal(401, {"error": {"message": f"Incorrect API key provided: {key}. " + "blah " * 1000}}, key=key)
    assert "Incorrect API key" in str(error)
    assert key not in str(error)
    assert len(str(error)) < 800


def test_a_placeholder_key_is_not_taken_out_of_words() -> None:
    assert "EMPTY message" in str(refusal(400, {"error": {"message": "EMPTY message"}}, key="EMPTY"))


@given(
    st.integers(300, 599),
    st.one_of(
        st.binary(max_size=60),
        st.recursive(
            st.none() | st.integers() | st.text(max_size=5),
            lambda x: (
                st.lists(x, max_size=3)
                | st.dictionaries(st.sampled_from(["error", "message", "code", "type", "detail"]), x, max_size=4)
            ),
            max_leaves=8,
        ),
    ),
)
def test_every_refusal_is_some_error(status: int, body: Any) -> None:
    assert isinstance(refusal(status, body), ModelServiceError)


def test_a_filter_says_what_it_found() -> None:
    results = {"hate": {"filtered": False, "severity": "safe"}, "jailbreak": {"filtered": True, "detected": True}}
    inner = {"code": "ResponsibleAIPolicyViolation", "content_filter_result": results}
    error = refusal(400, {"error": {"message": "no", "code": "content_filter", "innererror": inner}})
    assert type(error) is ContentFilterError
    assert "no [jailbreak]" in str(error)


def test_the_advice_about_a_key_names_its_variable() -> None:
    error = error_of_response(Failures("acme", key=FoundKey(variable="ACME_API_KEY")), 401, b"")
    assert "api_key, ACME_API_KEY" in str(error)
    assert "(check the API key (api_key)" in str(refusal(401))


def test_a_refusal_in_the_form_of_a_stream_is_read() -> None:
    error = refusal(500, b': hi\n\ndata: {"error": {"message": "no such luck", "code": "odd"}}\n\ndata: [DONE]\n\n')
    assert "HTTP 500: no such luck (" in str(error)
    assert error.code == "odd"
