"""The backend over real connections: where it asks, as whom, and what it keeps open."""

from __future__ import annotations

import asyncio
import base64
import gc
import json
import socket
import warnings
from collections.abc import AsyncGenerator, Callable
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

import pytest

from jackfield import FnCallAgent, sync, tool
from jackfield.errors import (
    ConfigError,
    MissingSecretError,
    ModelAuthError,
    ModelConnectionError,
    ModelRequestError,
    UnsupportedInputError,
)
from jackfield.events import ModelEvent, TextDelta
from jackfield.messages import Message
from jackfield.plugins import PluginHost
from jackfield.settings import Settings
from jackfield_chat_completions import PROFILES
from jackfield_openai.backend import OpenAIChat
from jackfield_testkit.forks import output_of
from jackfield_testkit.server import FakeOpenAI, error, raw, text, tool_call

MakeModel = Callable[..., OpenAIChat]
HELLO = [Message("user", "hello")]
ANSWER = b'{"choices": [{"message": {"content": "hello"}, "finish_reason": "stop"}]}'


def ask(model: OpenAIChat) -> str:
    return sync.run(model.acomplete(HELLO)).get_content()


def stream(model: OpenAIChat) -> AsyncGenerator[ModelEvent, None]:
    return cast("AsyncGenerator[ModelEvent, None]", model.stream(model.make_request(HELLO)))


# --- where, and as whom ---


def test_the_first_address_given_is_asked(server: FakeOpenAI, make_model: MakeModel) -> None:
    server.reply(text("hello"))
    nowhere = "http://127.0.0.1:1/v1"
    assert ask(make_model(api_base=server.url, base_url=nowhere, model_server=nowhere)) == "hello"
    assert server.requests[0].path == "/v1/chat/completions"


def test_an_address_with_a_slash_at_its_end_is_the_same(server: FakeOpenAI, make_model: MakeModel) -> None:
    server.reply(text("hello"))
    ask(make_model(base_url=server.url + "/"))
    assert server.requests[0].path == "/v1/chat/completions"


def test_the_address_may_come_from_the_environment(
    server: FakeOpenAI, make_model: MakeModel, clean_environment: pytest.MonkeyPatch
) -> None:
    clean_environment.setenv("OPENAI_BASE_URL", server.url)
    server.reply(text("hello"))
    assert ask(make_model(base_url=None)) == "hello"


def test_an_address_without_a_scheme_is_refused(make_model: MakeModel) -> None:
    with pytest.raises(ConfigError, match="http://"):
        ask(make_model(base_url="localhost:8000/v1"))


def test_the_configured_key_wins_over_the_environments_and_a_server_of_ones_own_needs_none(
    server: FakeOpenAI, make_model: MakeModel, clean_environment: pytest.MonkeyPatch
) -> None:
    server.default = text("hello")
    ask(make_model())
    clean_environment.setenv("OPENAI_API_KEY", "sk-environment")
    ask(make_model())
    ask(make_model(api_key=" sk-configured\n"))
    sent = [request.headers["authorization"] for request in server.requests]
    assert sent == ["Bearer EMPTY", "Bearer sk-environment", "Bearer sk-configured"]


def test_without_an_address_a_key_is_needed_and_nothing_is_sent(make_model: MakeModel) -> None:
    with pytest.raises(MissingSecretError, match="OPENAI_API_KEY"):
        ask(make_model(base_url=None))


def test_a_key_that_no_header_can_carry_is_refused_without_being_shown(make_model: MakeModel) -> None:
    with pytest.raises(ConfigError) as caught:
        ask(make_model(api_key="sk-caf\u00e9"))
    assert "caf" not in str(caught.value)


def test_headers_say_who_asks_and_nothing_about_the_machine(server: FakeOpenAI, make_model: MakeModel) -> None:
    server.reply(text("hello"))
    model = make_model(
        organization="org-1", project="proj-1", generate_cfg={"extra_headers": {"X-Mine": "1", "User-Agent": "me"}}
    )
    ask(model)
    headers = server.requests[0].headers
    assert (headers["openai-organization"], headers["openai-project"]) == ("org-1", "proj-1")
    assert (headers["x-mine"], headers["user-agent"]) == ("1", "me")
    assert [name for name in headers if name.startswith("x-stainless")] == []


def test_a_header_that_cannot_be_sent_is_an_error_that_does_not_show_it(make_model: MakeModel) -> None:
    with pytest.raises(ModelRequestError) as caught:
        ask(make_model(generate_cfg={"extra_headers": {"X-Token": "secret\nvalue"}}))
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_a_key_that_the_server_repeats_is_not_shown(server: FakeOpenAI, make_model: MakeModel) -> None:
    server.reply(error(401, "Incorrect API key provided: sk-do-not-show"))
    with pytest.raises(ModelAuthError) as caught:
        ask(make_model(api_key="sk-do-not-show"))
    assert "sk-do-not-show" not in str(caught.value) + repr(caught.value)


# --- servers by name ---


def named(**config: Any) -> OpenAIChat:
    return OpenAIChat({"model": "m", **config}, host=PluginHost(Settings()))


@pytest.mark.parametrize("setting", ["server", "model_server"])
def test_a_server_is_named_in_a_word(clean_environment: pytest.MonkeyPatch, setting: str) -> None:
    clean_environment.setenv("DASHSCOPE_API_KEY", "sk-dash")
    server = named(**{setting: "dashscope"}).server()
    assert server.url == "https://dashscope.aliyuncs.com/compatible-mode/v1/chat/completions"
    assert server.headers["authorization"] == "Bearer sk-dash"
    assert (server.dialect.continuation, server.dialect.sound_as_uri) == ("partial", True)


@pytest.mark.parametrize("name", [name for name in PROFILES if name != "openai"])
def test_nothing_of_openai_reaches_another_server_that_is_named(
    clean_environment: pytest.MonkeyPatch, name: str
) -> None:
    for variable in ("OPENAI_API_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"):
        clean_environment.setenv(variable, "of-openai")
    clean_environment.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
    variable = PROFILES[name].key
    if variable:
        with pytest.raises(MissingSecretError, match=variable):
            named(server=name).server()
        clean_environment.setenv(variable, "its-own")
    server = named(server=name).server()
    assert server.url == PROFILES[name].url + "/chat/completions"
    assert "of-openai" not in repr(dict(server.headers)) + server.key.value
    assert server.headers.get("authorization") == ("Bearer its-own" if variable else None)


def test_an_address_wins_over_that_of_the_kind_of_server(server: FakeOpenAI, make_model: MakeModel) -> None:
    server.reply(text("hello"))
    history = [*HELLO, Message("assistant", "so")]
    sync.run(make_model(server="vllm").acomplete(history))
    assert server.requests[0].json["continue_final_message"] is True


def test_a_word_that_names_no_server_is_refused_with_those_that_do(clean_environment: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="vllm"):
        named(model_server="10.0.0.1:8000")


def test_a_caller_of_the_chain_is_told_which_server_is_asked(clean_environment: pytest.MonkeyPatch) -> None:
    assert named(server="ollama").make_request(HELLO).server == "openai@localhost:11434"


@pytest.mark.parametrize(
    ("address", "key"),
    [
        ("https://api.openai.com", "max_completion_tokens"),
        ("https://API.OpenAI.com:443/v1", "max_completion_tokens"),
        ("https://api.openai.com.example/v1", "max_tokens"),
        ("https://api.openai.example/api.openai.com/v1", "max_tokens"),
        ("https://notopenai.com/v1", "max_tokens"),
        ("https://mirror.of.api.openai.com/v1", "max_tokens"),
    ],
)
def test_the_host_alone_says_that_a_server_is_openai(
    address: str, key: str, clean_environment: pytest.MonkeyPatch
) -> None:
    model = named(base_url=address, api_key="k", model="gpt-4.1")
    assert model.server().dialect.max_tokens_key == key
    assert (model.facts.context_tokens is None) == (key == "max_tokens")


@pytest.mark.parametrize("config", [{}, {"server": "openai"}, {"base_url": "https://api.openai.com/v1/"}])
def test_openai_itself_is_spoken_to_in_its_own_dialect(
    clean_environment: pytest.MonkeyPatch, config: dict[str, Any]
) -> None:
    with pytest.raises(MissingSecretError, match="OPENAI_API_KEY"):
        named(**config).server()
    server = named(**config, api_key="k").server()
    assert server.url == "https://api.openai.com/v1/chat/completions"
    assert (server.dialect.max_tokens_key, server.dialect.send_reasoning) == ("max_completion_tokens", False)
    assert named(**config, api_key="k", send_reasoning=True).server().dialect.send_reasoning


# --- what is asked ---


@pytest.mark.parametrize(
    ("config", "context"),
    [
        ({"base_url": None}, 1_047_576),
        ({"base_url": None, "model_server": "openai"}, 1_047_576),
        ({"base_url": "https://api.openai.com/v1"}, 1_047_576),
        ({}, None),  # another server may give the name to anything
        ({"server": "vllm"}, None),
    ],
)
def test_the_models_of_openai_are_known_there_only(
    make_model: MakeModel, config: dict[str, Any], context: int | None
) -> None:
    assert make_model(model="gpt-4.1", **config).facts.context_tokens == context


@pytest.mark.parametrize(("url", "is_known"), [("https://api.openai.com/v1", True), ("http://else.example/v1", False)])
def test_the_models_of_the_server_that_the_environment_names_are_known_only_if_it_is_openai(
    url: str, is_known: bool, clean_environment: pytest.MonkeyPatch
) -> None:
    clean_environment.setenv("OPENAI_BASE_URL", url)
    facts = OpenAIChat({"model": "gpt-4.1", "api_key": "k"}).facts
    assert (facts.context_tokens is not None, bool(facts.prices)) == (is_known, is_known)


@pytest.mark.parametrize("organization", [None, "", "org-1"])
@pytest.mark.parametrize("project", [None, "", "proj-1"])
def test_the_environment_names_only_those_payers_that_the_configuration_does_not(
    clean_environment: pytest.MonkeyPatch, organization: str | None, project: str | None
) -> None:
    clean_environment.setenv("OPENAI_ORG_ID", "org-env")
    clean_environment.setenv("OPENAI_PROJECT_ID", "proj-env")
    clean_environment.setenv("OPENAI_API_KEY", "sk-of-the-environment")
    headers = named(organization=organization, project=project).server().headers
    wanted = (
        "org-env" if organization is None else organization or None,
        "proj-env" if project is None else project or None,
    )
    assert (headers.get("openai-organization") or None, headers.get("openai-project") or None) == wanted


def test_the_kind_of_a_server_wins_over_the_older_setting(clean_environment: pytest.MonkeyPatch) -> None:
    server = named(server="deepseek", model_server="dashscope", api_key="k").server()
    assert server.url.startswith("https://api.deepseek.com/")


def test_a_named_server_has_its_own_models(make_model: MakeModel) -> None:
    def known(model: str) -> bool:
        facts = make_model(model=model, base_url=None, server="deepseek").facts
        return bool(facts.context_tokens or facts.prices)

    assert (known("deepseek-chat"), known("gpt-4.1")) == (True, False)


def test_facts_are_as_configured(make_model: MakeModel) -> None:
    facts = make_model(native_tools=False, images=False, audio=True, context_tokens=4096).facts
    assert (facts.native_tools, facts.images, facts.audio, facts.context_tokens) == (False, False, True, 4096)


@pytest.mark.parametrize(("known", "way"), [(True, "native"), (False, "tool")])
def test_data_from_an_agent_with_tools_is_more_than_a_prompt(
    server: FakeOpenAI, make_model: MakeModel, known: bool, way: str
) -> None:
    @tool
    def look(at: str) -> str:
        """Look at something."""
        return f"seen: {at}"

    data = '{"legs": 4}'
    last = text(data) if known else tool_call("answer", data)
    server.reply(tool_call("look", '{"at": "oak"}'), last)
    model = make_model(model="gpt-4.1-mini", **({"server": "openai"} if known else {}))
    schema = {"type": "object", "properties": {"legs": {"type": "integer"}}, "required": ["legs"]}
    result = FnCallAgent([look], model).ask("q", output=schema)
    assert (result.output, result.way) == ({"legs": 4}, way)
    body = server.requests[0].json
    assert [function["function"]["name"] for function in body["tools"]] == ["look", "answer"][: 1 if known else 2]
    assert ("response_format" in body) is known
    assert body.get("tool_choice", "auto") == ("auto" if known else "required")


def test_a_missing_image_is_refused_before_anything_is_sent(
    server: FakeOpenAI, make_model: MakeModel, tmp_path: Path
) -> None:
    with pytest.raises(UnsupportedInputError):
        sync.run(make_model().acomplete([Message("user", [{"image": str(tmp_path / "gone.png")}])]))
    assert server.requests == []


@pytest.mark.parametrize("kind", ["audio", "video"])
def test_what_only_the_user_can_know_of_a_model_is_asked_for(make_model: MakeModel, kind: str) -> None:
    with pytest.raises(UnsupportedInputError, match=f"if this model does, set {kind}: true in its configuration"):
        make_model().chat([Message("user", [{kind: "http://x/y"}])], stream=False)


def test_a_local_image_is_sent_inside_the_request(server: FakeOpenAI, make_model: MakeModel, tmp_path: Path) -> None:
    server.reply(text("a dot"))
    path = tmp_path / "dot"
    path.write_bytes(b"\x89PNG\r\n\x1a\n")
    sync.run(make_model().acomplete([Message("user", [{"image": f"file://{path}"}])]))
    url = server.requests[0].json["messages"][0]["content"][0]["image_url"]["url"]
    assert url == "data:image/png;base64," + base64.b64encode(path.read_bytes()).decode()


# --- answers ---


def test_the_events_so_far_come_while_the_server_is_still_writing(server: FakeOpenAI, make_model: MakeModel) -> None:
    server.reply(text(["first", "second"]).stall_after(1))

    async def first() -> ModelEvent:
        events = stream(make_model(generate_cfg={"request_timeout": 30}))
        try:
            return await anext(events)
        finally:
            await events.aclose()

    assert sync.run(first()) == TextDelta("first")


def test_a_closed_port_says_which_address(make_model: MakeModel) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(ModelConnectionError, match=f"127.0.0.1:{port}"):
        ask(make_model(base_url=f"http://127.0.0.1:{port}/v1"))


def test_a_page_in_place_of_an_answer_says_to_check_the_address(server: FakeOpenAI, make_model: MakeModel) -> None:
    server.reply(raw(b"<html>Welcome</html>", {"Content-Type": "text/html"}))
    with pytest.raises(Exception, match="base_url"):
        ask(make_model())


# --- connections ---


def test_one_connection_serves_one_call_after_the_other(server: FakeOpenAI, make_model: MakeModel) -> None:
    server.default = text("hello")
    model = make_model()
    for _ in range(5):
        ask(model)
    assert server.connections == 1


def test_leaving_a_stream_closes_its_connection(server: FakeOpenAI, make_model: MakeModel) -> None:
    server.default = text(["a", "b"]).stall_after(1)
    model = make_model()

    async def leave() -> None:
        events = stream(model)
        await anext(events)
        await events.aclose()

    sync.run(leave())
    assert server.wait_until(lambda s: s.open_connections == 0)


def test_a_server_that_ignores_stop_words_is_left_at_them(server: FakeOpenAI, make_model: MakeModel) -> None:
    # After the first pieces it says nothing more, and would wait for ever.
    server.reply(text(["Thought: look.\nObs", "ervation: it ", "rains"]).stall_after(3))
    model = make_model(generate_cfg={"stop": ["Observation:"]})
    assert model.quick_chat("Is there something?") == "Thought: look.\n"
    assert server.requests[0].json["stop"] == ["Observation:"]
    assert server.wait_until(lambda server: server.disconnects == 1)


def test_a_model_works_on_one_event_loop_after_the_other_and_leaves_nothing_open(
    server: FakeOpenAI, make_model: MakeModel
) -> None:
    server.default = text("hello")
    model = make_model()
    gc.collect()  # what earlier tests have left is not this one's
    with warnings.catch_warnings():
        warnings.simplefilter("error", ResourceWarning)
        for _ in range(3):
            assert asyncio.run(model.acomplete(HELLO)).get_content() == "hello"
            assert server.wait_until(lambda s: s.open_connections == 0)
        gc.collect()


def test_a_closed_model_has_no_connections_and_can_be_used_again(server: FakeOpenAI, make_model: MakeModel) -> None:
    server.default = text("hello")
    model = make_model()
    ask(model)
    sync.run(model.aclose())
    sync.run(model.aclose())
    assert server.wait_until(lambda s: s.open_connections == 0)
    assert ask(model) == "hello"


def test_a_forgotten_model_leaves_no_connection_open(server: FakeOpenAI, clean_environment: object) -> None:
    server.default = text("hello")
    model = OpenAIChat({"model": "m", "base_url": server.url}, host=PluginHost(Settings()))
    ask(model)
    del model
    gc.collect()
    assert server.wait_until(lambda s: s.open_connections == 0)


# --- proxies ---


def test_a_proxy_of_the_environment_is_used(
    server: FakeOpenAI, make_model: MakeModel, clean_environment: pytest.MonkeyPatch
) -> None:
    clean_environment.setenv("HTTP_PROXY", server.origin.replace("http://", "http://me:pass@"))
    server.reply(text("hello"))
    assert ask(make_model(base_url="http://model.invalid/v1")) == "hello"
    request = server.requests[0]
    assert request.path == "http://model.invalid/v1/chat/completions"
    assert request.headers["host"] == "model.invalid"
    assert request.headers["proxy-authorization"] == "Basic " + base64.b64encode(b"me:pass").decode()


# --- cost ---


def test_no_sdk_is_imported_before_the_first_call() -> None:
    code = (
        "import sys; from jackfield_openai.backend import OpenAIChat; OpenAIChat({'model': 'm'});"
        "print([name for name in ('openai', 'httpx2', 'httpcore2', 'anyio') if name in sys.modules])"
    )
    assert output_of(code) == "[]"


# --- prices ---


@pytest.mark.parametrize(
    ("config", "price"),
    [
        ({}, "0.4"),
        ({"server": "openai"}, "0.4"),
        ({"base_url": "https://api.openai.com/v1"}, "0.4"),
        ({"base_url": "http://127.0.0.1:1/v1"}, None),
        ({"server": "ollama"}, None),
        ({"model": "deepseek-chat", "server": "deepseek"}, "0.56"),
        ({"model": "qwen3.8-max", "server": "dashscope"}, "12"),
        ({"model": "qwen3.8-max", "base_url": "https://dashscope-intl.aliyuncs.com/compatible-mode/v1"}, None),
    ],
)
def test_the_server_that_is_asked_decides_the_price(
    clean_environment: pytest.MonkeyPatch, config: dict[str, Any], price: str | None
) -> None:
    prices = OpenAIChat({"model": "gpt-4.1-mini", **config}).facts.prices
    assert [row.input for row in prices][:1] == ([] if price is None else [Decimal(price)])


def test_a_run_has_its_cost_without_a_processor(
    server: FakeOpenAI, make_model: MakeModel, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    server.reply(text("hello", usage={"prompt_tokens": 1000, "completion_tokens": 10}))
    assert FnCallAgent([], make_model(model="m-1")).ask("Hi").cost is None
    row = {"models": ["m-*"], "currency": "USD", "valid_from": "2026-01-01", "input": 1, "output": 100}
    (tmp_path / "jackfield").mkdir(exist_ok=True)
    (tmp_path / "jackfield/prices.json").write_text(json.dumps([row]))
    server.reply(text("hello", usage={"prompt_tokens": 1000, "completion_tokens": 10}))
    result = FnCallAgent([], make_model(model="m-1")).ask("Hi")
    assert (result.cost, result.usage.currency) == (Decimal("0.002"), "USD")
    assert "cost=0.002 USD" in repr(result)
