"""Test tools that the provider runs: pauses, citations, and their blocks in the history."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from jackfield import FnCallAgent, sync
from jackfield.errors import (
    ConfigError,
    ModelAuthError,
    ModelConnectionError,
    ModelOverloadedError,
    ModelTimeoutError,
    UnsupportedInputError,
)
from jackfield.events import PluginEvent, StreamReset
from jackfield.messages import ContentItem, Message
from jackfield.results import Source
from jackfield.tools import tool
from jackfield_testkit import replies
from jackfield_testkit.server import FakeOpenAI

HELLO = Message("user", "hello")
TIME = {"name": "get_time", "description": "The time.", "parameters": {"type": "object", "properties": {}}}
SEARCH = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "tides"}}
FOUND = {
    "type": "web_search_tool_result",
    "tool_use_id": "srvtoolu_1",
    "content": [
        {"type": "web_search_result", "url": "https://tides.example/", "title": "Tides", "encrypted_content": "c=="}
    ],
}
CITATION = {
    "type": "web_search_result_location",
    "url": "https://tides.example/",
    "title": "Tides",
    "cited_text": "High water at noon.",
    "encrypted_index": "i==",
}


def stream(blocks: list[Mapping[str, Any]], stop_reason: str, *, tokens: int = 5) -> replies.Reply:
    """Return the events of an answer, with every text and input in pieces."""
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {"id": "msg_1", "model": "m", "usage": {"input_tokens": tokens}}}
    ]
    for index, block in enumerate(blocks):
        begun = dict(block)
        deltas: list[dict[str, Any]] = []
        if block["type"] == "text":
            begun["text"] = ""
            deltas = [{"type": "citations_delta", "citation": one} for one in begun.pop("citations", [])]
            deltas += [{"type": "text_delta", "text": letter} for letter in block["text"]]
        elif block["type"] in ("server_tool_use", "tool_use"):
            begun["input"] = {}
            deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in json.dumps(block["input"])]
        events.append({"type": "content_block_start", "index": index, "content_block": begun})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": index})
    events.append({"type": "message_delta", "delta": {"stop_reason": stop_reason}, "usage": {"output_tokens": 3}})
    return replies.chunks([*events, {"type": "message_stop"}])


def text(content: str, *citations: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "text", "text": content, **({"citations": list(citations)} if citations else {})}


def call(call_id: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": "get_time", "input": {}}


def test_hosted_tools_stand_beside_functions(server: FakeOpenAI, make_model: Any) -> None:
    server.reply(replies.text("ok"))
    own = {"type": "web_fetch_20260318", "name": "web_fetch", "max_uses": 2}
    sync.run(make_model(hosted_tools=["web_search", own]).acomplete([HELLO], [TIME]))
    tools = server.requests[-1].native["tools"]
    assert [tool["name"] for tool in tools] == ["get_time", "web_search", "web_fetch"]
    assert tools[1:] == [{"type": "web_search_20250305", "name": "web_search"}, own]


def test_a_hosted_tool_must_be_known_and_have_a_name_of_its_own(server: FakeOpenAI, make_model: Any) -> None:
    with pytest.raises(ConfigError, match="web_search"):
        make_model(hosted_tools=["search"])
    with pytest.raises(ConfigError, match="type"):
        make_model(hosted_tools=["web_fetch", {"name": "web_search"}])
    with pytest.raises(UnsupportedInputError, match="'web_search' is both a hosted tool and a function"):
        sync.run(make_model(hosted_tools=["web_search"]).acomplete([HELLO], [{**TIME, "name": "web_search"}]))


@pytest.mark.parametrize("streamed", [True, False])
def test_a_paused_answer_goes_on_and_is_one_answer(server: FakeOpenAI, make_model: Any, streamed: bool) -> None:
    first = [{"type": "thinking", "thinking": "hm", "signature": "s=="}, text("I look. "), SEARCH]
    second = [FOUND, text("High at noon.", CITATION), call("c2")]

    def reply(blocks: list[Any], reason: str) -> replies.Reply:
        if streamed:
            return stream(blocks, reason)
        usage = {"input_tokens": 5, "output_tokens": 3}
        answer = {"id": "m", "type": "message", "role": "assistant", "content": blocks, "usage": usage}
        return replies.raw(json.dumps({**answer, "stop_reason": reason}).encode())

    server.reply(reply(first, "pause_turn"), reply(second, "tool_use"), replies.text("ok"))
    model = make_model(hosted_tools=["web_search"])
    response = sync.run(model.acomplete([HELLO], [TIME]))
    assert response.get_content() == "I look. High at noon."
    assert [message.function_id for message in response.messages if message.function_call] == ["c2"]
    assert (response.finish_reason, response.usage.prompt_tokens, response.usage.completion_tokens) == (
        "tool_calls",
        10,
        6,
    )
    resumed = server.requests[1].native["messages"]
    assert [message["role"] for message in resumed] == ["user", "assistant"]
    assert [block["type"] for block in resumed[1]["content"]] == ["thinking", "text", "server_tool_use"]
    assert resumed[1]["content"][-1] == SEARCH


def test_an_answer_with_a_call_is_not_resumed_before_the_call_is_made(server: FakeOpenAI, make_model: Any) -> None:
    server.reply(stream([SEARCH, FOUND, call("c1")], "pause_turn"))
    response = sync.run(make_model().acomplete([HELLO], [TIME]))
    assert (len(response.get_function_calls()), response.provider_reason) == (1, "pause_turn")


def test_a_server_that_pauses_for_ever_ends_the_answer(server: FakeOpenAI, make_model: Any) -> None:
    server.default = stream([SEARCH, FOUND, text(".")], "pause_turn")
    response = sync.run(make_model(hosted_tools=["web_search"]).acomplete([HELLO]))
    assert (response.finish_reason, response.provider_reason) == ("other", "pause_turn")
    assert len(server.requests) == 21
    assert response.usage.prompt_tokens == 21 * 5


def test_an_error_after_a_pause_starts_the_answer_again(server: FakeOpenAI, make_model: Any) -> None:
    paused = stream([text("a"), SEARCH], "pause_turn")
    server.reply(paused, replies.error(529, "Overloaded", code="overloaded_error"), stream([text("b")], "end_turn"))
    model = make_model(generate_cfg={"max_retries": 1})

    async def events() -> list[Any]:
        return [event async for event in model.astream([HELLO])]

    assert any(isinstance(event, StreamReset) for event in sync.run(events()))
    assert [len(request.native["messages"]) for request in server.requests] == [1, 2, 1]


def test_citations_are_sources_and_go_back_with_the_results(server: FakeOpenAI, make_model: Any) -> None:
    page: dict[str, Any] = {
        "type": "page_location",
        "document_index": 0,
        "document_title": "report.pdf",
        "cited_text": "x",
        "start_page_number": 3,
        "end_page_number": 4,
    }
    blocks: list[Any] = [
        SEARCH,
        FOUND,
        text("High at noon.", CITATION, {**page, "file_id": None}),
        text(" Yes.", CITATION),
    ]
    server.reply(stream(blocks, "end_turn"), replies.text("ok"))
    agent = FnCallAgent([], make_model(hosted_tools=["web_search"], send_reasoning=False))
    result = agent.ask("When?")
    assert result.sources == (Source("https://tides.example/"), Source("report.pdf", 3))
    agent.ask("And tomorrow?", history=result.history)
    sent = server.requests[-1].native["messages"][1]["content"]
    assert sent == [SEARCH, FOUND, text("High at noon.", CITATION, page), text(" Yes.", CITATION)]


def test_documents_may_be_cited_unless_a_schema_binds_the_answer(server: FakeOpenAI, make_model: Any) -> None:
    server.default = replies.text('{"a": "x"}')
    model = make_model(model="claude-opus-5", citations=True)
    question = [Message("user", [ContentItem(file="https://example.org/a.pdf"), ContentItem(text="What is it?")])]
    sync.run(model.acomplete(question))
    assert server.requests[-1].native["messages"][0]["content"][0]["citations"] == {"enabled": True}
    model.parse(question, {"type": "object", "properties": {"a": {"type": "string"}}})
    assert "citations" not in server.requests[-1].native["messages"][0]["content"][0]


@pytest.mark.parametrize(
    ("pages", "page"), [((3, 4), 3), ((3, 5), None), ((3, 3), None), ((None, 4), None), ((None, None), None)]
)
def test_a_source_has_a_page_if_the_citation_is_from_one_alone(
    server: FakeOpenAI, make_model: Any, pages: tuple[int | None, int | None], page: int | None
) -> None:
    cited = {"type": "page_location", "document_title": "report.pdf", "cited_text": "x"}
    first, end = pages
    server.reply(stream([text("a", {**cited, "start_page_number": first, "end_page_number": end})], "end_turn"))
    assert FnCallAgent([], make_model()).ask("When?").sources == (Source("report.pdf", page),)


def test_calls_of_the_history_are_declared_beside_hosted_tools(server: FakeOpenAI, make_model: Any) -> None:
    server.reply(stream([call("c1")], "tool_use"), replies.text("ok"))
    model = make_model(hosted_tools=["web_search"])
    answer = sync.run(model.acomplete([HELLO], [TIME])).messages
    sync.run(model.acomplete([HELLO, *answer, Message("function", "noon", name="get_time")]))
    assert [tool["name"] for tool in server.requests[-1].native["tools"]] == ["get_time", "web_search"]


def test_a_source_is_reported_once(server: FakeOpenAI, make_model: Any) -> None:
    server.reply(stream([text("a", CITATION, CITATION), text("b", CITATION)], "end_turn"))

    async def events() -> list[Any]:
        return [event async for event in make_model().astream([HELLO]) if isinstance(event, PluginEvent)]

    assert [event.data for event in sync.run(events())] == [{"sources": [{"location": "https://tides.example/"}]}]


def test_a_tool_of_any_name_is_called_by_its_own_name(server: FakeOpenAI, make_model: Any) -> None:
    weather = {"name": "天气 查询", "parameters": {"type": "object", "properties": {}}}

    def reply(request: Any) -> replies.Reply:
        (sent,) = request.native["tools"]
        assert request.native["tool_choice"]["name"] == sent["name"]
        return stream([{"type": "tool_use", "id": "c1", "name": sent["name"], "input": {"city": "Bonn"}}], "tool_use")

    server.respond(reply)
    response = sync.run(make_model().acomplete([HELLO], [weather], config={"function_choice": "天气 查询"}))
    (function_call,) = response.get_function_calls()
    assert (function_call.name, function_call.get_parsed_arguments()) == ("天气 查询", {"city": "Bonn"})


def test_the_server_counts_the_tokens_of_a_prompt(server: FakeOpenAI, make_model: Any) -> None:
    server.reply(replies.raw(b'{"input_tokens": 42}'))
    model = make_model(thinking_budget=2000, cache_control="system")
    assert model.count_tokens([Message("system", "be brief"), HELLO], [TIME]) == 42
    request = server.requests[-1]
    assert request.native_path == "/v1/messages/count_tokens"
    assert set(request.native) == {"model", "messages", "system", "tools", "thinking"}


def test_a_prompt_is_counted_with_the_options_of_the_call(server: FakeOpenAI, make_model: Any) -> None:
    server.reply(replies.raw(b'{"input_tokens": 42}'))
    assert make_model().count_tokens("hello", [TIME], config={"function_choice": "get_time"}) == 42
    assert server.requests[-1].native["tool_choice"] == {"type": "tool", "name": "get_time"}
    with pytest.raises(UnsupportedInputError, match="claude-opus-5 does not support temperature"):
        make_model(model="claude-opus-5").count_tokens("hello", config={"temperature": 0})


@pytest.mark.parametrize("retries", [0, 1])
def test_counting_is_retried_as_often_as_an_answer(server: FakeOpenAI, make_model: Any, retries: int) -> None:
    server.reply(replies.error(529, "Overloaded", code="overloaded_error"), replies.raw(b'{"input_tokens": 42}'))
    model = make_model(generate_cfg={"max_retries": retries})
    if retries:
        assert model.count_tokens("hello") == 42
    else:
        with pytest.raises(ModelOverloadedError):
            model.count_tokens("hello")
    assert len(server.requests) == 1 + retries


def test_counting_has_the_headers_and_the_timeout_of_the_call(server: FakeOpenAI, make_model: Any) -> None:
    server.reply(replies.raw(b'{"input_tokens": 42}'), replies.raw(b'{"input_tokens": 42}').delayed(60))
    model = make_model()
    assert model.count_tokens("hello", config={"extra_headers": {"X-Team": "tides"}}) == 42
    assert server.requests[-1].native_headers["x-team"] == "tides"
    with pytest.raises((ModelTimeoutError, ModelConnectionError)):  # a busy machine may not even connect
        model.count_tokens("hello", config={"request_timeout": 0.05})


def test_a_refusal_to_count_is_the_servers_own(server: FakeOpenAI, make_model: Any) -> None:
    server.reply(replies.error(401, "invalid x-api-key", code="authentication_error"))
    with pytest.raises(ModelAuthError, match="invalid x-api-key"):
        make_model().count_tokens("hello")


@pytest.mark.parametrize("reply", [replies.raw(b"[]"), replies.raw(b"{}"), replies.raw(b"<html>")])
def test_a_server_that_does_not_count_is_named(server: FakeOpenAI, make_model: Any, reply: replies.Reply) -> None:
    server.reply(reply)
    with pytest.raises(Exception, match="not part of a response"):
        make_model().count_tokens("hello")


@pytest.mark.parametrize(
    "config",
    [
        {"model": "claude-opus-5-5"},
        {"model": "claude-opus-4-1"},
        {"model": "claude-opus-4-1", "thinking_budget": 2000},
        {"model": "test-model"},
    ],
)
def test_an_agent_with_tools_gets_data_in_a_way_that_the_server_accepts(
    server: FakeOpenAI, make_model: Any, config: dict[str, Any]
) -> None:
    @tool
    def get_time() -> str:
        """Return the time."""
        return "noon"

    def reply(request: Any) -> replies.Reply:
        if len(server.requests) == 1:
            return replies.tool_call("get_time", "{}")
        names = {each["name"] for each in request.native["tools"]} - {"get_time"}
        return replies.tool_call(*names, '{"city": "Bonn"}') if names else replies.text('{"city": "Bonn"}')

    server.respond(reply)
    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    assert FnCallAgent([get_time], make_model(**config)).ask("Where?", output=schema).output == {"city": "Bonn"}
    assert len(server.requests) == 2
