"""Test that no request breaks a rule of the protocol, whatever the history, the schema and the model."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jackfield.errors import UnsupportedInputError
from jackfield.messages import ContentItem, FunctionCall, Message
from jackfield.plugins import PluginHost
from jackfield.settings import Settings
from jackfield_anthropic.backend import AnthropicChat, AnthropicServer
from jackfield_anthropic.schemas import enforceable_schema
from jackfield_testkit.anthropic_rules import problem_in

BITMAP = "data:image/png;base64," + base64.b64encode(b"BM" + bytes(40)).decode()
JPEG = "data:image/png;base64," + base64.b64encode(b"\xff\xd8\xff\xe0" + bytes(40)).decode()
MODELS = (
    "test-model",
    "claude-3-opus-20240229",
    "claude-opus-4-1-20250805",
    "claude-sonnet-4-5",
    "claude-opus-4-6",
    "claude-opus-4-8",
    "claude-opus-5",
    "claude-opus-5-5",
    "claude-sonnet-5-5",
    "claude-haiku-5-5",
    "claude-fable-5-2",
)
BUDGETED = ("claude-opus-4-1-20250805", "claude-sonnet-4-5", "claude-opus-4-6", "test-model")

texts = st.sampled_from(["", " ", "\n\t", "hello", "ends with space \n", "你好", "\u2028"])
names = st.sampled_from(["get_time", "server.get time", "天气", "天 气", "a" * 200, "get_time!", "_"])
ids = st.sampled_from([None, "", "toolu_1", "call.1", "call_1", "call 1", "工具", "call_a|fc_b", "x" * 300])
images = st.sampled_from(["https://example.org/a.png", JPEG]).map(lambda address: ContentItem(image=address))
results = st.one_of(
    texts,
    st.lists(
        st.one_of(texts.map(lambda text: ContentItem(text=text)), images, st.just(ContentItem(image=BITMAP))),
        min_size=1,
        max_size=3,
    ),
)


def with_id(call_id: str | None) -> dict[str, Any] | None:
    return None if call_id is None else {"function_id": call_id}


users = st.builds(Message, st.just("user"), st.one_of(texts, st.lists(images, min_size=1, max_size=2)))
answers = st.builds(Message, st.just("assistant"), texts)
calls = st.builds(
    lambda name, call_id, arguments: Message(
        "assistant", "", function_call=FunctionCall(name, arguments), extra=with_id(call_id)
    ),
    names,
    ids,
    st.sampled_from(["{}", '{"a": 1}', "", "[1]", "{broken"]),
)
tool_results = st.builds(
    lambda name, call_id, content: Message("function", content, name=name, extra=with_id(call_id)), names, ids, results
)
histories = st.lists(st.one_of(users, answers, calls, tool_results), min_size=1, max_size=8)
systems: st.SearchStrategy[list[Message]] = st.one_of(st.just([]), texts.map(lambda text: [Message("system", text)]))
functions = st.lists(names, unique=True, max_size=3).map(
    lambda chosen: [{"name": name, "description": "", "parameters": {"type": "object"}} for name in chosen]
)


def body_of(
    model: str, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]] = (), **settings: Any
) -> dict[str, Any]:
    options = settings.pop("options", None)
    chat = AnthropicChat({"model": model, **settings}, host=PluginHost(Settings()))
    request = chat.make_request(list(messages), tools, config=options)
    body: dict[str, Any] = json.loads(chat.post(request, AnthropicServer("")).body)
    return body


@given(st.sampled_from(MODELS), systems, histories, functions, st.sampled_from(["system", "history", None]))
@example("test-model", [], [Message("assistant", "Hi, I am Claude.")], [], "history")
@example("test-model", [Message("system", "be brief")], [Message("user", " ")], [], "history")
def test_any_history_is_accepted(
    model: str, system: list[Message], history: list[Message], tools: list[Mapping[str, Any]], cache: str | None
) -> None:
    assert problem_in(body_of(model, [*system, *history], tools, cache_control=cache)) == ""


@given(st.sampled_from(BUDGETED), histories, functions, st.integers(1024, 31_000))
def test_any_history_is_accepted_while_the_model_thinks(
    model: str, history: list[Message], tools: list[Mapping[str, Any]], budget: int
) -> None:
    assert problem_in(body_of(model, history, tools, thinking_budget=budget)) == ""


@given(histories, st.sampled_from(["web_search", "code_execution"]))
def test_hosted_tools_stand_beside_any_history(history: list[Message], hosted: str) -> None:
    body = body_of("claude-opus-5", history, hosted_tools=[hosted])
    assert problem_in(body) == ""
    assert body["tools"][-1]["name"] == hosted
    assert "tool_choice" not in body


@given(names, names)
def test_two_names_never_become_one(one: str, other: str) -> None:
    tools = [{"name": name, "parameters": {"type": "object"}} for name in {one, other}]
    sent = [tool["name"] for tool in body_of("test-model", [Message("user", "a")], tools)["tools"]]
    assert len(set(sent)) == len({one, other})


@pytest.mark.parametrize("scheme", ["data:", "Data:"])
def test_an_image_of_a_wrong_label_is_sent_as_what_it_is(scheme: str) -> None:
    body = body_of("test-model", [Message("user", [ContentItem(image=scheme + JPEG[5:])])])
    source = {"type": "base64", "media_type": "image/jpeg", "data": JPEG.partition(",")[2]}
    assert body["messages"][0]["content"] == [{"type": "image", "source": source}]


def test_an_image_of_a_user_that_the_protocol_does_not_take_is_refused_and_one_of_a_tool_noted() -> None:
    item = ContentItem(image=BITMAP)
    with pytest.raises(UnsupportedInputError, match=r"PNG, JPEG, GIF and WebP images, got image/bmp"):
        body_of("test-model", [Message("user", [item])])
    call = Message("assistant", "", function_call=FunctionCall("draw", "{}"))
    body = body_of("test-model", [Message("user", "a"), call, Message("function", [item], name="draw")])
    (result,) = body["messages"][-1]["content"]
    assert "image left out" in str(result["content"])


def test_a_history_begins_with_the_user_and_ends_without_white_space() -> None:
    def sent(*messages: Message) -> list[tuple[str, list[str]]]:
        told = body_of("test-model", messages)["messages"]
        return [(message["role"], [block["text"] for block in message["content"]]) for message in told]

    nothing = ("user", ["(The user has written nothing yet.)"])
    assert sent(Message("system", "be brief")) == [nothing]
    assert sent(Message("assistant", "a")) == [nothing, ("assistant", ["a"])]
    begun = [Message("user", "a"), Message("assistant", "  b\n c \n")]
    assert sent(*begun) == [("user", ["a"]), ("assistant", ["  b\n c"])]
    assert sent(*begun, Message("user", "d")) == [("user", ["a"]), ("assistant", ["  b\n c \n"]), ("user", ["d"])]


def test_a_result_that_nobody_asked_for_follows_those_of_the_calls_with_its_media() -> None:
    call = Message("assistant", "", function_call=FunctionCall("draw", "{}"), extra={"function_id": "c1"})
    own = Message("function", "done", name="draw", extra={"function_id": "c1"})
    stray = Message("function", [ContentItem(text="a plot"), ContentItem(image=JPEG)], name="plot")
    body = body_of("test-model", [Message("user", "a"), call, own, stray])
    result, text, image = body["messages"][-1]["content"]
    assert (result["type"], result["content"]) == ("tool_result", "done")
    assert text == {"type": "text", "text": "Result of the tool plot:\na plot"}
    assert image["type"] == "image"


def test_every_image_that_a_tool_returns_is_sent_or_noted() -> None:
    items = [ContentItem(image=BITMAP), ContentItem(image=JPEG), ContentItem(image=BITMAP), ContentItem(text="end")]
    call = Message("assistant", "", function_call=FunctionCall("draw", "{}"))
    body = body_of("test-model", [Message("user", "a"), call, Message("function", items, name="draw")])
    (result,) = body["messages"][-1]["content"]
    told = [block.get("text", block["type"])[:15] for block in result["content"]]
    assert told == ["end", "(image left out", "image", "(image left out"]


@pytest.mark.parametrize(("name", "title"), [("", {}), (";name=report.pdf", {"title": "report.pdf"})])
def test_a_document_has_a_title_if_it_has_a_name(name: str, title: dict[str, str]) -> None:
    pdf = base64.b64encode(b"%PDF-1.7").decode()
    item = ContentItem(file=f"DATA:application/pdf{name};base64,{pdf}")
    (block,) = body_of("test-model", [Message("user", [item])])["messages"][0]["content"]
    source = {"type": "base64", "media_type": "application/pdf", "data": pdf}
    assert block == {"type": "document", "source": source, **title}


# --- schemas ----------------------------------------------------------------------------------------------------------

plain_schemas = st.sampled_from(
    [
        {"type": "string"},
        {"type": "string", "pattern": "a+", "maxLength": 3},
        {"type": "string", "format": "date"},
        {"type": "string", "format": "binary"},
        {"type": "integer", "minimum": 1, "description": "A number."},
        {"type": ["string", "null"], "title": "Name"},
        {"type": ["integer", "null"], "minimum": 0},
        {"enum": ["a", "b"]},
        {"const": 3},
        {"type": "null"},
        {"$ref": "#/$defs/Place"},
    ]
)


def nested(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    properties = st.dictionaries(st.sampled_from(["a", "b", "c"]), inner, min_size=1)
    return st.one_of(
        properties.map(lambda own: {"type": "object", "properties": own, "required": list(own)[:1]}),
        st.tuples(inner, st.integers(0, 3)).map(
            lambda pair: {"type": "array", "items": pair[0], "minItems": pair[1], "maxItems": 5}
        ),
        st.lists(inner, min_size=1, max_size=2).map(lambda several: {"anyOf": several}),
        st.lists(inner, min_size=1, max_size=2).map(lambda several: {"oneOf": several}),
    )


schemas = st.recursive(plain_schemas, nested, max_leaves=6)
PLACE = {"type": "object", "properties": {"city": {"type": "string"}}, "additionalProperties": False}


@given(schemas)
def test_a_schema_that_can_be_enforced_is_sent_in_the_accepted_form(schema: dict[str, Any]) -> None:
    whole = {"$defs": {"Place": PLACE}, "type": "object", "properties": {"value": schema}, "required": ["value"]}
    wanted = {"type": "json_schema", "json_schema": {"name": "x", "schema": whole}}
    body = body_of("claude-opus-5", [Message("user", "a")], options={"response_format": wanted})
    assert problem_in(body) == ""
    assert "format" in body["output_config"]


def test_a_constraint_that_the_server_does_not_know_becomes_a_text_for_the_model() -> None:
    schema = {"type": "object", "properties": {"age": {"type": "integer", "minimum": 0, "description": "In years"}}}
    fitted = enforceable_schema(schema)
    assert fitted is not None
    assert fitted["properties"]["age"] == {"type": "integer", "description": "In years (minimum: 0)"}


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object"},
        {"type": "object", "additionalProperties": {"type": "string"}},
        {"type": "object", "properties": {"a": {}}},
        {"type": "object", "properties": {"a": True}},
        {"type": "object", "properties": {"a": {"type": "array"}}},
        {"type": "object", "properties": {"a": {"$ref": "#/$defs/Gone"}}},
        {
            "$defs": {"Node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}},
            "type": "object",
            "properties": {"first": {"$ref": "#/$defs/Node"}},
        },
        {
            "$defs": {
                "Tree": {"type": "object", "properties": {"leaf": {"$ref": "#/$defs/Leaf"}}},
                "Leaf": {"type": "object", "properties": {"tree": {"$ref": "#/$defs/Tree"}}},
            },
            "type": "object",
            "properties": {"root": {"$ref": "#/$defs/Tree"}},
        },
    ],
)
@pytest.mark.parametrize("model", ["claude-opus-5-5", "test-model"])
def test_a_schema_that_cannot_be_enforced_is_in_the_system_message(model: str, schema: dict[str, Any]) -> None:
    assert enforceable_schema(schema) is None
    wanted = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    body = body_of(model, [Message("system", "be brief"), Message("user", "a")], options={"response_format": wanted})
    assert problem_in(body) == ""
    assert "output_config" not in body
    assert "JSON Schema" in body["system"][-1]["text"]


def test_a_model_that_is_known_to_enforce_no_schema_gets_it_in_the_system_message() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    wanted = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    body = body_of("claude-3-opus-20240229", [Message("user", "a")], options={"response_format": wanted})
    assert ("output_config" in body, "JSON Schema" in body["system"][0]["text"]) == (False, True)
