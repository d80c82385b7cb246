"""A request becomes what the API takes: options, tools, messages, media."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from jackfield.config import GenerateConfig
from jackfield.errors import UnsupportedInputError
from jackfield.messages import ContentItem, FunctionCall, Message
from jackfield.request import ChatRequest, ModelFacts
from jackfield_backends.history import NO_RESULT
from jackfield_openai.responses.config import ResponsesConfig
from jackfield_openai.responses.wire import request_body

Wire = dict[str, Any]

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
WEATHER: Wire = {
    "name": "get_weather",
    "description": "The weather at a place.",
    "parameters": {"type": "object", "properties": {"place": {"type": "string"}}},
}
HELLO = (Message("user", "hello"),)


def body(
    messages: Sequence[Message] = HELLO, functions: Sequence[Wire] = (), *, cfg: Wire | None = None, **config: Any
) -> Wire:
    facts = ModelFacts(files=config.pop("files", False))
    request = ChatRequest("m", tuple(messages), tuple(functions), GenerateConfig.parse(cfg), facts=facts)
    return request_body(request, ResponsesConfig(model="m", **config))


def items(*messages: Message, **config: Any) -> list[Wire]:
    sent: list[Wire] = body(messages, **config)["input"]
    return sent


def call(name: str = "get_time", arguments: str = "{}", call_id: str | None = "c1") -> Message:
    extra = None if call_id is None else {"function_id": call_id}
    return Message("assistant", function_call=FunctionCall(name, arguments), extra=extra)


def result(content: Any, name: str = "get_time", call_id: str | None = "c1") -> Message:
    return Message("function", content, name=name, extra=None if call_id is None else {"function_id": call_id})


# --- options ---


def test_the_provider_is_told_to_keep_nothing_and_to_give_reasoning_that_can_be_sent_back() -> None:
    assert body() == {
        "model": "m",
        "input": [{"type": "message", "role": "user", "content": "hello"}],
        "stream": True,
        "store": False,
        "include": ["reasoning.encrypted_content"],
    }


def test_what_the_provider_keeps_is_the_callers_choice() -> None:
    assert body(store=True)["store"] is True
    assert body(store=None, include=()).keys().isdisjoint({"store", "include"})


@pytest.mark.parametrize(
    ("cfg", "config", "sent"),
    [
        ({"max_tokens": 17}, {}, {"max_output_tokens": 17}),
        ({"temperature": 0.0, "top_p": 0.5}, {}, {"temperature": 0.0, "top_p": 0.5}),
        ({"reasoning_effort": "low"}, {}, {"reasoning": {"effort": "low"}}),
        ({}, {"reasoning_summary": "auto"}, {"reasoning": {"summary": "auto"}}),
        (
            {"reasoning_effort": "low"},
            {"reasoning_summary": "auto"},
            {"reasoning": {"effort": "low", "summary": "auto"}},
        ),
        ({"response_format": {"type": "json_object"}}, {}, {"text": {"format": {"type": "json_object"}}}),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {}, "strict": True}}},
            {},
            {"text": {"format": {"type": "json_schema", "name": "n", "schema": {}, "strict": True}}},
        ),
        ({"stop": ["END"], "seed": 7}, {}, {"stop": ["END"], "seed": 7}),
        ({}, {"prompt_cache_key": "k"}, {"prompt_cache_key": "k"}),
        ({"extra_body": {"service_tier": "flex"}}, {}, {"service_tier": "flex"}),
    ],
)
def test_an_option_has_the_name_that_this_api_gives_it(cfg: Wire, config: Wire, sent: Wire) -> None:
    usual = body()
    assert {key: value for key, value in body(cfg=cfg, **config).items() if key not in usual} == sent


def test_one_key_of_an_object_can_be_set_in_extra_body() -> None:
    cfg = {
        "reasoning_effort": "low",
        "response_format": {"type": "json_object"},
        "extra_body": {"reasoning": {"mode": "pro"}, "text": {"verbosity": "low"}, "store": True},
    }
    sent = body(cfg=cfg)
    assert sent["reasoning"] == {"effort": "low", "mode": "pro"}
    assert sent["text"] == {"format": {"type": "json_object"}, "verbosity": "low"}
    assert sent["store"] is True


def test_a_tool_is_flat_and_strict_only_if_it_says_so() -> None:
    tools = body(functions=[WEATHER, {**WEATHER, "strict": True}])["tools"]
    assert tools == [{"type": "function", **WEATHER, "strict": False}, {"type": "function", **WEATHER, "strict": True}]


def test_a_tool_can_be_chosen_by_its_name() -> None:
    sent = body(functions=[WEATHER], cfg={"function_choice": "get_weather", "parallel_function_calls": False})
    assert sent["tool_choice"] == {"type": "function", "name": "get_weather"}
    assert sent["parallel_tool_calls"] is False
    for choice in ("auto", "none", "required"):
        sent = body(functions=[WEATHER], cfg={"function_choice": choice})
        assert sent["tool_choice"] == choice
        assert "parallel_tool_calls" not in sent


def test_tools_of_the_provider_stand_beside_the_callers() -> None:
    search = {"type": "web_search"}
    assert body(functions=[WEATHER], hosted_tools=[search])["tools"][1] == search
    alone = body(hosted_tools=[search])
    assert alone["tools"] == [search]
    assert "tool_choice" not in alone


# --- messages ---


def test_the_system_speaks_through_the_instructions() -> None:
    sent = body([Message("system", "be brief"), *HELLO])
    assert sent["instructions"] == "be brief"
    assert [item["role"] for item in sent["input"]] == ["user"]


def test_a_request_of_the_system_alone_is_still_a_message() -> None:
    sent = body([Message("system", "be brief")])
    assert "instructions" not in sent
    assert sent["input"] == [{"type": "message", "role": "system", "content": "be brief"}]


def test_an_answer_from_elsewhere_is_a_message_and_calls_then_their_results() -> None:
    sent = items(
        *HELLO,
        Message("assistant", "", reasoning_content="a thought"),
        Message("assistant", "let me look"),
        call("get_weather", '{"place": "Bern"}', "c1"),
        call("get_time", "{}", "c2"),
        result("noon", call_id="c2"),
        result("snow", "get_weather", "c1"),
    )
    assert sent[1:] == [
        {"type": "message", "role": "assistant", "content": "let me look"},
        {"type": "function_call", "call_id": "c1", "name": "get_weather", "arguments": '{"place": "Bern"}'},
        {"type": "function_call", "call_id": "c2", "name": "get_time", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "snow"},
        {"type": "function_call_output", "call_id": "c2", "output": "noon"},
    ]


def test_a_call_without_a_result_and_a_result_without_a_call_leave_the_history_valid() -> None:
    sent = items(*HELLO, call(call_id=None), Message("user", "and?"), result("noon", "clock", "c9"))
    assert [item["type"] for item in sent] == ["message", "function_call", "function_call_output", "message", "message"]
    assert sent[1]["call_id"] == sent[2]["call_id"] != ""
    assert sent[2]["output"] == NO_RESULT
    assert sent[4] == {"type": "message", "role": "user", "content": "Result of the tool clock:\nnoon"}


def test_an_answer_that_says_nothing_is_left_out() -> None:
    assert [item["role"] for item in items(*HELLO, Message("assistant", ""), *HELLO)] == ["user", "user"]


# --- media ---


def test_a_picture_is_sent_as_its_address_or_its_content(tmp_path: Path) -> None:
    local = tmp_path / "a.png"
    local.write_bytes(PIXEL)
    pictures = ["http://127.0.0.1/a.png", "data:image/png;base64,AA", str(local), local.as_uri()]
    (sent,) = items(Message("user", [ContentItem(text="look"), *(ContentItem(image=picture) for picture in pictures)]))
    inline = "data:image/png;base64," + base64.b64encode(PIXEL).decode()
    assert sent["content"][0] == {"type": "input_text", "text": "look"}
    assert sent["content"][1:] == [
        {"type": "input_image", "image_url": address, "detail": "auto"} for address in [*pictures[:2], inline, inline]
    ]


def test_a_text_is_no_picture(tmp_path: Path) -> None:
    diary = tmp_path / "diary.png"
    diary.write_text("dear diary")
    with pytest.raises(UnsupportedInputError, match=r"'diary\.png'"):
        items(Message("user", [ContentItem(image=str(diary))]))


def test_a_file_is_a_note_unless_files_are_wanted(tmp_path: Path) -> None:
    paper = tmp_path / "a paper.pdf"
    paper.write_bytes(b"%PDF-1.7")
    message = Message(
        "user", [ContentItem(text="read"), ContentItem(file=str(paper)), ContentItem(file="http://h/b.pdf")]
    )
    (noted,) = items(message)
    assert [part["text"] for part in noted["content"]] == ["read", "[file: a paper.pdf]", "[file: b.pdf]"]
    (sent,) = items(message, files=True)
    assert sent["content"][1:] == [
        {
            "type": "input_file",
            "filename": "a paper.pdf",
            "file_data": "data:application/pdf;base64," + base64.b64encode(b"%PDF-1.7").decode(),
        },
        {"type": "input_file", "file_url": "http://h/b.pdf"},
    ]


@pytest.mark.parametrize(
    ("address", "sent"),
    [
        ("data:application/pdf;base64,AA==", {"filename": "file", "file_data": "data:application/pdf;base64,AA=="}),
        ("DATA:application/pdf;base64,AA==", {"filename": "file", "file_data": "data:application/pdf;base64,AA=="}),
        (
            "data:application/pdf;name=a%20b.pdf;base64,AA==",
            {"filename": "a b.pdf", "file_data": "data:application/pdf;base64,AA=="},
        ),
        ("data:text/plain,hello", {"filename": "file", "file_data": "data:text/plain,hello"}),
        ("https://h/a.pdf?x=1", {"file_url": "https://h/a.pdf?x=1"}),
    ],
)
def test_a_file_without_a_path_is_sent_by_its_content_or_its_address(address: str, sent: Wire) -> None:
    (message,) = items(Message("user", [ContentItem(file=address)]), files=True)
    assert message["content"] == [{"type": "input_file", **sent}]


def test_a_file_that_is_not_there_is_named_without_its_folder(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedInputError, match=r"the file 'no\.pdf' cannot be read") as caught:
        items(Message("user", [ContentItem(file=str(tmp_path / "no.pdf"))]), files=True)
    assert str(tmp_path) not in str(caught.value)


@pytest.mark.parametrize(("size_bytes", "is_sent"), [(50_000_000, True), (50_000_001, False)])
def test_a_file_may_have_fifty_million_bytes(tmp_path: Path, size_bytes: int, is_sent: bool) -> None:
    paper = tmp_path / "paper.pdf"
    with paper.open("wb") as file:
        file.truncate(size_bytes)
    message = Message("user", [ContentItem(file=str(paper))])
    if is_sent:
        assert items(message, files=True)[0]["content"][0]["file_data"].endswith("AAAA=")
        return
    with pytest.raises(UnsupportedInputError, match=r"'paper\.pdf' is larger than 50,000,000 bytes: pass its URL"):
        items(message, files=True)


def test_pictures_of_a_result_stand_in_the_result() -> None:
    picture = ContentItem(image="http://127.0.0.1/a.png")
    shown = {"type": "input_image", "image_url": "http://127.0.0.1/a.png", "detail": "auto"}
    sent = items(*HELLO, call(), result([ContentItem(text="a plot"), picture]), call(), result([picture]))
    outputs = [item["output"] for item in sent if item["type"] == "function_call_output"]
    assert outputs == [[{"type": "input_text", "text": "a plot"}, shown], [shown]]


def test_pictures_of_a_result_without_a_call_stand_beside_its_text() -> None:
    picture = ContentItem(image="http://127.0.0.1/a.png")
    [*_, stray] = items(*HELLO, result([ContentItem(text="a plot"), picture], call_id="gone"))
    assert stray["role"] == "user"
    text, shown = stray["content"]
    assert text["text"].endswith("\na plot")
    assert shown == {"type": "input_image", "image_url": "http://127.0.0.1/a.png", "detail": "auto"}


def test_pictures_that_a_model_has_made_elsewhere_are_a_note() -> None:
    made = Message("assistant", [ContentItem(text="here"), ContentItem(image="data:image/png;base64,AA")])
    assert items(*HELLO, made, *HELLO)[1]["content"] == "here\n[image: data]"


def test_a_body_is_json() -> None:
    assert json.loads(json.dumps(body(functions=[WEATHER])))["tools"][0]["name"] == "get_weather"
