"""What is sent: messages, options, and histories that DashScope does not refuse."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield.config import GenerateConfig
from jackfield.messages import ContentItem, FunctionCall, Message
from jackfield.request import ChatRequest
from jackfield_backends.history import NO_RESULT
from jackfield_dashscope.config import DashScopeConfig
from jackfield_dashscope.wire import (
    Dialect,
    _mark_for_the_cache,
    _tool_options,
    dialect_of,
    request_body,
    request_bytes,
    wire_messages,
)

TEXT = Dialect()
PARTS = Dialect(in_parts=True)
CACHED = {"cache_control": {"type": "ephemeral"}}
Wire = dict[str, Any]


def call(name: str, function_id: str | None = None, arguments: str = "{}") -> Message:
    extra = {"function_id": function_id} if function_id else None
    return Message("assistant", function_call=FunctionCall(name, arguments), extra=extra)


def result(name: str, content: Any, function_id: str | None = None) -> Message:
    return Message("function", content, name=name, extra={"function_id": function_id} if function_id else None)


def body(*messages: Message, dialect: Dialect = TEXT, functions: Any = (), **config: Any) -> Wire:
    request = ChatRequest("m", messages or (Message("user", "hi"),), tuple(functions), GenerateConfig(**config))
    return request_body(request, dialect)


# --- contents ---


def test_at_the_text_endpoint_a_text_is_a_text_and_at_the_other_a_list_of_parts() -> None:
    history = [Message("system", "s"), Message("user", [ContentItem(text="a"), ContentItem(text="b")])]
    assert [message["content"] for message in wire_messages(history, TEXT)] == ["s", "a\nb"]
    assert [message["content"] for message in wire_messages(history, PARTS)] == [
        [{"text": "s"}],
        [{"text": "a"}, {"text": "b"}],
    ]


@pytest.mark.parametrize("dialect", [TEXT, PARTS])
def test_media_are_sent_as_they_are_given(dialect: Dialect) -> None:
    items = [
        ContentItem(image="http://h/a.png"),
        ContentItem(video="http://h/a.mp4"),
        ContentItem(video=["http://h/1.jpg", "http://h/2.jpg"]),
        ContentItem(audio="oss://bucket/a.wav"),
        ContentItem(audio={"data": "AAAA", "format": "mp3"}),
        ContentItem(file="/a/report.pdf"),
    ]
    assert wire_messages([Message("user", items)], dialect)[0]["content"] == [
        {"image": "http://h/a.png"},
        {"video": "http://h/a.mp4"},
        {"video": ["http://h/1.jpg", "http://h/2.jpg"]},
        {"audio": "oss://bucket/a.wav"},
        {"audio": "data:audio/mp3;base64,AAAA"},
        {"text": "[file: report.pdf]"},
    ]


@pytest.mark.parametrize("dialect", [TEXT, PARTS])
def test_an_answer_in_several_messages_is_one(dialect: Dialect) -> None:
    said = [
        Message("assistant", "", reasoning_content="hm"),
        Message("assistant", "let me look"),
        call("f", "x", '{"a": 1}'),
    ]
    answer = wire_messages([Message("user", "q"), *said, result("f", "r", "x")], dialect)[1]
    assert answer == {
        "role": "assistant",
        "content": [{"text": "let me look"}] if dialect.in_parts else "let me look",
        "reasoning_content": "hm",
        "tool_calls": [{"index": 0, "id": "x", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}],
    }


def test_the_reasoning_of_the_history_can_be_left_out() -> None:
    history = [Message("user", "q"), Message("assistant", "a", reasoning_content="hm"), Message("user", "q")]
    assert "reasoning_content" not in wire_messages(history, replace(TEXT, send_reasoning=False))[1]


@pytest.mark.parametrize(
    ("history", "marked"),
    [
        ([Message("user", "q"), Message("assistant", "Once")], True),
        ([Message("user", "q"), Message("assistant", "")], False),
        ([Message("user", "q"), Message("assistant", "a"), Message("user", "q")], False),
        ([Message("user", "q"), call("f", "x")], False),
    ],
)
def test_only_a_begun_answer_is_to_be_continued(history: list[Message], marked: bool) -> None:
    assert any("partial" in message for message in wire_messages(history, TEXT)) is marked
    assert not any("partial" in message for message in wire_messages(history, replace(TEXT, partial=False)))


# --- the provider's cache ---


def test_the_prompt_is_marked_up_to_where_it_is_to_be_kept() -> None:
    history = [Message("system", "s"), Message("user", "q")]
    upto_system = wire_messages(history, replace(TEXT, cache_control="system"))
    assert [message["content"] for message in upto_system] == [[{"text": "s", **CACHED}], "q"]
    all_of_it = wire_messages(history, replace(PARTS, cache_control="history"))
    assert [message["content"] for message in all_of_it] == [[{"text": "s", **CACHED}], [{"text": "q", **CACHED}]]


def test_without_a_system_message_there_is_nothing_to_mark() -> None:
    assert wire_messages([Message("user", "q")], replace(TEXT, cache_control="system")) == [
        {"role": "user", "content": "q"}
    ]


# --- calls and results ---


@pytest.mark.parametrize("dialect", [TEXT, PARTS])
def test_media_in_a_result_follow_in_a_message_of_the_user(dialect: Dialect) -> None:
    history = [Message("user", "q"), call("plot", "x"), result("plot", [ContentItem(image="http://h/a.png")], "x")]
    tool, more = wire_messages(history, dialect)[2:]
    assert (tool["role"], tool["tool_call_id"], tool["name"]) == ("tool", "x", "plot")
    assert more == {"role": "user", "content": [{"text": "Result of the tool plot:"}, {"image": "http://h/a.png"}]}


def test_results_find_their_calls_by_id_then_by_name() -> None:
    history = [call("f", "x"), call("f", "y"), call("g"), result("g", "of g"), result("f", "of y", "y")]
    tools = [message for message in wire_messages([Message("user", "q"), *history], TEXT) if message["role"] == "tool"]
    assert [(tool["name"], tool["content"]) for tool in tools] == [("f", NO_RESULT), ("f", "of y"), ("g", "of g")]


@pytest.mark.parametrize(
    ("arguments", "sent"),
    [
        ('{"a": 1}', {"a": 1}),
        ("", {}),
        ("{'a': 1,}", {"a": 1}),
        ("[1]", {"invalid_arguments": "[1]"}),
        ("nonsense", {"invalid_arguments": "nonsense"}),
    ],
)
def test_arguments_are_always_an_object(arguments: str, sent: Wire) -> None:
    wire = wire_messages([Message("user", "q"), call("f", "x", arguments)], TEXT)[1]
    assert json.loads(wire["tool_calls"][0]["function"]["arguments"]) == sent


_IDS = st.sampled_from([None, "1", "2", "call_1", "call_2"])
_NAMES = st.sampled_from(["f", "g"])
_MESSAGES = st.one_of(
    st.builds(Message, st.sampled_from(["user", "assistant"]), st.sampled_from(["", "text"])),
    st.builds(call, _NAMES, _IDS),
    st.builds(result, _NAMES, st.just("done"), _IDS),
)


@given(st.lists(_MESSAGES, max_size=12), st.sampled_from([TEXT, PARTS]))
def test_whatever_the_history_each_call_has_its_result_right_after_it(history: list[Message], dialect: Dialect) -> None:
    waiting: list[str] = []
    seen: set[str] = set()
    wire = wire_messages(history, dialect)
    for message in wire:
        if message["role"] == "tool":
            assert message["tool_call_id"] == waiting.pop(0)
            continue
        assert not waiting
        waiting = [one["id"] for one in message.get("tool_calls", ())]
        assert not seen & set(waiting)
        seen.update(waiting)
    assert not waiting
    results = sum(message.role == "function" for message in history)
    assert json.dumps(wire).count("done") == results, "a result is lost, or sent twice"


@given(st.lists(_MESSAGES, max_size=8), st.lists(_MESSAGES, min_size=1, max_size=4))
def test_a_longer_history_begins_with_the_same_messages(history: list[Message], more: list[Message]) -> None:
    # What the provider keeps of a prompt is only found again if it is the same.
    whole = [*history, Message("user", "q")]
    short = wire_messages(whole, TEXT)
    assert wire_messages([*whole, *more], TEXT)[: len(short)] == short


# --- options ---


def test_options_stand_among_the_parameters_and_those_that_nobody_set_do_not() -> None:
    assert body()["parameters"] == {}
    sent = body(temperature=0.0, max_tokens=9, seed=7, stop="END", top_k=3, response_format={"type": "json_object"})
    assert sent["parameters"] == {
        "temperature": 0.0,
        "max_tokens": 9,
        "seed": 7,
        "stop": ["END"],
        "top_k": 3,
        "response_format": {"type": "json_object"},
    }


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("temperature", 0.5),
        ("top_p", 0.25),
        ("top_k", 7),
        ("presence_penalty", 0.5),
        ("frequency_penalty", -0.5),
        ("repetition_penalty", 1.25),
        ("max_tokens", 9),
        ("seed", 0),
        ("response_format", {"type": "json_object"}),
        ("reasoning_effort", "low"),
    ],
)
def test_each_option_is_sent_by_its_name(option: str, value: object) -> None:
    assert body(**{option: value})["parameters"] == {option: value}


def test_tools_are_sent_with_the_choice_and_whether_several_may_be_called() -> None:
    schema = {"name": "f", "description": "d", "parameters": {"type": "object", "properties": {}}, "private": 1}
    sent = body(functions=[schema], function_choice="f", parallel_function_calls=True)["parameters"]
    assert sent["tools"] == [{"type": "function", "function": {k: v for k, v in schema.items() if k != "private"}}]
    assert sent["tool_choice"] == {"type": "function", "function": {"name": "f"}}
    assert sent["parallel_tool_calls"] is True


def test_a_call_wins_over_the_model_and_extra_body_over_all() -> None:
    config = DashScopeConfig(model="m", enable_thinking=True, thinking_budget=5)
    dialect = dialect_of(config, {"incremental_output": True}, in_parts=False)
    sent = body(dialect=dialect, temperature=0.1, extra_body={"thinking_budget": 9, "temperature": 0.2})
    assert sent["parameters"] == {
        "incremental_output": True,
        "enable_thinking": True,
        "thinking_budget": 9,
        "temperature": 0.2,
    }


def test_half_a_character_costs_no_request() -> None:
    request = ChatRequest("m", (Message("user", "a\ud83d"),))
    assert json.loads(request_bytes(request, TEXT))["input"]["messages"][0]["content"] == "a\ufffd"


def test_a_schema_keeps_its_fields_that_the_server_knows_and_no_others() -> None:
    schema: Any = {"name": "f", "description": "F.", "parameters": {}, "strict": True, "returns": {}}
    [shown] = _tool_options([schema], GenerateConfig())["tools"]
    assert shown == {"type": "function", "function": {key: schema[key] for key in list(schema)[:4]}}


def test_a_message_without_a_part_is_not_marked_for_the_cache() -> None:
    wire: list[Any] = [{"role": "system", "content": []}, {"role": "user", "content": "Hi"}]
    _mark_for_the_cache(wire, everything=True)
    assert wire[0]["content"] == []
    assert wire[1]["content"] == [{"text": "Hi", "cache_control": {"type": "ephemeral"}}]
