"""What is asked of Anthropic, and what comes back, beside the contract of all backends."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from jackfield import sync
from jackfield.errors import (
    ConfigError,
    ContextLengthError,
    JackfieldError,
    MissingSecretError,
    ModelAuthError,
    ModelOverloadedError,
    ModelServiceError,
    UnsupportedInputError,
)
from jackfield.messages import ContentItem, FunctionCall, Message, ModelResponse, Origin
from jackfield_anthropic.backend import AnthropicChat
from jackfield_testkit import replies
from jackfield_testkit.anthropic import SIGNATURE
from jackfield_testkit.server import FakeOpenAI

PNG = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNoAAAAggCBd81ytgAAAABJRU5ErkJggg==")
TIME = {"name": "get_time", "description": "The time.", "parameters": {"type": "object", "properties": {}}}
HELLO = Message("user", "hello")


def ask(
    model: AnthropicChat, messages: Sequence[Message] = (HELLO,), functions: Sequence[Any] = (), **config: Any
) -> ModelResponse:
    return sync.run(model.acomplete(list(messages), functions, config=config))


def native(server: FakeOpenAI) -> dict[str, Any]:
    body: dict[str, Any] = server.requests[-1].native
    return body


def raw_answer(*blocks: Mapping[str, Any], stop_reason: str = "end_turn", **more: Any) -> replies.Reply:
    answer = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": blocks}
    return replies.raw(json.dumps({**answer, "stop_reason": stop_reason, **more}).encode())


# --- where, and with what ---


@pytest.mark.parametrize("end", ["", "/", "/v1", "/v1/"])
def test_an_address_may_have_the_version_or_not(server: FakeOpenAI, make_model: Any, end: str) -> None:
    server.reply(replies.text("ok"))
    ask(make_model(base_url=server.origin + end))
    request = server.requests[-1]
    assert request.native_path == "/v1/messages"
    assert request.native_headers["x-api-key"] == "sk-ant-test"
    assert request.native_headers["anthropic-version"] == "2023-06-01"
    assert "authorization" not in request.native_headers


@pytest.mark.parametrize(
    ("base_url", "path"),
    [
        ("http://h/v1", "/v1/messages"),
        ("http://h/v1/proxy", "/v1/proxy/v1/messages"),
        ("http://h/v1beta", "/v1beta/v1/messages"),
    ],
)
def test_only_an_address_that_ends_in_the_version_has_it(make_model: Any, base_url: str, path: str) -> None:
    assert make_model(base_url=base_url).server().url == f"http://h{path}"


def test_a_token_is_a_bearer_and_takes_the_place_of_a_key(
    server: FakeOpenAI, make_model: Any, clean_environment: pytest.MonkeyPatch
) -> None:
    server.default = replies.text("ok")
    clean_environment.setenv("ANTHROPIC_API_KEY", "sk-environment")
    clean_environment.setenv("ANTHROPIC_AUTH_TOKEN", "token-environment")
    sent = []
    for config in ({"api_key": None}, {"api_key": None, "auth_token": "token-mine"}, {"api_key": "sk-mine"}):
        ask(make_model(**config))
        headers = server.requests[-1].native_headers
        sent.append((headers.get("authorization"), headers.get("x-api-key")))
    assert sent == [("Bearer token-environment", None), ("Bearer token-mine", None), (None, "sk-mine")]


def test_a_key_and_a_token_together_are_refused(make_model: Any) -> None:
    with pytest.raises(ConfigError, match="api_key and auth_token are both set"):
        ask(make_model(auth_token="token"))


def test_a_token_that_the_server_repeats_is_not_shown(server: FakeOpenAI, make_model: Any) -> None:
    server.reply(replies.error(401, "bad token token-do-not-show"))
    model = make_model(api_key=None, auth_token="token-do-not-show")
    with pytest.raises(ModelAuthError) as caught:
        ask(model)
    assert "do-not-show" not in str(caught.value) + repr(caught.value) + repr(model.config)


def test_beta_features_are_one_header(server: FakeOpenAI, make_model: Any) -> None:
    server.reply(replies.text("ok"))
    ask(make_model(beta=["one-2025", "two-2026"]))
    assert server.requests[-1].native_headers["anthropic-beta"] == "one-2025,two-2026"


def test_anthropic_itself_needs_a_key_and_a_server_of_ones_own_does_not(server: FakeOpenAI, make_model: Any) -> None:
    server.reply(replies.text("ok"))
    assert ask(make_model(api_key=None)).get_content() == "ok"
    assert "x-api-key" not in server.requests[-1].native_headers
    with pytest.raises(MissingSecretError, match="ANTHROPIC_API_KEY"):
        ask(make_model(api_key=None, base_url=None))


def test_a_header_of_ones_own_may_stand_for_the_key_and_is_as_secret(server: FakeOpenAI, make_model: Any) -> None:
    server.reply(replies.error(401, "what is sk-of-the-gateway?"))
    with pytest.raises(ModelAuthError) as caught:
        ask(make_model(api_key=None), extra_headers={"X-Api-Key": "sk-of-the-gateway"})
    assert server.requests[-1].native_headers["x-api-key"] == "sk-of-the-gateway"
    assert "gateway" not in str(caught.value)


@pytest.mark.parametrize("end", ["", "/v1"])
def test_the_models_are_listed_at_the_address_of_the_server(server: FakeOpenAI, make_model: Any, end: str) -> None:
    assert sync.run(make_model(base_url=server.origin + end).alist_models()) == ["test-model"]
    assert [request.native_path.partition("?")[0] for request in server.listings] == ["/v1/models"]


# --- options ---


def test_a_longest_answer_is_always_given_and_the_callers_wins(server: FakeOpenAI, make_model: Any) -> None:
    server.default = replies.text("ok")
    ask(make_model())
    assert native(server)["max_tokens"] == 8192
    ask(make_model(default_max_tokens=99))
    assert native(server)["max_tokens"] == 99
    ask(make_model(default_max_tokens=99), max_tokens=5)
    assert native(server)["max_tokens"] == 5


@pytest.mark.parametrize(
    ("model", "config", "limit"),
    [
        ("test-model", {"thinking_budget": 2000}, 10_192),
        ("test-model", {"thinking_budget": 2000, "default_max_tokens": 500}, 2500),
        ("claude-3-opus-20240229", {}, 4096),
        ("claude-opus-4-1", {"thinking_budget": 30_000}, 32_000),
        ("claude-opus-4-8", {}, 8192),
        ("claude-opus-4-8", {"thinking": "adaptive"}, 32_000),
        ("claude-opus-5", {}, 32_000),
        ("claude-opus-5", {"thinking": "disabled"}, 8192),
    ],
)
def test_the_default_limit_leaves_room_for_the_reasoning_and_fits_the_model(
    server: FakeOpenAI, make_model: Any, model: str, config: dict[str, Any], limit: int
) -> None:
    server.reply(replies.text("ok"))
    ask(make_model(model=model, **config))
    assert native(server)["max_tokens"] == limit


@pytest.mark.parametrize(
    ("model", "config", "limit"),
    [("test-model", {"thinking_budget": 2000}, 2000), ("claude-opus-4-1", {"thinking_budget": 32_000}, None)],
)
def test_a_limit_that_the_reasoning_fills_is_an_error_with_both_numbers(
    server: FakeOpenAI, make_model: Any, model: str, config: dict[str, Any], limit: int | None
) -> None:
    with pytest.raises(UnsupportedInputError, match=rf"max_tokens \({limit or 32_000}\).*thinking_budget \(\d+\)"):
        ask(make_model(model=model, **config), max_tokens=limit)
    assert server.requests == []
    server.reply(replies.text("ok"))
    ask(make_model(thinking_budget=2000, beta=["interleaved-thinking-2025-05-14"]), max_tokens=2001)


@pytest.mark.parametrize(
    ("model", "config", "hint"),
    [
        ("claude-opus-4-8", {"thinking_budget": 2000}, "set thinking to adaptive or disabled"),
        ("claude-opus-5-5", {"thinking": "disabled"}, "set thinking to adaptive"),
        ("claude-sonnet-5-5", {"thinking": "disabled"}, "adaptive or between_tools"),
        ("claude-sonnet-4-5", {"thinking": "adaptive"}, "enabled or disabled"),
        ("claude-3-opus-20240229", {"thinking_budget": 2000}, "remove thinking and thinking_budget"),
    ],
)
def test_thinking_that_a_model_is_known_not_to_take_is_refused_with_what_it_takes(
    make_model: Any, model: str, config: dict[str, Any], hint: str
) -> None:
    with pytest.raises(ConfigError, match=hint):
        make_model(model=model, **config)


def test_a_model_that_cannot_think_may_be_told_not_to(make_model: Any) -> None:
    assert make_model(model="claude-3-opus-20240229", thinking="disabled").facts.forced_calls
    assert make_model(model="claude-opus-4-6", thinking="adaptive").facts.forced_calls
    assert not make_model(model="claude-opus-4-6", thinking="enabled").facts.forced_calls


@pytest.mark.parametrize(
    ("config", "options", "problem"),
    [
        ({"model": "claude-opus-5"}, {"temperature": 0}, "claude-opus-5 does not support temperature"),
        ({"thinking_budget": 2000}, {"temperature": 0.5, "top_k": 3}, "temperature, top_k cannot be set while"),
        (
            {"thinking_budget": 2000},
            {"function_choice": "required"},
            "test-model cannot be forced .* while thinking",
        ),
        ({"model": "claude-opus-5-5"}, {"function_choice": "get_time"}, "cannot be forced to call a function, but"),
    ],
)
def test_an_option_that_the_model_does_not_take_is_refused_by_name(
    server: FakeOpenAI, make_model: Any, config: dict[str, Any], options: dict[str, Any], problem: str
) -> None:
    with pytest.raises(UnsupportedInputError, match=problem):
        ask(make_model(**config), [HELLO], [TIME], **options)
    assert server.requests == []


@pytest.mark.parametrize(
    ("config", "way"),
    [
        ({"model": "claude-opus-5-5"}, "native"),
        ({"model": "claude-sonnet-4-5", "thinking_budget": 2000}, "native"),
        ({"model": "claude-opus-4-1"}, "tool"),
        ({"model": "claude-opus-4-1", "thinking_budget": 2000}, "prompt"),
        ({"model": "test-model"}, "tool"),
        ({"model": "test-model", "thinking_budget": 2000}, "prompt"),
        ({"model": "claude-opus-5-5", "json_schema": False}, "prompt"),
    ],
)
def test_data_is_asked_for_in_a_way_that_the_server_accepts(
    server: FakeOpenAI, make_model: Any, config: dict[str, Any], way: str
) -> None:
    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    arguments = '{"city": "Bonn"}'
    server.reply(replies.tool_call("answer", arguments) if way == "tool" else replies.text(arguments))
    assert make_model(**config).parse("Where?", schema).value == {"city": "Bonn"}
    body = native(server)
    assert ("output_config" in body, "tool_choice" in body) == (way == "native", way == "tool")


@pytest.mark.parametrize(
    ("config", "continues"),
    [
        ({}, True),
        ({"thinking": "disabled"}, True),
        ({"thinking_budget": 2000}, False),
        ({"model": "claude-opus-5"}, False),
    ],
)
def test_an_answer_at_the_end_is_continued_or_asked_to_be(
    server: FakeOpenAI, make_model: Any, config: dict[str, Any], continues: bool
) -> None:
    server.reply(replies.text(" fox"))
    ask(make_model(**config), [HELLO, Message("assistant", "The brown")])
    last = native(server)["messages"][-1]
    assert last["role"] == ("assistant" if continues else "user")
    assert last["content"][0]["text"].startswith("The brown" if continues else "Continue")


@pytest.mark.parametrize(("lang", "texts"), [("en", ["(The user", "Continue"]), ("zh", ["（用户", "请从"])])
def test_texts_that_are_added_to_a_history_are_in_the_language_of_the_call(
    server: FakeOpenAI, make_model: Any, lang: str, texts: list[str]
) -> None:
    server.reply(replies.text(" fox"))
    ask(make_model(model="claude-opus-5"), [Message("assistant", "The brown")], lang=lang)
    added = [message["content"][0]["text"] for message in native(server)["messages"] if message["role"] == "user"]
    assert [text[: len(start)] for text, start in zip(added, texts, strict=True)] == texts


def test_a_history_with_calls_of_another_model_is_sent_without_thinking(server: FakeOpenAI, make_model: Any) -> None:
    server.default = replies.text("ok")
    call = Message("assistant", "", function_call=FunctionCall("get_time", "{}"))
    result = Message("function", "noon", name="get_time")
    model = make_model(thinking_budget=2000)
    ask(model, [HELLO, call, result], [TIME])
    assert "thinking" not in native(server)
    ask(model, [HELLO, call, result, Message("assistant", "It is noon."), HELLO], [TIME])
    assert "thinking" in native(server)


@pytest.mark.parametrize(
    ("config", "thinking"),
    [
        ({}, None),
        ({"thinking_budget": 2000}, {"type": "enabled", "budget_tokens": 2000}),
        ({"thinking": "enabled"}, {"type": "enabled", "budget_tokens": 1024}),
        ({"thinking": "adaptive"}, {"type": "adaptive"}),
        ({"thinking": "disabled", "thinking_budget": 2000}, {"type": "disabled"}),
    ],
)
def test_thinking_is_asked_for_as_configured(
    server: FakeOpenAI, make_model: Any, config: dict[str, Any], thinking: dict[str, Any] | None
) -> None:
    server.reply(replies.text("ok"))
    ask(make_model(**config))
    assert native(server).get("thinking") == thinking


def test_a_schema_and_an_effort_are_sent_in_the_protocols_words(server: FakeOpenAI, make_model: Any) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "additionalProperties": False}
    server.reply(replies.text("ok"))
    wanted = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    ask(make_model(json_schema=True), response_format=wanted, reasoning_effort="low")
    assert native(server)["output_config"] == {"format": {"type": "json_schema", "schema": schema}, "effort": "low"}


def test_a_schema_is_enforced_by_a_model_that_is_not_known_to_refuse_it(server: FakeOpenAI, make_model: Any) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "additionalProperties": False}
    server.reply(replies.text("ok"))
    ask(make_model(), response_format={"type": "json_schema", "json_schema": {"name": "x", "schema": schema}})
    assert native(server)["output_config"] == {"format": {"type": "json_schema", "schema": schema}}


def test_what_the_protocol_does_not_have_is_refused_by_name(server: FakeOpenAI, make_model: Any) -> None:
    with pytest.raises(UnsupportedInputError, match="repetition_penalty"):
        ask(make_model(), repetition_penalty=1.1)
    assert server.requests == []


@pytest.mark.parametrize(
    ("parallel", "choice", "wire"),
    [
        (None, "auto", None),
        (False, "auto", {"type": "auto", "disable_parallel_tool_use": True}),
        (True, "required", {"type": "any", "disable_parallel_tool_use": False}),
        (False, "none", {"type": "none"}),
        (None, "get_time", {"type": "tool", "name": "get_time"}),
    ],
)
def test_the_choice_of_tools_is_one_object(
    server: FakeOpenAI, make_model: Any, parallel: bool | None, choice: str, wire: dict[str, Any] | None
) -> None:
    server.reply(replies.text("ok"))
    ask(make_model(), [HELLO], [TIME], function_choice=choice, parallel_function_calls=parallel)
    assert native(server).get("tool_choice") == wire
    expected = {"name": "get_time", "description": "The time.", "input_schema": TIME["parameters"]}
    assert native(server)["tools"] == [expected]


def test_the_cache_is_marked_at_the_end_of_what_is_to_be_kept(server: FakeOpenAI, make_model: Any) -> None:
    server.default = replies.text("ok")
    mark = {"cache_control": {"type": "ephemeral"}}
    history = [Message("system", "be brief"), Message("user", "a")]
    ask(make_model(cache_control="system"), history, [TIME])
    assert native(server)["system"] == [{"type": "text", "text": "be brief", **mark}]
    assert native(server)["messages"][-1]["content"] == [{"type": "text", "text": "a"}]
    ask(make_model(cache_control="history"), history, [TIME])
    assert native(server)["messages"][-1]["content"] == [{"type": "text", "text": "a", **mark}]
    ask(make_model(cache_control="history", cache_ttl="1h"), history)
    assert native(server)["system"][0]["cache_control"] == {"type": "ephemeral", "ttl": "1h"}
    ask(make_model(cache_control="system"), [HELLO], [TIME])
    assert native(server)["tools"][-1]["cache_control"] == mark["cache_control"]


# --- the history ---


def test_roles_alternate_and_no_text_is_empty(server: FakeOpenAI, make_model: Any) -> None:
    server.reply(replies.text("ok"))
    said = [("user", "a"), ("user", "b"), ("assistant", ""), ("user", ""), ("user", "c"), ("assistant", "d  ")]
    ask(make_model(), [Message(role, text) for role, text in said])
    told = [
        (message["role"], [block["text"] for block in message["content"]]) for message in native(server)["messages"]
    ]
    assert told == [("user", ["a", "b", "c"]), ("assistant", ["d"])]


def test_results_stand_first_in_the_users_message_with_their_images(
    server: FakeOpenAI, make_model: Any, tmp_path: Path
) -> None:
    server.reply(replies.text("ok"))
    picture = "data:image/png;base64," + base64.b64encode(PNG).decode()
    call = Message("assistant", "look", function_call=FunctionCall("get_time", "{}"), extra={"function_id": "c1"})
    result = Message("function", [ContentItem(text="noon"), ContentItem(image=picture)], name="get_time")
    ask(make_model(), [HELLO, call, result, Message("user", "and?")], [TIME])
    image = {"type": "base64", "media_type": "image/png", "data": base64.b64encode(PNG).decode()}
    assert native(server)["messages"][1:] == [
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "look"},
                {"type": "tool_use", "id": "c1", "name": "get_time", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "c1",
                    "content": [{"type": "text", "text": "noon"}, {"type": "image", "source": image}],
                },
                {"type": "text", "text": "and?"},
            ],
        },
    ]


def test_pdfs_are_documents_by_address_or_with_their_content(
    server: FakeOpenAI, make_model: Any, tmp_path: Path
) -> None:
    (tmp_path / "a.pdf").write_bytes(b"%PDF-1.7")
    uri = "data:application/pdf;base64," + base64.b64encode(b"%PDF-1.7").decode()
    items = [ContentItem(file=address) for address in (str(tmp_path / "a.pdf"), uri, "https://example.org/a.pdf")]
    server.reply(replies.text("ok"))
    ask(make_model(), [Message("user", items)])
    content = {"type": "base64", "media_type": "application/pdf", "data": base64.b64encode(b"%PDF-1.7").decode()}
    assert native(server)["messages"][0]["content"] == [
        {"type": "document", "source": content, "title": "a.pdf"},
        {"type": "document", "source": content},
        {"type": "document", "source": {"type": "url", "url": "https://example.org/a.pdf"}},
    ]


def test_images_are_sent_by_address_or_as_they_are(server: FakeOpenAI, make_model: Any, tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(PNG)
    server.reply(replies.text("ok"))
    items = [ContentItem(image="https://example.org/a.png"), ContentItem(image=str(tmp_path / "a.png"))]
    ask(make_model(), [Message("user", items)])
    sources = [block["source"] for block in native(server)["messages"][0]["content"]]
    assert sources[0] == {"type": "url", "url": "https://example.org/a.png"}
    assert (sources[1]["media_type"], base64.b64decode(sources[1]["data"])) == ("image/png", PNG)


@pytest.mark.parametrize(("size_bytes", "is_sent"), [(3_750_000, True), (3_750_001, False)])
def test_an_image_may_have_five_million_characters_in_base64(
    server: FakeOpenAI, make_model: Any, tmp_path: Path, size_bytes: int, is_sent: bool
) -> None:
    server.reply(replies.text("ok"))
    path = tmp_path / "a.png"
    path.write_bytes(PNG.ljust(size_bytes, b"\0"))
    question = Message("user", [ContentItem(image=str(path)), ContentItem(text="what is it?")])
    if is_sent:
        ask(make_model(), [question])
        assert len(native(server)["messages"][0]["content"][0]["source"]["data"]) == 5_000_000
        return
    with pytest.raises(UnsupportedInputError, match=r"a\.png"):
        ask(make_model(), [question])
    assert server.requests == []


def test_calls_of_the_history_are_declared_where_no_tools_are(server: FakeOpenAI, make_model: Any) -> None:
    server.reply(replies.text("ok"))
    call = Message("assistant", "", function_call=FunctionCall("get_time", "{}"))
    ask(make_model(), [HELLO, call, Message("function", "noon", name="get_time"), HELLO])
    assert native(server)["tools"] == [{"name": "get_time", "input_schema": {"type": "object"}}]
    assert native(server)["tool_choice"] == {"type": "none"}


# --- thoughts ---


def thought_and_call(server: FakeOpenAI, model: AnthropicChat) -> list[Message]:
    """An answer with a thought and a call, which has gone through a file."""
    thought = {"choices": [{"index": 0, "delta": {"reasoning_content": "先想 🤔"}}]}
    call = {"index": 0, "id": "c1", "function": {"name": "get_time", "arguments": "{}"}}
    end = {"choices": [{"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": "tool_calls"}]}
    server.reply(replies.chunks([thought, end]))
    said = ask(model, [HELLO], [TIME]).messages
    assert [m.reasoning_content for m in said if m.reasoning_content] == ["先想 🤔"]
    return [Message.model_validate_json(message.model_dump_json()) for message in said]


def test_a_thought_goes_back_with_its_signature(server: FakeOpenAI, make_model: Any) -> None:
    model = make_model(thinking_budget=1024)
    answer = thought_and_call(server, model)
    server.reply(replies.text("ok"))
    ask(model, [HELLO, *answer, Message("function", "noon", name="get_time")], [TIME])
    assert native(server)["messages"][1]["content"] == [
        {"type": "thinking", "thinking": "先想 🤔", "signature": SIGNATURE},
        {"type": "tool_use", "id": "c1", "name": "get_time", "input": {}},
    ]


def test_a_thought_in_pieces_goes_back_without_half_a_character_also_from_a_file(
    server: FakeOpenAI, make_model: Any
) -> None:
    pieces = ["\ud83e", "\udd14 and ", "\ud83e", "so"]
    deltas = [{"type": "thinking_delta", "thinking": piece} for piece in pieces]
    deltas.append({"type": "signature_delta", "signature": SIGNATURE})
    thought = {"type": "thinking", "thinking": "", "signature": ""}
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {"id": "msg_1", "model": "m"}},
        {"type": "content_block_start", "index": 0, "content_block": thought},
        *({"type": "content_block_delta", "index": 0, "delta": delta} for delta in deltas),
        {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": "yes"}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
        {"type": "message_stop"},
    ]
    server.reply(replies.chunks(events), replies.text("ok"))
    model = make_model()
    kept = [Message.model_validate_json(message.model_dump_json()) for message in ask(model).messages]
    ask(model, [HELLO, *kept, HELLO])
    sent = native(server)["messages"][1]["content"]
    assert sent[0] == {"type": "thinking", "thinking": "🤔 and \ufffdso", "signature": SIGNATURE}


def test_white_space_before_a_call_is_not_sent_back_and_the_rest_is(server: FakeOpenAI, make_model: Any) -> None:
    thought = {"type": "thinking", "thinking": "hm", "signature": SIGNATURE}
    call = {"type": "tool_use", "id": "c1", "name": "get_time", "input": {}}
    server.reply(
        raw_answer(thought, {"type": "text", "text": "\n\n"}, call, stop_reason="tool_use"), replies.text("ok")
    )
    model = make_model()
    answer = ask(model, [HELLO], [TIME]).messages
    ask(model, [HELLO, *answer, Message("function", "noon", name="get_time")], [TIME])
    assert native(server)["messages"][1]["content"] == [thought, call]


@pytest.mark.parametrize("why", ["another server", "changed", "said more", "not wanted", "edited", "another backend"])
def test_a_thought_stays_here(server: FakeOpenAI, make_model: Any, why: str) -> None:
    answer = thought_and_call(server, make_model())
    if why == "changed":
        answer[-1] = answer[-1].replace(function_call=FunctionCall("another", "{}"))
    if why == "said more":
        answer.insert(0, answer[0].replace(content="and then", reasoning_content=None))
    if why == "edited":
        answer = [
            m.replace(origin=Origin(backend="anthropic", data={**(m.origin.data or {}), "content": 3}))
            for m in answer
            if m.origin
        ]
    if why == "another backend":
        data = {"server": "openai", "output": [{"type": "reasoning"}]}
        answer = [m.replace(origin=Origin(backend="openai_responses", data=data)) for m in answer]
    url = server.url.replace("127.0.0.1", "localhost") if why == "another server" else server.url
    server.reply(replies.text("ok"))
    model = make_model(base_url=url, send_reasoning=why != "not wanted")
    ask(model, [HELLO, *answer, Message("function", "noon", name="get_time")], [TIME])
    kinds = [block["type"] for block in native(server)["messages"][1]["content"]]
    assert kinds == (["text", "tool_use"] if why == "said more" else ["tool_use"])
    assert SIGNATURE.encode() not in server.requests[-1].body


def test_a_call_goes_back_with_the_arguments_of_the_history_beside_its_thought(
    server: FakeOpenAI, make_model: Any
) -> None:
    model = make_model(thinking_budget=1024)
    *thoughts, call = thought_and_call(server, model)
    server.reply(replies.text("ok"))
    call = call.replace(function_call=FunctionCall("get_time", '{"zone": "UTC"}'))
    ask(model, [HELLO, *thoughts, call, Message("function", "noon", name="get_time")], [TIME])
    thought, sent = native(server)["messages"][1]["content"]
    assert (thought["signature"], sent["input"]) == (SIGNATURE, {"zone": "UTC"})


def test_thoughts_that_nobody_may_read_go_back_too(server: FakeOpenAI, make_model: Any) -> None:
    hidden = {"type": "redacted_thinking", "data": "opaque=="}
    model = make_model()
    server.reply(raw_answer(hidden, {"type": "text", "text": "yes"}))
    said = ask(model).messages
    assert [message.content for message in said] == ["yes"]
    for send, content in (
        (True, [hidden, {"type": "text", "text": "yes"}]),
        (False, [{"type": "text", "text": "yes"}]),
    ):
        server.reply(replies.text("ok"))
        ask(make_model(send_reasoning=send), [HELLO, *said, HELLO])
        assert native(server)["messages"][1]["content"] == content


def test_reasoning_that_no_longer_fits_its_history_is_dropped_by_the_server(
    server: FakeOpenAI, make_model: Any
) -> None:
    refusal = replies.error(400, "messages.1.content.0: Invalid block. The block is bound to a different conversation.")
    server.reply(refusal, replies.text("ok"), replies.text("ok"))
    model = make_model(model="claude-opus-5-5", beta=["one-2025"])
    assert ask(model).get_content() == "ok"
    ask(model)
    assert "thinking" not in server.requests[0].native
    for request in server.requests[1:]:
        binding = {"prefix_mismatch_behavior": "drop_block"}
        assert request.native["thinking"] == {"type": "adaptive", "block_binding": binding}
        assert request.native_headers["anthropic-beta"] == "one-2025,thinking-binding-controls-2026-08-01"


def test_a_refusal_of_reasoning_that_remains_is_an_error(server: FakeOpenAI, make_model: Any) -> None:
    server.default = replies.error(400, "The block is bound to a different conversation.")
    with pytest.raises(ModelServiceError, match="different conversation"):
        ask(make_model())
    assert len(server.requests) == 2


# --- answers ---


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("tool_use", "tool_calls"),
        ("refusal", "content_filter"),
    ],
)
def test_a_reason_has_the_word_of_all_backends(server: FakeOpenAI, make_model: Any, word: str, reason: str) -> None:
    server.reply(raw_answer({"type": "text", "text": "a"}, stop_reason=word))
    assert ask(make_model()).finish_reason == reason


def test_what_the_cache_did_is_part_of_the_prompt_and_counted_apart(server: FakeOpenAI, make_model: Any) -> None:
    usage = {
        "input_tokens": 5,
        "cache_creation_input_tokens": 10,
        "cache_creation": {"ephemeral_5m_input_tokens": 6, "ephemeral_1h_input_tokens": 4},
        "cache_read_input_tokens": 100,
        "output_tokens": 7,
        "service_tier": "standard",
    }
    server.reply(raw_answer({"type": "text", "text": "a"}, usage=usage))
    told = ask(make_model()).usage
    assert (told.prompt_tokens, told.completion_tokens, told.total_tokens) == (115, 7, 122)
    assert (told.cached_tokens, told.cache_write_tokens, told.long_cache_write_tokens) == (100, 10, 4)


def test_prices_are_those_of_anthropic_at_anthropic_alone(make_model: Any) -> None:
    assert AnthropicChat({"model": "claude-opus-5-5"}).facts.prices[-1].input == 4
    assert make_model(model="claude-opus-5-5").facts.prices == ()


def test_events_that_nobody_knows_yet_are_passed_over(server: FakeOpenAI, make_model: Any) -> None:
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {"id": "m", "model": "m"}},
        {"type": "of_the_future", "x": 1},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "server_tool_use", "name": "search"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": "{"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "citations_delta", "citation": {}}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "yes"}},
        {"type": "content_block_stop", "index": 1},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 3}},
    ]
    server.reply(replies.chunks(events))
    assert ask(make_model()).get_content() == "yes"


def test_a_call_whose_input_comes_whole_is_read(server: FakeOpenAI, make_model: Any) -> None:
    block = {"type": "tool_use", "id": "c", "name": "get_time", "input": {"a": [1]}}
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {"id": "m", "model": "m"}},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
    ]
    server.reply(replies.chunks(events))
    (call,) = ask(make_model(), [HELLO], [TIME]).get_function_calls()
    assert call.get_parsed_arguments() == {"a": [1]}


# --- errors ---


@pytest.mark.parametrize(
    ("status", "code", "text", "error_class"),
    [
        (529, "overloaded_error", "Overloaded", ModelOverloadedError),
        (400, "invalid_request_error", "prompt is too long: 9 tokens > 8 maximum", ContextLengthError),
        (413, "request_too_large", "too large", ContextLengthError),
        (400, "invalid_request_error", "Your credit balance is too low", ModelAuthError),
        (402, "billing_error", "pay", ModelAuthError),
    ],
)
def test_an_error_has_its_class(
    server: FakeOpenAI, make_model: Any, status: int, code: str, text: str, error_class: type[ModelServiceError]
) -> None:
    server.reply(replies.error(status, text, code=code))
    with pytest.raises(error_class) as caught:
        ask(make_model())
    assert (caught.value.code, caught.value.request_id) == (code, "req_1")


def test_the_id_of_a_request_may_be_in_the_error_alone(server: FakeOpenAI, make_model: Any) -> None:
    problem = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}, "request_id": "req_9"}
    server.reply(replies.chunks([problem]))
    with pytest.raises(ModelOverloadedError) as caught:
        ask(make_model())
    assert caught.value.request_id == "req_9"


def test_an_overload_in_the_middle_of_an_answer_may_be_tried_again(server: FakeOpenAI, make_model: Any) -> None:
    first = {"choices": [{"index": 0, "delta": {"content": "half"}}]}
    server.reply(replies.chunks([first, {"error": {"message": "Overloaded", "code": "overloaded_error"}}]))
    with pytest.raises(ModelOverloadedError) as caught:
        ask(make_model())
    assert (caught.value.partial_text, caught.value.retryable) == ("half", True)


@pytest.mark.parametrize("model_server", [None, "", "anthropic"])
def test_without_an_address_the_server_is_anthropics(make_model: Any, model_server: str | None) -> None:
    model = make_model(base_url=None, model_server=model_server)
    assert model.server().url == "https://api.anthropic.com/v1/messages"


def test_an_address_that_is_none_is_refused(make_model: Any) -> None:
    with pytest.raises(JackfieldError, match="model_server"):
        make_model(base_url=None, model_server="claude")
