"""A backend is an address and a key: what it asks, as whom, and what it makes of answers."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import jackfield_chat_completions
from jackfield import sync
from jackfield.errors import (
    ConfigError,
    MissingSecretError,
    ModelAuthError,
    ModelConnectionError,
    ModelNotFoundError,
    ModelOverloadedError,
    ModelRequestError,
    UnsupportedInputError,
)
from jackfield.events import MediaDelta, TextDelta
from jackfield.messages import Message
from jackfield.request import ChatRequest
from jackfield_chat_completions import PROFILES, ChatCompletionsModel, ChatServer, Dialect, ServerProfile
from jackfield_http import Failures, request_id_of
from jackfield_http.backend import Exchange
from jackfield_testkit.forks import output_of
from jackfield_testkit.server import FakeOpenAI, error, raw, text

MakeModel = Callable[..., ChatCompletionsModel]
HELLO = [Message("user", "hello")]


def ask(model: ChatCompletionsModel, **config: Any) -> str:
    return sync.run(model.acomplete(HELLO, config=config)).get_content()


def test_the_public_names_are_these() -> None:
    assert sorted(jackfield_chat_completions.__all__) == [
        "ChatCompletionsConfig",
        "ChatCompletionsModel",
        "ChatServer",
        "Dialect",
        "PROFILES",
        "ServerProfile",
    ]


# --- where, and as whom ---


def test_a_profile_with_an_address_alone_is_a_backend(server: FakeOpenAI, make_model: MakeModel) -> None:
    server.reply(text("hello"))
    assert ask(make_model()) == "hello"
    request = server.requests[0]
    assert request.path == "/v1/chat/completions"
    assert "authorization" not in request.headers
    assert request.headers["accept-encoding"] == "identity"
    assert request.headers["user-agent"] == "jackfield"


def test_the_configured_address_wins(server: FakeOpenAI, make_model: MakeModel) -> None:
    server.reply(text("hello"))
    assert ask(make_model(ServerProfile("http://127.0.0.1:1/v1"), base_url=server.url + "/")) == "hello"


@pytest.mark.parametrize("url", ["localhost:8000/v1", "http://"])
def test_what_is_no_address_is_refused(make_model: MakeModel, url: str) -> None:
    with pytest.raises(ConfigError, match="base_url"):
        ask(make_model(base_url=url))


def test_without_any_address_it_says_to_set_one(make_model: MakeModel) -> None:
    with pytest.raises(ConfigError, match="set base_url"):
        ask(make_model(ServerProfile(key="ACME_API_KEY"), api_key="k"))


def test_the_configured_key_wins_over_the_secret(
    server: FakeOpenAI, make_model: MakeModel, clean_environment: pytest.MonkeyPatch
) -> None:
    server.default = text("hello")
    profile = ServerProfile(server.url, "ACME_API_KEY")
    clean_environment.setenv("ACME_API_KEY", "sk-environment")
    ask(make_model(profile))
    ask(make_model(profile, api_key=" sk-configured\n"))
    sent = [request.headers["authorization"] for request in server.requests]
    assert sent == ["Bearer sk-environment", "Bearer sk-configured"]


def test_a_missing_key_is_named_and_nothing_is_sent(server: FakeOpenAI, make_model: MakeModel) -> None:
    with pytest.raises(MissingSecretError, match="ACME_API_KEY"):
        ask(make_model(ServerProfile(server.url, "ACME_API_KEY")))
    assert server.requests == []


def test_a_key_that_the_server_repeats_is_not_shown_and_its_variable_is_named(
    server: FakeOpenAI, make_model: MakeModel
) -> None:
    server.reply(error(401, "Incorrect API key provided: sk-do-not-show"))
    with pytest.raises(ModelAuthError, match="ACME_API_KEY") as caught:
        ask(make_model(ServerProfile(server.url, "ACME_API_KEY"), api_key="sk-do-not-show"))
    assert "sk-do-not-show" not in str(caught.value) + repr(caught.value)


def test_headers_of_a_call_win(server: FakeOpenAI, make_model: MakeModel) -> None:
    server.reply(text("hello"))
    ask(make_model(), extra_headers={"User-Agent": "me", "X-Mine": "1"})
    headers = server.requests[0].headers
    assert (headers["user-agent"], headers["x-mine"], headers["content-type"]) == ("me", "1", "application/json")


# --- what a profile and the configuration say ---


def test_facts_of_known_models_are_data_and_settings_win(make_model: MakeModel) -> None:
    profile = ServerProfile("http://h", models="openai")
    assert make_model(profile, model="gpt-4-turbo").facts.context_tokens == 128_000
    assert not make_model(profile, model="gpt-4-turbo").facts.json_schema
    assert make_model(profile, model="gpt-4-turbo", json_schema=True).facts.json_schema
    assert make_model(profile, model="not-known").facts.context_tokens is None
    assert make_model(ServerProfile("http://h"), model="gpt-4-turbo").facts.context_tokens is None


@pytest.mark.parametrize(
    ("model", "config", "says_so"),
    [
        ("gpt-4-turbo", {"json_schema": True, "images": False}, "the configuration"),
        ("gpt-4-turbo", {}, "the table"),
        ("not-known", {}, "the profile"),
    ],
)
def test_a_fact_is_that_of_the_nearest_source(
    make_model: MakeModel, model: str, config: dict[str, Any], says_so: str
) -> None:
    profile = ServerProfile("http://h", models="openai", facts={"json_schema": True, "images": False, "audio": True})
    facts = make_model(profile, model=model, **config).facts
    assert (facts.json_schema, facts.images) == ((False, True) if says_so == "the table" else (True, False))
    assert facts.audio, "of which no nearer source says anything"


def test_a_setting_wins_over_a_field_of_the_profile(server: FakeOpenAI, make_model: MakeModel) -> None:
    server.reply(text("hello"))
    fields = {"modalities": ["text"], "audio": {"voice": "one"}, "prompt_cache_key": "theirs", "tier": "slow"}
    model = make_model(
        ServerProfile(server.url, dialect=Dialect(body=fields)),
        modalities=["text", "audio"],
        audio_output={"voice": "two"},
        prompt_cache_key="mine",
    )
    ask(model)
    sent = {key: server.requests[0].json[key] for key in fields}
    assert sent == {
        "modalities": ["text", "audio"],
        "audio": {"voice": "two"},
        "prompt_cache_key": "mine",
        "tier": "slow",
    }


def test_facts_are_as_configured_else_as_the_profile_says(make_model: MakeModel) -> None:
    profile = ServerProfile("http://h", facts={"images": False, "audio": True})
    facts = make_model(profile).facts
    assert (facts.images, facts.audio, facts.native_tools, facts.context_tokens) == (False, True, True, None)
    facts = make_model(profile, images=True, native_tools=False, context_tokens=4096, tokenizer="qwen").facts
    assert (facts.images, facts.audio, facts.native_tools) == (True, True, False)
    assert (facts.context_tokens, facts.tokenizer) == (4096, "qwen")


def test_the_dialect_is_as_configured_else_as_the_profile_says(make_model: MakeModel) -> None:
    profile = ServerProfile("http://h", dialect=Dialect(stream_usage=False, continuation="partial", body={"a": 1}))
    assert make_model(profile).dialect(profile) == profile.dialect
    for name in ("stream_usage", "send_reasoning"):
        off = make_model(ServerProfile("http://h"), **{name: False})
        assert off.dialect(ServerProfile("http://h")) == Dialect(**{name: False})
    configured = make_model(
        profile, stream_usage=True, continuation="fold", max_tokens_key="max_completion_tokens", prompt_cache_key="k"
    )
    assert configured.dialect(profile) == Dialect(
        max_tokens_key="max_completion_tokens", continuation="fold", body={"a": 1, "prompt_cache_key": "k"}
    )


@pytest.mark.parametrize("name", PROFILES)
def test_every_profile_makes_a_request_for_its_kind_of_server(
    server: FakeOpenAI, make_model: MakeModel, name: Any
) -> None:
    server.reply(text("hello"))
    profile = PROFILES[name]
    assert profile.url.startswith(("https://", "http://localhost:"))
    model = make_model(profile, base_url=server.url, api_key="k")
    begun = [*HELLO, Message("assistant", "so", reasoning_content="why")]
    sync.run(model.acomplete(begun, config={"max_tokens": 3, "repetition_penalty": 1.1}))
    sent = server.requests[0].json
    dialect = profile.dialect
    assert (sent[dialect.max_tokens_key], sent[dialect.repetition_penalty_key]) == (3, 1.1)
    assert ("reasoning_content" in sent["messages"][-1]) == dialect.send_reasoning
    marks = {"partial": True} if dialect.continuation == "partial" else {}
    assert marks.items() <= sent["messages"][-1].items()
    assert sent.get("continue_final_message", False) == (dialect.continuation == "continue_final_message")


def test_a_model_that_speaks_is_asked_for_sound_and_gives_one_file(server: FakeOpenAI, make_model: MakeModel) -> None:
    deltas = [{"audio": {"data": "AAAA", "transcript": "hi"}}, {"audio": {"data": "AAAA"}}]
    lines = [{"choices": [{"delta": delta}]} for delta in deltas] + [{"choices": [{"finish_reason": "stop"}]}]
    body = "".join(f"data: {json.dumps(line)}\n\n" for line in lines).encode()
    server.reply(raw(body, {"Content-Type": "text/event-stream"}))
    model = make_model(modalities=["text", "audio"], audio_output={"voice": "v", "format": "mp3"})

    async def gather() -> list[Any]:
        return [event async for event in model.astream(HELLO)]

    events = sync.run(gather())
    assert (server.requests[0].json["modalities"], server.requests[0].json["audio"]["voice"]) == (
        ["text", "audio"],
        "v",
    )
    assert [event.text for event in events if isinstance(event, TextDelta)] == ["hi"]
    (sound,) = [event.item.value for event in events if isinstance(event, MediaDelta)]
    assert sound == "data:audio/mpeg;base64,AAAAAAAA"


# --- files, errors, loops ---


def test_a_missing_file_is_refused_before_anything_is_sent(
    server: FakeOpenAI, make_model: MakeModel, tmp_path: Path
) -> None:
    with pytest.raises(UnsupportedInputError):
        sync.run(make_model().acomplete([Message("user", [{"image": str(tmp_path / "gone.png")}])]))
    assert server.requests == []


def test_a_server_that_fails_or_is_gone_is_an_error_of_its_kind(server: FakeOpenAI, make_model: MakeModel) -> None:
    server.reply(error(503, "later"))
    with pytest.raises(ModelOverloadedError, match="acme: HTTP 503"):
        ask(make_model())
    with pytest.raises(ModelConnectionError, match=r"acme: http://127\.0\.0\.1:1 "):
        ask(make_model(base_url="http://127.0.0.1:1/v1"))


def test_one_model_serves_several_event_loops_at_once(server: FakeOpenAI, make_model: MakeModel) -> None:
    server.default = text("hello")
    model = make_model()
    answers: list[str] = []

    async def talk() -> list[str]:
        replies = await asyncio.gather(*(model.acomplete(HELLO) for _ in range(5)))
        return [reply.get_content() for reply in replies]

    threads = [threading.Thread(target=lambda: answers.extend(asyncio.run(talk()))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == ["hello"] * 20


def test_a_closed_model_asks_with_the_key_as_it_is_then(
    server: FakeOpenAI, make_model: MakeModel, clean_environment: pytest.MonkeyPatch
) -> None:
    server.default = text("hello")
    model = make_model(ServerProfile(server.url, "ACME_API_KEY"))
    for key in ("old", "new"):
        clean_environment.setenv("ACME_API_KEY", key)
        ask(model)
        sync.run(model.aclose())
    assert [request.headers["authorization"] for request in server.requests] == ["Bearer old", "Bearer new"]
    assert server.wait_until(lambda s: s.open_connections == 0)


def test_importing_it_loads_no_http_stack() -> None:
    code = (
        "import sys, jackfield_chat_completions;"
        "print([name for name in ('openai', 'httpx2', 'httpcore2', 'anyio') if name in sys.modules])"
    )
    assert output_of(code) == "[]"


NOT_BY_THIS_NAME = "Unsupported parameter: 'max_tokens' is not supported here. Use 'max_completion_tokens' instead."


def test_a_server_that_wants_the_limit_by_its_other_name_is_asked_once_more_and_remembered(
    server: FakeOpenAI, make_model: MakeModel
) -> None:
    server.reply(error(400, NOT_BY_THIS_NAME), text("a"), text("b"))
    model = make_model()
    assert [ask(model, max_tokens=5), ask(model, max_tokens=6)] == ["a", "b"]
    limits = [(sent.json.get("max_tokens"), sent.json.get("max_completion_tokens")) for sent in server.requests]
    assert limits == [(5, None), (None, 5), (None, 6)]


def test_a_limit_whose_name_is_configured_keeps_it(server: FakeOpenAI, make_model: MakeModel) -> None:
    server.reply(error(400, NOT_BY_THIS_NAME))
    with pytest.raises(ModelRequestError):
        ask(make_model(max_tokens_key="max_tokens"), max_tokens=5)
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("status", "said", "options", "config"),
    [
        (422, NOT_BY_THIS_NAME, {"max_tokens": 5}, {}),
        (400, "max_tokens is too large", {"max_tokens": 5}, {}),
        (400, "max_completion_tokens is odd", {"max_tokens": 5}, {}),
        (400, NOT_BY_THIS_NAME, {}, {}),
        (400, NOT_BY_THIS_NAME, {"max_tokens": 5}, {"max_tokens_key": "max_completion_tokens"}),
    ],
    ids=["another status", "one name", "no name of ours", "no limit", "the other name already"],
)
def test_a_refusal_for_another_reason_is_not_answered_by_the_other_name(
    server: FakeOpenAI, make_model: MakeModel, status: int, said: str, options: dict[str, int], config: dict[str, str]
) -> None:
    server.reply(error(status, said))
    with pytest.raises(ModelRequestError):
        ask(make_model(**config), **options)
    assert len(server.requests) == 1


def test_a_refusal_of_the_other_name_itself_is_not_answered_by_it_again(
    server: FakeOpenAI, make_model: MakeModel
) -> None:
    server.reply(error(400, NOT_BY_THIS_NAME))
    with pytest.raises(ModelRequestError):
        ask(
            make_model(ServerProfile(server.url, dialect=Dialect(max_tokens_key="max_completion_tokens"))), max_tokens=5
        )
    assert len(server.requests) == 1


def test_the_models_are_listed_at_the_address_of_the_server(server: FakeOpenAI, make_model: MakeModel) -> None:
    assert sync.run(make_model(ServerProfile(server.url)).alist_models()) == ["test-model"]
    assert [request.path for request in server.listings] == ["/v1/models"]


def test_a_model_that_is_not_there_is_advised_about_by_its_profile(server: FakeOpenAI, make_model: MakeModel) -> None:
    server.reply(error(404, "no such model"))
    with pytest.raises(ModelNotFoundError, match="check the model's name, and acme_deployment"):
        ask(make_model(ServerProfile(server.url, where="acme_deployment")))


def test_a_usage_with_a_cost_is_read_in_the_currency_of_the_profile(server: FakeOpenAI, make_model: MakeModel) -> None:
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "cost": 0.25}
    lines = [{"choices": [{"delta": {"content": "a"}, "finish_reason": "stop"}], "usage": usage}]
    server.default = raw(f"data: {json.dumps(lines[0])}\n\n".encode(), {"Content-Type": "text/event-stream"})
    profile = ServerProfile(server.url, dialect=Dialect(cost_currency="EUR"))
    reported = sync.run(make_model(profile).acomplete(HELLO)).usage
    assert (reported.cost, reported.currency) == (Decimal("0.25"), "EUR")
    assert sync.run(make_model().acomplete(HELLO)).usage.currency != "EUR"


def test_the_prices_of_a_model_are_those_at_its_server(make_model: MakeModel) -> None:
    profile = PROFILES["openai"]
    assert make_model(profile, model="gpt-4.1").facts.prices
    assert make_model(profile, model="gpt-4.1", base_url="http://127.0.0.1:1").facts.prices == ()


def test_sound_that_a_call_asks_for_has_its_format(server: FakeOpenAI, make_model: MakeModel) -> None:
    line = {"choices": [{"delta": {"audio": {"data": "AAAA"}}, "finish_reason": "stop"}]}
    server.default = raw(f"data: {json.dumps(line)}\n\n".encode(), {"Content-Type": "text/event-stream"})
    model = make_model(audio_output={"voice": "v", "format": "mp3"})

    def sound_of(**config: Any) -> str:
        async def gather() -> str:
            events = [event async for event in model.astream(HELLO, config=config)]
            return next(str(event.item.value) for event in events if isinstance(event, MediaDelta))

        return sync.run(gather()).partition(";")[0]

    assert sound_of() == "data:audio/mpeg"
    assert sound_of(extra_body={"audio": {"format": "aac"}}) == "data:audio/aac"
    assert sound_of(extra_body={"audio": {}}) == "data:audio/wav"
    assert sound_of(extra_body={"audio": "odd"}) == "data:audio/wav"


def test_facts_and_prices_are_those_of_the_profile_that_a_configuration_chooses(
    clean_environment: pytest.MonkeyPatch,
) -> None:
    class Chosen(ChatCompletionsModel):
        backend = "acme"

        def server_profile(self) -> ServerProfile:
            return PROFILES["openai"] if self.config.api_key else PROFILES["vllm"]

    known = Chosen({"model": "gpt-4.1", "api_key": "k"}).facts
    assert (known.context_tokens, len(known.prices)) == (1_047_576, 1)
    unknown = Chosen({"model": "gpt-4.1"}).facts
    assert (unknown.context_tokens, unknown.prices) == (None, ())


def test_comments_are_borne_with_as_long_as_the_request_allows(make_model: MakeModel) -> None:
    model = make_model()
    reader = model.reader(Exchange(ChatRequest("m", ()), ChatServer("http://h"), Failures("acme"), 7.0))
    assert reader.events._patience_s == 7


def test_the_id_of_a_request_has_three_names() -> None:
    assert request_id_of({"apim-request-id": "a"}) == "a"
    assert request_id_of({"request-id": "r", "apim-request-id": "a"}) == "r"
    assert request_id_of({}) is None
