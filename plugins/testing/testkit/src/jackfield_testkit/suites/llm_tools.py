"""Test tool calls: reading them from answers, writing them into the history, and letting the caller choose them."""

# ruff: noqa: S101 - these are tests: they assert, and take fixtures for their effects

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from jackfield.messages import FunctionCall, Message, ModelResponse
from jackfield.models import BaseChatModel
from jackfield_testkit import replies
from jackfield_testkit.replies import ToolCall
from jackfield_testkit.server import FakeOpenAI
from jackfield_testkit.suites.llm_asking import (
    CLOCK,
    HELLO,
    WEATHER,
    LLMTests,
    all_text,
    answer_of,
    assert_calls_are_answered,
    sent,
    sent_messages,
    text_of,
)

Calls = list[tuple[str, dict[str, Any]]]


class ToolTests(LLMTests):
    """Native tool calls. The tests are skipped for a model whose facts exclude them."""

    @pytest.fixture
    def tool_model(self, model: BaseChatModel) -> BaseChatModel:
        """Return the model if it supports native tool calls."""
        if not model.facts.native_tools:
            pytest.skip("according to its facts, the model has no native tool calls")
        return model

    # --- sent ---

    def test_the_tools_are_sent_with_their_schemas(self, server: FakeOpenAI, tool_model: BaseChatModel) -> None:
        server.reply(replies.text("ok"))
        answer_of(tool_model, functions=[WEATHER, CLOCK])
        tools = sent(server)["tools"]
        assert [tool["type"] for tool in tools] == ["function", "function"]
        assert [tool["function"] for tool in tools] == [WEATHER, CLOCK]

    def test_without_tools_nothing_about_them_is_sent(self, server: FakeOpenAI, tool_model: BaseChatModel) -> None:
        server.reply(replies.text("ok"))
        answer_of(tool_model)
        assert sent(server).keys().isdisjoint({"tools", "tool_choice", "parallel_tool_calls", "functions"})

    @pytest.mark.parametrize(
        ("choice", "wire"),
        [
            ("auto", (None, "auto")),
            ("none", (None, "none")),
            ("required", ("required",)),
            ("get_time", ({"type": "function", "function": {"name": "get_time"}},)),
        ],
    )
    def test_the_choice_of_a_tool_is_sent(
        self, server: FakeOpenAI, tool_model: BaseChatModel, choice: str, wire: Sequence[object]
    ) -> None:
        server.reply(replies.text("ok"))
        answer_of(tool_model, functions=[WEATHER, CLOCK], config={"function_choice": choice})
        assert sent(server).get("tool_choice") in wire
        if choice == "none" and sent(server).get("tool_choice") is None:
            assert "tools" not in sent(server), (
                "with function_choice 'none', the model must not receive tools that it could call"
            )

    # --- received ---

    def test_a_call_is_read(self, server: FakeOpenAI, tool_model: BaseChatModel) -> None:
        server.reply(replies.tool_call("get_weather", {"place": "Bern"}, id="call_abc"))
        response = self._ask(tool_model)
        assert _calls(response) == [("get_weather", {"place": "Bern"})]
        assert _ids(response) == ["call_abc"]
        assert response.finish_reason == "tool_calls"
        assert response.get_content() == ""

    @pytest.mark.parametrize("interleaved", [False, True])
    def test_calls_at_the_same_time_are_told_apart_by_their_index(
        self, server: FakeOpenAI, tool_model: BaseChatModel, interleaved: bool
    ) -> None:
        wanted = [ToolCall("get_weather", {"place": place}, f"call_{place}") for place in ("Bern", "北京", "Roma")]
        server.reply(replies.tool_calls(wanted, chars=2, interleaved=interleaved))
        response = self._ask(tool_model)
        written = [(call.name, call.arguments) for call in response.get_function_calls()]
        expected = [("get_weather", {"place": place}) for place in ("Bern", "北京", "Roma")]
        assert [(name, _read(arguments)) for name, arguments in written] == expected, (
            f"the fragments of three calls were joined to {written}: each fragment belongs to the call with its `index`"
        )
        assert _ids(response) == ["call_Bern", "call_北京", "call_Roma"], "the calls do not keep the server's ids"

    def test_calls_without_ids_get_different_ones(self, server: FakeOpenAI, tool_model: BaseChatModel) -> None:
        server.reply(replies.tool_calls([ToolCall("get_time", {}), ToolCall("get_time", {})]))
        ids = _ids(self._ask(tool_model))
        assert len(ids) == 2
        assert len(set(ids)) == 2
        assert all(ids)

    def test_equal_calls_are_two_calls(self, server: FakeOpenAI, tool_model: BaseChatModel) -> None:
        server.reply(replies.tool_calls([ToolCall("get_time", {}, "a"), ToolCall("get_time", {}, "b")]))
        response = self._ask(tool_model)
        assert _calls(response) == [("get_time", {}), ("get_time", {})], "two equal calls must remain two calls"
        assert _ids(response) == ["a", "b"], "the calls do not keep the server's ids"

    @pytest.mark.parametrize("arguments", [None, "", "{}"])
    def test_a_call_without_arguments_has_none(
        self, server: FakeOpenAI, tool_model: BaseChatModel, arguments: str | None
    ) -> None:
        server.reply(replies.tool_call("get_time", arguments))
        assert _calls(self._ask(tool_model)) == [("get_time", {})]

    def test_arguments_in_single_characters_and_any_alphabet_are_joined(
        self, server: FakeOpenAI, tool_model: BaseChatModel
    ) -> None:
        arguments = {"place": '北京 🙂 "quoted" \\ \n Zürich', "deep": {"list": [1, None, {"x": True}]}}
        server.reply(replies.tool_call("get_weather", arguments, chars=1).cut(inside_characters=True))
        assert _calls(self._ask(tool_model)) == [("get_weather", arguments)]

    def test_text_beside_a_call_is_kept(self, server: FakeOpenAI, tool_model: BaseChatModel) -> None:
        server.reply(replies.tool_call("get_time", {}, content="let me look"))
        response = self._ask(tool_model)
        assert response.get_content() == "let me look"
        assert _calls(response) == [("get_time", {})]

    def test_a_name_that_is_repeated_with_every_piece_is_one_name(
        self, server: FakeOpenAI, tool_model: BaseChatModel
    ) -> None:
        # Some compatible servers do this.
        pieces = ['{"place"', ': "Bern"}']
        server.reply(replies.chunks([*(_part(0, piece, name="get_weather", id="a") for piece in pieces), _END]))
        assert _calls(self._ask(tool_model)) == [("get_weather", {"place": "Bern"})]

    def test_a_call_of_an_unknown_tool_is_reported_as_it_is(
        self, server: FakeOpenAI, tool_model: BaseChatModel
    ) -> None:
        server.reply(replies.tool_call("no_such_tool", {"a": 1}))
        assert _calls(self._ask(tool_model)) == [("no_such_tool", {"a": 1})]

    def test_broken_arguments_are_passed_on_as_they_are(self, server: FakeOpenAI, tool_model: BaseChatModel) -> None:
        server.reply(replies.tool_call("get_weather", '{"place": "Ber'))
        assert [call.arguments for call in self._ask(tool_model).get_function_calls()] == ['{"place": "Ber']

    # --- sent back ---

    def test_a_result_goes_back_to_its_call(self, server: FakeOpenAI, tool_model: BaseChatModel) -> None:
        calls = [ToolCall("get_weather", {"place": "Bern"}, "call_a"), ToolCall("get_time", {}, "call_b")]
        server.reply(replies.tool_calls(calls, content="let me look"), replies.text("sunny"))
        first = self._ask(tool_model)
        results = [
            Message("function", "snow 🌨", name="get_weather", extra={"function_id": "call_a"}),
            Message("function", "noon", name="get_time", extra={"function_id": "call_b"}),
        ]
        answer_of(tool_model, [*HELLO, *first.messages, *results], [WEATHER, CLOCK])
        messages = sent_messages(server)
        assert_calls_are_answered(messages)
        assert [message["role"] for message in messages] == ["user", "assistant", "tool", "tool"]
        assert text_of(messages[1]) == "let me look"
        assert [(call["id"], call["function"]["name"]) for call in messages[1]["tool_calls"]] == [
            ("call_a", "get_weather"),
            ("call_b", "get_time"),
        ], "calls in the history are sent with different ids or names"
        assert [(message["tool_call_id"], text_of(message)) for message in messages[2:]] == [
            ("call_a", "snow 🌨"),
            ("call_b", "noon"),
        ], "a result is sent with the id of another call: the id is in `extra['function_id']` of the result's message"

    def test_calls_of_two_turns_with_the_same_ids_are_answered_each(
        self, server: FakeOpenAI, tool_model: BaseChatModel
    ) -> None:
        # Models without ids get "1", "2" … in every turn.
        server.reply(replies.text("ok"))
        turns = [message for result in ("one", "two") for message in _call_and_result("1", result)]
        answer_of(tool_model, [*HELLO, *turns], [CLOCK])
        assert_calls_are_answered(sent_messages(server))
        assert [text_of(m) for m in sent_messages(server) if m["role"] == "tool"] == ["one", "two"]

    def test_a_call_without_a_result_leaves_the_history_valid(
        self, server: FakeOpenAI, tool_model: BaseChatModel
    ) -> None:
        server.reply(replies.text("ok"))
        call, _ = _call_and_result("c1", "never")
        answer_of(tool_model, [*HELLO, call, Message("user", "and now?")], [CLOCK])
        assert_calls_are_answered(sent_messages(server))
        assert "and now?" in all_text(sent_messages(server), "user")

    def test_a_result_without_a_call_leaves_the_history_valid(
        self, server: FakeOpenAI, tool_model: BaseChatModel
    ) -> None:
        server.reply(replies.text("ok"))
        _, result = _call_and_result("c1", "noon")
        answer_of(tool_model, [*HELLO, result, Message("user", "and now?")], [CLOCK])
        assert_calls_are_answered(sent_messages(server))

    def test_calls_without_ids_are_sent_with_ids(self, server: FakeOpenAI, tool_model: BaseChatModel) -> None:
        server.reply(replies.text("ok"))
        history = [
            *HELLO,
            Message("assistant", function_call=FunctionCall("get_time", "{}")),
            Message("function", "noon", name="get_time"),
        ]
        answer_of(tool_model, history, [CLOCK])
        assert_calls_are_answered(sent_messages(server))
        assert [message["role"] for message in sent_messages(server)] == ["user", "assistant", "tool"]

    def _ask(self, model: BaseChatModel) -> ModelResponse:
        return answer_of(model, functions=[WEATHER, CLOCK])


_END = {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}


def _part(index: int, arguments: str, *, name: str, id: str) -> dict[str, Any]:  # noqa: A002 - the wire's word
    part = {"index": index, "id": id, "type": "function", "function": {"name": name, "arguments": arguments}}
    return {"choices": [{"index": 0, "delta": {"tool_calls": [part]}, "finish_reason": None}]}


def _calls(response: ModelResponse) -> Calls:
    return [(call.name, call.get_parsed_arguments()) for call in response.get_function_calls()]


def _read(arguments: str) -> object:
    """Parse the arguments of a call, or return the text itself if it is not JSON."""
    try:
        return json.loads(arguments)
    except ValueError:
        return arguments


def _ids(response: ModelResponse) -> list[str | None]:
    return [message.function_id for message in response.messages if message.function_call]


def _call_and_result(function_id: str, result: str) -> tuple[Message, Message]:
    extra = {"function_id": function_id}
    call = Message("assistant", function_call=FunctionCall("get_time", "{}"), extra=extra)
    return call, Message("function", result, name="get_time", extra=extra)
