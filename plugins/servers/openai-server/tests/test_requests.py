"""Requests of both APIs as the agent receives them: options by name, up to their bounds, and messages in order."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from jackfield.messages import ContentItem, FunctionCall, Message
from jackfield.servers import RequestRefusedError
from jackfield_openai_server.chat_request import read_chat_request
from jackfield_openai_server.errors import ParameterError, error_object
from jackfield_openai_server.question import Question
from jackfield_openai_server.response_request import read_response_request, seal_summary

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
CHAT_TOOL = {"type": "function", "function": {"name": "weather", "description": "Tell it.", "parameters": SCHEMA}}
TOOL = {"type": "function", **CHAT_TOOL["function"]}  # type: ignore[dict-item]
NO_ARGUMENTS = {"type": "object", "properties": {}}


def chat(**change: Any) -> Any:
    return read_chat_request({"model": "helper", "messages": [{"role": "user", "content": "Hi"}], **change})


def response(**change: Any) -> Any:
    return read_response_request({"model": "helper", "input": "Hi", **change})


Read = Callable[..., Question]
BOTH = pytest.mark.parametrize("read", [chat, response], ids=["chat", "responses"])

SHARED: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {}),
    ({"temperature": None, "top_p": None}, {}),
    ({"temperature": 0}, {"temperature": 0}),
    ({"temperature": 0.5, "top_p": 0.25}, {"temperature": 0.5, "top_p": 0.25}),
    ({"presence_penalty": 1, "frequency_penalty": -1}, {"presence_penalty": 1, "frequency_penalty": -1}),
    ({"parallel_tool_calls": False}, {"parallel_function_calls": False}),
    ({"tool_choice": "auto"}, {}),
    ({"tool_choice": "none"}, {"function_choice": "none"}),
]
OF_CHAT: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"max_tokens": 5}, {"max_tokens": 5}),
    ({"max_completion_tokens": 6}, {"max_tokens": 6}),
    ({"max_tokens": 5, "max_completion_tokens": 6}, {"max_tokens": 6}),
    ({"seed": 0}, {"seed": 0}),
    ({"stop": "xy"}, {"stop": ["xy"]}),
    ({"stop": ["x", "y"]}, {"stop": ["x", "y"]}),
    ({"reasoning_effort": "low"}, {"reasoning_effort": "low"}),
    ({"response_format": {"type": "text"}}, {}),
    ({"response_format": {"type": "json_object"}}, {"response_format": {"type": "json_object"}}),
    ({"tools": [CHAT_TOOL], "tool_choice": "required"}, {"function_choice": "required"}),
    (
        {"tools": [CHAT_TOOL], "tool_choice": {"type": "function", "function": {"name": "weather"}}},
        {"function_choice": "weather"},
    ),
]
OF_RESPONSES: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"max_output_tokens": 5}, {"max_tokens": 5}),
    ({"reasoning": {"effort": "low"}}, {"reasoning_effort": "low"}),
    ({"reasoning": {"summary": "auto"}}, {}),
    ({"text": {"format": {"type": "text"}}}, {}),
    ({"text": {"format": {"type": "json_object"}}}, {"response_format": {"type": "json_object"}}),
    ({"truncation": "auto"}, {}),
    ({"truncation": "disabled"}, {"max_input_tokens": 0}),
    ({"tools": [TOOL], "tool_choice": "required"}, {"function_choice": "required"}),
    ({"tools": [TOOL], "tool_choice": {"type": "function", "name": "weather"}}, {"function_choice": "weather"}),
]


@pytest.mark.parametrize(
    ("read", "change", "config"),
    [
        *((read, *row) for read in (chat, response) for row in SHARED),
        *((chat, *row) for row in OF_CHAT),
        *((response, *row) for row in OF_RESPONSES),
    ],
)
def test_an_option_reaches_the_model_under_its_own_name(
    read: Read, change: dict[str, Any], config: dict[str, Any]
) -> None:
    assert dict(read(**change).config) == config


WITHIN: list[tuple[str, list[Any], list[Any]]] = [
    ("temperature", [0, 2], [-0.01, 2.01, "1"]),
    ("top_p", [0.01, 1], [0, 1.01]),
    ("presence_penalty", [-2, 2], [-2.01, 2.01]),
    ("frequency_penalty", [-2, 2], [-2.01, 2.01]),
]
WITHIN_CHAT = [("max_tokens", [1], [0, 1.5]), ("max_completion_tokens", [1], [0])]
WITHIN_RESPONSES: list[tuple[str, list[Any], list[Any]]] = [
    ("max_output_tokens", [1], [0]),
    ("metadata", [{str(number): "" for number in range(16)}], [{str(number): "" for number in range(17)}]),
    ("safety_identifier", ["x" * 64], ["x" * 65]),
    ("prompt_cache_key", ["x" * 64], ["x" * 65]),
    ("top_logprobs", [0], [1]),
]


@pytest.mark.parametrize(
    ("read", "name", "valid", "invalid"),
    [
        *((read, *row) for read in (chat, response) for row in WITHIN),
        *((chat, *row) for row in WITHIN_CHAT),
        *((response, *row) for row in WITHIN_RESPONSES),
    ],
)
def test_an_option_is_valid_up_to_its_bounds_and_refused_beyond(
    read: Read, name: str, valid: list[Any], invalid: list[Any]
) -> None:
    for value in valid:
        read(**{name: value})
    for value in invalid:
        with pytest.raises(ParameterError) as caught:
            read(**{name: value})
        assert (caught.value.param, caught.value.status, caught.value.code) == (name, 400, "invalid_value")


@BOTH
@pytest.mark.parametrize(
    ("change", "user"),
    [({}, ""), ({"user": "ada"}, "ada"), ({"user": "ada", "safety_identifier": "bob"}, "bob")],
    ids=str,
)
def test_the_user_is_the_safety_identifier_if_there_is_one(read: Read, change: dict[str, Any], user: str) -> None:
    assert read(**change).user == user


@pytest.mark.parametrize(
    ("fields", "schema"),
    [
        (
            {"description": "Tell it.", "parameters": SCHEMA, "strict": True},
            {"description": "Tell it.", "parameters": SCHEMA},
        ),
        ({}, {"description": "", "parameters": NO_ARGUMENTS}),
        ({"description": None, "parameters": None}, {"description": "", "parameters": NO_ARGUMENTS}),
    ],
    ids=str,
)
@BOTH
def test_a_tool_of_the_client_is_a_function(read: Read, fields: dict[str, Any], schema: dict[str, Any]) -> None:
    for name in ("w", "W-e_1", "x" * 64):
        tool = {"name": name, **fields}
        given = {"type": "function", "function": tool} if read is chat else {"type": "function", **tool}
        assert list(read(tools=[given]).client_tools) == [{"name": name, **schema}]


@pytest.mark.parametrize(
    ("tool", "param"),
    [
        ({"name": "x" * 65}, "name"),
        ({"name": ""}, "name"),
        ({"name": "ä"}, "name"),
        ({"name": 1}, "name"),
        ({"name": "x", "parameters": []}, "parameters"),
        ({"name": "x", "description": 1}, "description"),
        ({"name": "x", "cache": 1}, "cache"),
    ],
    ids=str,
)
@BOTH
def test_a_tool_that_is_no_function_is_refused_by_its_name(read: Read, tool: dict[str, Any], param: str) -> None:
    table = {"type": "function", "function": tool} if read is chat else {"type": "function", **tool}
    ok = CHAT_TOOL if read is chat else TOOL
    with pytest.raises(ParameterError) as caught:
        read(tools=[ok, table])
    assert caught.value.param == f"tools.1.{param}"


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"messages": []}, "'messages': must have at least 1 item."),
        ({"messages": "hi"}, "'messages': must be an array."),
        ({"messages": [{"role": "user", "content": 5}]}, "'messages.0.content': must be a string or an array."),
        ({"temperature": "hot"}, "'temperature': must be a number."),
        ({"temperature": 3}, "'temperature': must be less than or equal to 2."),
        ({"n": []}, "'n': must be an integer."),
        ({"stream": "perhaps"}, "'stream': must be true or false."),
        ({"stream_options": 1}, "'stream_options': must be an object."),
    ],
    ids=str,
)
def test_a_wrong_value_is_named_by_its_path_in_the_request(change: dict[str, Any], text: str) -> None:
    with pytest.raises(ParameterError) as caught:
        chat(**change)
    assert str(caught.value) == f"Invalid value for {text}"
    assert caught.value.param == text.split("'")[1]


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ("sometimes", "Invalid value"),
        ({"type": "function", "name": "other"}, "refers to 'other', which is not in tools"),
        ({"type": "function", "name": "weather", "more": 1}, "Invalid value"),
        ({"type": "allowed_tools"}, "not supported"),
    ],
    ids=str,
)
def test_a_choice_of_tools_that_cannot_be_made_is_refused(choice: Any, message: str) -> None:
    with pytest.raises(ParameterError, match=message) as caught:
        response(tools=[TOOL], tool_choice=choice)
    assert caught.value.param == "tool_choice"


def test_the_schema_of_the_answer_is_no_option_of_the_model() -> None:
    form = {"type": "json_schema", "json_schema": {"name": "place", "schema": SCHEMA, "strict": True}}
    for question in (
        chat(response_format=form),
        response(text={"format": {"type": "json_schema", "name": "place", "schema": SCHEMA}}),
    ):
        assert (question.output, question.config) == (SCHEMA, {})
    with pytest.raises(ParameterError) as caught:
        chat(response_format={"type": "json_schema", "json_schema": {"schema": SCHEMA, "other": 1}})
    assert caught.value.param == "response_format.json_schema.other"


def result(text: str, name: str, call_id: str) -> Message:
    return Message("function", text, name=name, extra={"function_id": call_id})


def call(name: str, arguments: str, call_id: str) -> Message:
    return Message("assistant", "", function_call=FunctionCall(name, arguments), extra={"function_id": call_id})


CHAT_CALLS = [
    {"id": "c1", "type": "function", "function": {"name": "one", "arguments": "{}"}},
    {"id": "c2", "type": "function", "function": {"name": "two", "arguments": '{"a": 1}'}},
]


def chat_result(call_id: str, content: Any) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def test_the_messages_of_a_chat_keep_their_order_roles_and_names() -> None:
    asked = [
        {"role": "system", "content": "Be brief."},
        {"role": "developer", "content": [{"type": "text", "text": "Be"}, {"type": "text", "text": "kind."}]},
        {"role": "user", "content": "Hi", "name": "ada"},
        {"role": "assistant", "content": "I look.", "reasoning_content": "Hm.", "tool_calls": CHAT_CALLS},
        chat_result("c2", "2"),
        chat_result("c1", [{"type": "text", "text": "1"}]),
        {"role": "assistant", "content": None, "refusal": "I will not."},
        {"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]},
        {"role": "assistant", "content": ""},
        {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
    ]
    assert list(chat(messages=asked).messages) == [
        Message("system", "Be brief."),
        Message("system", "Be\nkind."),
        Message("user", "Hi", name="ada"),
        Message("assistant", "", reasoning_content="Hm."),
        Message("assistant", "I look."),
        call("one", "{}", "c1"),
        call("two", '{"a": 1}', "c2"),
        result("2", "two", "c2"),
        result("1", "one", "c1"),
        Message("assistant", "I will not."),
        Message("assistant", "No."),
        Message("assistant", ""),
        Message("user", [ContentItem(text="a"), ContentItem(text="b")]),
    ]


def test_only_the_results_at_the_end_of_a_chat_answer_calls() -> None:
    calls = {"role": "assistant", "tool_calls": CHAT_CALLS}
    user = {"role": "user", "content": "Go on"}
    assert chat(messages=[calls, chat_result("c1", "1"), chat_result("c2", "2")]).results == {"c1": "1", "c2": "2"}
    assert chat(messages=[calls, chat_result("c1", "1"), user]).results == {}
    assert chat(messages=[calls, chat_result("c1", "1"), calls, chat_result("c2", "2")]).results == {"c2": "2"}


def item(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": kind, **fields}


def test_the_items_of_a_response_keep_their_order_and_roles() -> None:
    asked = [
        {"role": "system", "content": "Be brief."},
        item("message", role="developer", content=[item("input_text", text="Be"), item("text", text="kind.")]),
        item("compaction", encrypted_content=seal_summary("It was 🙂.")),
        item("message", role="user", content=[item("input_text", text="a"), item("refusal", refusal="b")]),
        item("reasoning", summary=[item("summary_text", text="short")]),
        item(
            "reasoning",
            summary=[item("summary_text", text="short")],
            content=[item("reasoning_text", text="l1"), item("reasoning_text", text="l2")],
        ),
        item(
            "message", role="assistant", content=[item("output_text", text="I look."), item("refusal", refusal="No.")]
        ),
        item("function_call", call_id="c1", name="one", arguments="{}"),
        item("mcp_approval_request", id="m", name="pay", arguments="{}", server_label="s"),
        item("function_call_output", call_id="c1", output="1"),
        item("function_call_output", call_id="c9", output=[item("input_text", text="9")]),
        item("mcp_approval_response", approval_request_id="mcpr_c3", approve=False),
    ]
    question = response(input=asked)
    assert list(question.messages) == [
        Message("system", "Be brief."),
        Message("system", "Be\nkind."),
        Message("user", "Summary of the conversation so far:\nIt was 🙂."),
        Message("user", [ContentItem(text="a"), ContentItem(text="b")]),
        Message("assistant", "", reasoning_content="short"),
        Message("assistant", "", reasoning_content="l1\nl2"),
        Message("assistant", "I look.\nNo."),
        call("one", "{}", "c1"),
        result("1", "one", "c1"),
        result("9", "tool", "c9"),
    ]
    assert (question.answers, question.has_others) == ({"c1": "1", "c9": "9", "c3": False}, True)
    assert response(input=asked[-3:]).has_others is False


@pytest.mark.parametrize("role", ["assistant", "system", "developer"])
def test_only_users_send_media(role: str) -> None:
    """An image in another message is refused, since the agent would not see it."""
    parts = [item("input_text", text="See"), item("input_image", image_url="https://example.org/a.png")]
    with pytest.raises(ParameterError, match="does not support parts of this type") as caught:
        response(input=[item("message", role=role, content=parts)])
    assert caught.value.param == "input"


def test_a_summary_with_half_a_character_comes_back() -> None:
    (message,) = response(input=[item("compaction", encrypted_content=seal_summary("half \ud83d"))]).messages
    assert message.get_text_content().endswith("half ?")


FLAGS: list[tuple[dict[str, Any], Mapping[str, Any]]] = [
    ({}, {"stream": False, "background": False, "store": True, "instructions": "", "previous": "", "conversation": ""}),
    ({"store": None, "stream": None}, {"store": True, "stream": False}),
    ({"store": False, "stream": True}, {"store": False, "stream": True}),
    ({"store": True, "background": True}, {"store": True, "background": True}),
    ({"instructions": "Be brief.", "previous_response_id": "r"}, {"instructions": "Be brief.", "previous": "r"}),
    ({"conversation": "c"}, {"conversation": "c"}),
    ({"conversation": {"id": "c"}}, {"conversation": "c"}),
]


@pytest.mark.parametrize(("change", "expected"), FLAGS, ids=str)
def test_a_question_has_the_wishes_of_its_request(change: dict[str, Any], expected: Mapping[str, Any]) -> None:
    question = response(**change)
    assert {name: getattr(question, name) for name in expected} == expected


ECHOED: dict[str, Any] = {
    "instructions": "Be brief.", "temperature": 0, "top_p": 0.5, "presence_penalty": 1, "frequency_penalty": -1,
    "max_output_tokens": 20, "parallel_tool_calls": False, "tools": [TOOL], "tool_choice": "auto",
    "reasoning": {"effort": "low"}, "metadata": {"a": "b"}, "truncation": "disabled", "user": "u",
    "safety_identifier": "s", "prompt_cache_key": "k", "background": True, "store": True,
    "text": {"format": {"type": "text"}},
}  # fmt: skip


@pytest.mark.parametrize("name", list(ECHOED))
def test_a_response_repeats_the_options_of_its_request_and_no_others(name: str) -> None:
    assert response(**{name: ECHOED[name], "stream": True, "conversation": {"id": "c"}}).echo == {
        name: ECHOED[name],
        "conversation": "c",
    }


BASE64 = "UklGRg=="
PARTS: list[tuple[str, str, dict[str, Any], ContentItem | str]] = [
    ("audio", "input_audio", {"data": BASE64, "format": "mp3"}, ContentItem(audio=f"data:audio/mpeg;base64,{BASE64}")),
    ("audio", "input_audio", {"data": BASE64, "format": "wav"}, ContentItem(audio=f"data:audio/wav;base64,{BASE64}")),
    ("audio", "input_audio", {"data": BASE64, "format": "flac"}, "input_audio.format"),
    ("audio", "input_audio", {"data": "UklG Rg", "format": "wav"}, "input_audio"),
    (
        "file", "file", {"file_data": BASE64, "filename": "a.pdf"},
        ContentItem(file=f"data:application/pdf;name=a.pdf;base64,{BASE64}"),
    ),
    ("file", "file", {"file_data": BASE64}, ContentItem(file=f"data:application/octet-stream;base64,{BASE64}")),
    ("file", "file", {"file_data": f"DATA:x/y;base64,{BASE64}"}, ContentItem(file=f"DATA:x/y;base64,{BASE64}")),
    (
        "file", "file", {"file_data": f"data:x/y;base64,{BASE64}", "filename": "a b.pdf"},
        ContentItem(file=f"data:x/y;name=a%20b.pdf;base64,{BASE64}"),
    ),
    (
        "file", "file", {"file_data": f"data:x/y;name=b.pdf;base64,{BASE64}", "filename": "a.pdf"},
        ContentItem(file=f"data:x/y;name=a.pdf;base64,{BASE64}"),
    ),
    ("file", "file", {"file_data": "%"}, "file"),
    ("file", "file", {"file_data": ""}, "file.file_data"),
    ("file", "file", {"file_id": "f", "file_data": BASE64}, "file.file_id"),
    ("image", "image_url", {"url": "https://example.org/a.png"}, ContentItem(image="https://example.org/a.png")),
    (
        "image", "image_url", {"url": "https://example.org/a.png", "detail": "auto"},
        ContentItem(image="https://example.org/a.png"),
    ),
    ("image", "image_url", {"url": "https://example.org/a.png", "detail": "high"}, "image_url.detail"),
    ("image", "image_url", {"url": "/etc/passwd"}, "image_url"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "key", "value", "expected"), PARTS, ids=str)
def test_a_part_is_read_or_refused_by_its_name(
    kind: str, key: str, value: dict[str, Any], expected: ContentItem | str
) -> None:
    in_chat = [item("text", text="look"), item(key, **{key: value})]
    flat = {"image_url": value.get("url"), **({"detail": value["detail"]} if "detail" in value else {})}
    part = {"audio": {key: value}, "file": value, "image": flat}[kind]
    in_response = [item("input_text", text="look"), item(f"input_{kind}", **part)]
    for read, name, content in ((chat, "messages", in_chat), (response, "input", in_response)):
        asked = {name: [{"role": "user", "content": content}]}
        if isinstance(expected, ContentItem):
            (message,) = read(**asked).messages
            assert message.content == [ContentItem(text="look"), expected]
        else:
            with pytest.raises(ParameterError) as caught:
                read(**asked)
            place = f"{name}.0.content.1"
            # Responses have the fields of a file in the part itself.
            wanted = expected if read is chat or kind != "file" else expected.removeprefix("file").removeprefix(".")
            assert caught.value.param == f"{place}.{wanted}".removesuffix(".")


@pytest.mark.parametrize(
    ("status", "code", "kind", "outer_code"),
    [
        (400, "x", "invalid_request_error", "x"),
        (401, "unauthorized", "authentication_error", "invalid_api_key"),
        (403, "forbidden", "permission_error", "forbidden"),
        (404, "not_found", "invalid_request_error", "not_found"),
        (429, "busy", "rate_limit_error", "rate_limit_exceeded"),
        (499, "y", "invalid_request_error", "y"),
        (500, "internal", "server_error", "server_error"),
        (502, "z", "server_error", "z"),
    ],
)
def test_an_error_has_the_type_that_clients_of_openai_act_on(
    status: int, code: str, kind: str, outer_code: str
) -> None:
    refusal = RequestRefusedError("no", status=status, code=code).refusal
    assert error_object(refusal, "p") == {"message": "no", "type": kind, "param": "p", "code": outer_code}


ECHOED: dict[str, Any] = {
    "instructions": "Be brief.", "previous_response_id": "resp_1", "temperature": 0.5, "top_p": 0.5,
    "presence_penalty": 1, "frequency_penalty": 1, "max_output_tokens": 5, "parallel_tool_calls": False,
    "tools": [TOOL], "tool_choice": "none", "reasoning": {"effort": "low"}, "metadata": {"a": "b"},
    "truncation": "disabled", "user": "ada", "safety_identifier": "bob", "prompt_cache_key": "k", "background": True,
    "store": True, "text": {"format": {"type": "text"}},
}  # fmt: skip


@pytest.mark.parametrize("name", list(ECHOED))
def test_a_response_repeats_each_parameter_of_its_request(name: str) -> None:
    assert response(**{name: ECHOED[name]}).echo == {name: ECHOED[name]}
    assert response(stream=True, include=None).echo == {}
    for conversation in ("conv_1", {"id": "conv_1"}):
        question = response(conversation=conversation)
        assert (question.echo, question.conversation) == ({"conversation": "conv_1"}, "conv_1")


MISSING = [
    (response, {"conversation": {}}, "conversation.id"),
    (response, {"input": [{"type": "function_call", "call_id": "c", "name": "n"}]}, "input.0.arguments"),
    (response, {"input": [{"type": "function_call_output", "call_id": "c"}]}, "input.0.output"),
    (
        chat,
        {"messages": [{"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "n"}}]}]},
        "messages.0.tool_calls.0.function.arguments",
    ),
    (chat, {"messages": [{"role": "tool", "content": "x"}]}, "messages.0.tool_call_id"),
]


@pytest.mark.parametrize(("read", "change", "param"), MISSING, ids=[one[2] for one in MISSING])
def test_a_part_that_is_missing_is_named(read: Read, change: dict[str, Any], param: str) -> None:
    with pytest.raises(ParameterError) as caught:
        read(**change)
    assert (caught.value.code, caught.value.param) == ("missing_required_parameter", param)


def test_the_output_of_a_call_may_come_in_parts() -> None:
    parts = [{"type": "input_text", "text": "low"}, {"type": "input_text", "text": "water"}]
    question = response(input=[{"type": "function_call_output", "call_id": "c.r", "output": parts}])
    assert question.messages == [result("low\nwater", "tool", "c.r")]
    assert (question.answers, question.has_others) == ({"c.r": "low\nwater"}, False)
