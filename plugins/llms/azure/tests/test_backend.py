"""Where a deployment is, as whom it is asked, and what its filters say."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from jackfield import get_chat_model, sync
from jackfield.errors import (
    ConfigError,
    ContentFilterError,
    MissingSecretError,
    ModelAuthError,
    ModelNotFoundError,
    RateLimitedError,
)
from jackfield.messages import Message, ModelResponse
from jackfield_azure.backend import AzureChat
from jackfield_azure.config import AzureConfig
from jackfield_testkit.forks import output_of
from jackfield_testkit.server import FakeOpenAI, error, raw, text

MakeModel = Callable[..., AzureChat]
HELLO = [Message("user", "hello")]
REFUSED = {
    "error": {
        "message": "The response was filtered.",
        "code": "content_filter",
        "status": 400,
        "innererror": {
            "code": "ResponsibleAIPolicyViolation",
            "content_filter_result": {"jailbreak": {"detected": True, "filtered": True}, "hate": {"filtered": False}},
        },
    }
}


def ask(model: AzureChat) -> ModelResponse:
    return sync.run(model.acomplete(HELLO))


def stream_of(*chunks: Any) -> Any:
    body = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"
    return raw(body.encode(), {"Content-Type": "text/event-stream"})


# --- where ---


@pytest.mark.parametrize(
    ("config", "path"),
    [
        ({}, "/openai/deployments/test-model/chat/completions?api-version=2024-06-01"),
        ({"azure_deployment": "mine"}, "/openai/deployments/mine/chat/completions?api-version=2024-06-01"),
        ({"model": "org/a b"}, "/openai/deployments/org%2Fa%20b/chat/completions?api-version=2024-06-01"),
        (
            {"api_version": "2025-01-01-preview"},
            "/openai/deployments/test-model/chat/completions?api-version=2025-01-01-preview",
        ),
    ],
)
def test_a_deployment_has_an_address_of_its_own(
    server: FakeOpenAI, make_model: MakeModel, config: dict[str, str], path: str
) -> None:
    server.reply(text("hello"))
    assert ask(make_model(**config)).get_content() == "hello"
    assert server.requests[0].path == path


def test_the_endpoint_wins_over_the_address_and_both_over_the_environment(
    server: FakeOpenAI, make_model: MakeModel, clean_environment: pytest.MonkeyPatch
) -> None:
    server.default = text("hello")
    nowhere = "http://127.0.0.1:1"
    clean_environment.setenv("AZURE_OPENAI_ENDPOINT", nowhere)
    ask(make_model(azure_endpoint=server.origin + "/", base_url=nowhere))
    ask(make_model(azure_endpoint=None, base_url=server.origin))
    clean_environment.setenv("AZURE_OPENAI_ENDPOINT", server.origin)
    ask(make_model(azure_endpoint=None))
    assert len({request.path for request in server.requests}) == 1


def test_the_address_without_versions_has_neither_deployment_nor_version(
    server: FakeOpenAI, make_model: MakeModel
) -> None:
    server.reply(text("hello"))
    ask(make_model(azure_endpoint=server.origin + "/openai/v1/"))
    assert server.requests[0].path == "/openai/v1/chat/completions"
    assert server.requests[0].json["model"] == "test-model"
    assert server.requests[0].wants_usage
    server.reply(text("hello"))
    ask(make_model(azure_endpoint=server.origin + "/openai/v1", stream_usage=False))
    assert not server.requests[1].wants_usage


@pytest.mark.parametrize("prefix", ["/openai/v1/team", "/openai/v10", "/gateway"])
def test_only_an_address_that_ends_so_is_without_versions(
    server: FakeOpenAI, make_model: MakeModel, prefix: str
) -> None:
    server.reply(text("hello"))
    ask(make_model(azure_endpoint=server.origin + prefix))
    assert server.requests[0].path.startswith(f"{prefix}/openai/deployments/test-model/")


def test_a_version_is_one_value_of_the_query(server: FakeOpenAI, make_model: MakeModel) -> None:
    server.reply(text("hello"))
    ask(make_model(api_version="2025-01-01&x=1#+ ü"))
    assert server.requests[0].path.endswith("?api-version=2025-01-01%26x%3D1%23%2B+%C3%BC")


def test_the_version_may_come_from_the_environment(
    server: FakeOpenAI, make_model: MakeModel, clean_environment: pytest.MonkeyPatch
) -> None:
    clean_environment.setenv("OPENAI_API_VERSION", "2024-10-21")
    server.reply(text("hello"))
    ask(make_model())
    assert server.requests[0].path.endswith("?api-version=2024-10-21")
    server.reply(text("hello"))
    ask(make_model(api_version="2025-01-01"))
    assert server.requests[1].path.endswith("?api-version=2025-01-01"), "the configured one wins"


@pytest.mark.parametrize("variable", ["AZURE_OPENAI_API_KEY", "AZURE_OPENAI_AD_TOKEN"])
def test_a_secret_of_the_environment_that_stays_here_is_named(
    make_model: MakeModel, clean_environment: pytest.MonkeyPatch, variable: str
) -> None:
    clean_environment.setenv(variable, "do-not-show")
    with pytest.raises(ConfigError, match=f"{variable} is not sent to elsewhere.example") as caught:
        make_model(azure_endpoint="https://elsewhere.example", api_key=None).server()
    assert "do-not-show" not in str(caught.value)


def test_without_an_endpoint_it_says_what_to_set(make_model: MakeModel) -> None:
    with pytest.raises(ConfigError, match=r"azure_endpoint.*AZURE_OPENAI_ENDPOINT"):
        ask(make_model(azure_endpoint=None))
    with pytest.raises(ConfigError, match="azure_endpoint must start"):
        ask(make_model(azure_endpoint="name.openai.azure.com"))


def test_a_caller_of_the_chain_is_told_which_server_is_asked(server: FakeOpenAI) -> None:
    model = get_chat_model({"model_type": "azure", "model": "m", "azure_endpoint": server.origin, "api_key": "k"})
    assert isinstance(model, AzureChat)
    assert model.make_request(HELLO).server == f"azure@{server.origin.removeprefix('http://')}"


# --- as whom ---


def test_a_key_goes_into_its_own_header_and_nothing_of_openai_is_sent(
    server: FakeOpenAI, make_model: MakeModel, clean_environment: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"):
        clean_environment.setenv(name, "of-openai")
    server.reply(text("hello"))
    ask(make_model(api_key=" az-key\n"))
    headers = server.requests[0].headers
    assert headers["api-key"] == "az-key"
    assert "authorization" not in headers
    assert "of-openai" not in repr(headers)


def test_a_key_of_openai_is_no_key_of_azure(make_model: MakeModel, clean_environment: pytest.MonkeyPatch) -> None:
    clean_environment.setenv("OPENAI_API_KEY", "of-openai")
    with pytest.raises(MissingSecretError, match="AZURE_OPENAI_API_KEY"):
        ask(make_model(api_key=None))


def test_what_is_configured_wins_and_a_token_wins_over_a_key(
    server: FakeOpenAI, make_model: MakeModel, clean_environment: pytest.MonkeyPatch
) -> None:
    server.default = text("hello")
    clean_environment.setenv("AZURE_OPENAI_API_KEY", "key-env")
    ask(make_model(api_key=None))
    clean_environment.setenv("AZURE_OPENAI_AD_TOKEN", "token-env")
    ask(make_model(api_key=None))
    ask(make_model(api_key="key"))
    ask(make_model(api_key=None, azure_ad_token="token"))
    sent = [(request.headers.get("api-key"), request.headers.get("authorization")) for request in server.requests]
    assert sent == [("key-env", None), (None, "Bearer token-env"), ("key", None), (None, "Bearer token")]


def test_a_key_and_a_token_are_one_too_many(make_model: MakeModel) -> None:
    with pytest.raises(ConfigError, match="azure_ad_token"):
        ask(make_model(azure_ad_token="token"))


def test_a_token_is_neither_shown_nor_taken_to_another_process(server: FakeOpenAI, make_model: MakeModel) -> None:
    config = AzureConfig(model="m", azure_ad_token="do-not-show")  # type: ignore[arg-type]
    assert "do-not-show" not in repr(config)
    assert b"do-not-show" not in pickle.dumps(config)
    server.reply(error(401, "bad token do-not-show"))
    with pytest.raises(ModelAuthError, match="AZURE_OPENAI_AD_TOKEN") as caught:
        ask(make_model(api_key=None, azure_ad_token="do-not-show"))
    assert "do-not-show" not in str(caught.value)


# --- what is asked, and what comes back ---


@pytest.mark.parametrize(
    ("config", "asked"),
    [
        ({}, False),
        ({"api_version": "2024-08-01-preview"}, False),
        ({"api_version": "2024-09-01-preview"}, True),
        ({"api_version": "2024-10-21"}, True),
        ({"api_version": "2024-10-21", "stream_usage": False}, False),
        ({"stream_usage": True}, True),
    ],
)
def test_token_counts_are_asked_for_where_the_version_knows_them(
    server: FakeOpenAI, make_model: MakeModel, config: dict[str, Any], asked: bool
) -> None:
    server.reply(text("hello"))
    ask(make_model(**config))
    assert server.requests[0].wants_usage == asked


def test_chunks_of_filters_alone_are_passed_over(server: FakeOpenAI, make_model: MakeModel) -> None:
    prompt = {"choices": [], "prompt_filter_results": [{"prompt_index": 0, "content_filter_results": {}}]}
    said = {"choices": [{"index": 0, "delta": {"content": "hi"}, "content_filter_results": {"hate": {}}}]}
    later = {"choices": [{"index": 0, "delta": {}, "content_filter_offsets": {"check_offset": 1}}]}
    ended = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "model": "gpt-x"}
    server.reply(stream_of(prompt, said, later, ended))
    answer = ask(make_model())
    assert (answer.get_content(), answer.finish_reason) == ("hi", "stop")


def test_a_request_that_a_filter_refuses_says_why(server: FakeOpenAI, make_model: MakeModel) -> None:
    server.reply(raw(json.dumps(REFUSED).encode(), {"Content-Type": "application/json"}, status=400))
    with pytest.raises(ContentFilterError, match=r"filtered\. \[jailbreak\]") as caught:
        ask(make_model())
    assert (caught.value.code, caught.value.retryable) == ("content_filter", False)


def test_an_answer_that_a_filter_emptied_is_an_error_and_one_that_it_cut_off_is_kept(
    server: FakeOpenAI, make_model: MakeModel
) -> None:
    found = {"violence": {"filtered": True, "severity": "medium"}}
    cut = {"choices": [{"index": 0, "delta": {}, "finish_reason": "content_filter", "content_filter_results": found}]}
    server.reply(stream_of(cut), stream_of({"choices": [{"delta": {"content": "Once"}}]}, cut))
    with pytest.raises(ContentFilterError, match=r"\[violence\]"):
        ask(make_model())
    answer = ask(make_model())
    assert (answer.get_content(), answer.finish_reason) == ("Once", "content_filter")


def test_errors_of_azure_are_of_their_kind(server: FakeOpenAI, make_model: MakeModel) -> None:
    missing = {"error": {"code": "DeploymentNotFound", "message": "The API deployment does not exist."}}
    server.reply(raw(json.dumps(missing).encode(), {"apim-request-id": "r-1"}, status=404))
    with pytest.raises(ModelNotFoundError) as caught:
        ask(make_model())
    assert caught.value.code == "DeploymentNotFound"
    assert "azure_deployment" in str(caught.value)
    assert "base_url" not in str(caught.value)
    server.reply(error(429, "slow", headers={"Retry-After": "7"}))
    with pytest.raises(RateLimitedError) as limited:
        ask(make_model())
    assert limited.value.retry_after_s == 7


def test_no_sdk_is_imported_before_the_first_call() -> None:
    code = (
        "import sys; from jackfield_azure.backend import AzureChat; AzureChat({'model': 'm'});"
        "print([name for name in ('openai', 'httpx2', 'httpcore2', 'anyio') if name in sys.modules])"
    )
    assert output_of(code) == "[]"


@pytest.mark.parametrize(
    ("url", "allowed"),
    [
        ("https://name.openai.azure.com", True),
        ("https://name.services.ai.azure.com", True),
        ("https://name.cognitiveservices.azure.com", True),
        ("https://name.openai.azure.us", True),
        ("https://openai.azure.com", False),
        ("https://name.azure.com", False),
        ("http://name.openai.azure.com", False),
        ("https://name.openai.azure.com.evil.example", False),
    ],
)
def test_keys_of_the_environment_go_to_azure_alone(url: str, allowed: bool) -> None:
    assert AzureChat.key_rule.allows(url) is allowed


@pytest.mark.parametrize(
    ("config", "version", "usage"),
    [
        ({}, "2024-06-01", False),
        ({"api_version": "2024-08-31"}, "2024-08-31", False),
        ({"api_version": "2024-09-01"}, "2024-09-01", True),
        ({"api_version": "2024-09-01-preview"}, "2024-09-01-preview", True),
        ({"api_version": "2025-01-01"}, "2025-01-01", True),
        ({"stream_usage": True}, "2024-06-01", True),
        ({"api_version": "2025-01-01", "stream_usage": False}, "2025-01-01", False),
    ],
)
def test_each_version_is_asked_for_what_it_knows(
    server: FakeOpenAI, make_model: MakeModel, config: dict[str, Any], version: str, usage: bool
) -> None:
    server.reply(text("hello"))
    ask(make_model(azure_deployment="my deployment/1", **config))
    assert server.requests[0].path == (
        f"/openai/deployments/my%20deployment%2F1/chat/completions?api-version={version}"
    )
    assert server.requests[0].wants_usage is usage


def test_a_deployment_has_the_models_name_unless_it_has_its_own(server: FakeOpenAI, make_model: MakeModel) -> None:
    server.default = text("hello")
    ask(make_model(model="gpt-x"))
    ask(make_model(model="gpt-x", azure_deployment="mine"))
    assert [request.path.split("/")[3] for request in server.requests] == ["gpt-x", "mine"]


def test_a_model_that_is_not_there_is_advised_about_by_the_settings_of_azure(
    server: FakeOpenAI, make_model: MakeModel
) -> None:
    server.reply(error(404, "no"))
    with pytest.raises(ModelNotFoundError, match="check the model's name, and azure_deployment, azure_endpoint and"):
        ask(make_model())
