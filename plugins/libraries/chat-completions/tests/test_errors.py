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
from jackfield_chat_completions.errors import error_of_response
from jackfield_http import Failures
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
