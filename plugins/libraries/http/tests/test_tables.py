"""Tables read any protocol of JSON objects."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield.config import GenerateConfig
from jackfield.errors import (
    ContextLengthError,
    ModelAuthError,
    ModelOverloadedError,
    ModelResponseError,
    RateLimitedError,
    UnsupportedInputError,
)
from jackfield.events import FunctionCallDelta, ModelFinished, ReasoningDelta, TextDelta, UsageReported
from jackfield.messages import Message, Usage
from jackfield.request import ChatRequest
from jackfield_http import Failures, KeyRule, Server, Wire
from jackfield_http.tables import AnswerKeys, CallKeys, ErrorKeys, TableBackend, TableReader, UsageKeys, value_at

CALL = CallKeys("calls", id="id", name="function.name", arguments=("args", "function.arguments"))


class FlatReader(TableReader):
    """All objects have one form."""

    answers: ClassVar = {
        "": AnswerKeys(
            text=("out.0.text", "text"),
            reasoning="thought",
            calls=CALL,
            reason="why",
            usage=UsageKeys("n.in", "n.out"),
            model="model",
            id="id",
            created="at",
        )
    }
    reasons: ClassVar = {"fin": "stop"}
    errors = ErrorKeys("bad", classes={"long": ContextLengthError})


class KindReader(TableReader):
    """The form depends on `type`."""

    kind = "type"
    answers: ClassVar = {"text": AnswerKeys(text="value"), "end": AnswerKeys(reason="value")}
    whole_answer = AnswerKeys(parts="parts", reason="why")


class FlatChat(TableBackend):
    backend = "flat"
    base_url = "https://flat.example"
    path = "/ask"
    key_rule = KeyRule("FLAT_KEY", hosts=("flat.example",))
    key_header = "x-flat: Key {key}!"
    answer_reader = FlatReader
    options: ClassVar = {"temperature": "a.b.heat", "max_tokens": "a.most", "stop": "until"}

    def body(self, request: ChatRequest) -> Wire:
        return {"m": request.model}


def events_of(reader: TableReader, *objects: object) -> list[Any]:
    stream = b"".join(b"data: " + json.dumps(each).encode() + b"\n\n" for each in objects)
    return [*reader.feed(stream), *reader.finish()]


def flat() -> FlatReader:
    return FlatReader(Failures("flat"))


def test_each_part_is_read_from_its_place() -> None:
    first = {"model": "m", "id": "i", "at": 5, "thought": "hm", "out": [{"text": "a"}]}
    calls = [{"index": 0, "id": "c", "function": {"name": "f", "arguments": "{"}}]
    more = {"text": "b", "calls": calls}
    last = {"calls": {"index": 0, "args": "}"}, "why": "fin", "n": {"in": 2, "out": 3}}
    assert events_of(flat(), first, more, last) == [
        ReasoningDelta("hm"),
        TextDelta("a"),
        TextDelta("b"),
        FunctionCallDelta(0, "c", "f", "{"),
        FunctionCallDelta(0, "", "", "}"),
        UsageReported(Usage(prompt_tokens=2, completion_tokens=3, total_tokens=5)),
        ModelFinished("stop", "m", "i", 5, provider_reason="fin"),
    ]


def test_the_answer_is_over_with_its_reason_and_its_usage() -> None:
    reader = flat()
    list(reader.feed(b'data: {"why": "fin"}\n\n'))
    assert reader.complete
    assert not reader.done
    list(reader.feed(b'data: {"n": {"in": 1}}\n\n'))
    assert reader.done
    other = KindReader(Failures("kinds"))
    list(other.feed(b'data: {"type": "end", "value": "stop"}\n\n'))
    assert other.done, "its tables have no usage to wait for"


def test_an_object_of_an_unknown_kind_is_skipped_and_one_of_no_kind_is_an_error() -> None:
    end = {"type": "end", "value": "cut"}
    reader = KindReader(Failures("kinds"))
    assert events_of(reader, {"type": "new", "value": "x"}, {"type": "text", "value": "a"}, end) == [
        TextDelta("a"),
        ModelFinished("other", provider_reason="cut"),
    ]
    with pytest.raises(ModelResponseError, match="not part of an answer"):
        events_of(KindReader(Failures("kinds")), {"value": "a"})


def test_a_whole_answer_has_a_table_of_its_own() -> None:
    reader = KindReader(Failures("kinds"))
    body = {"parts": [{"type": "text", "value": "a"}, {"type": "text", "value": "b"}], "why": "stop"}
    assert reader.whole(json.dumps(body).encode()) == [TextDelta("a"), TextDelta("b")]
    assert list(reader.finish()) == [ModelFinished("stop", provider_reason="stop")]


def test_a_text_that_is_no_text_is_not_part_of_an_answer() -> None:
    with pytest.raises(ModelResponseError, match="not part of an answer"):
        events_of(flat(), {"text": 3})


@pytest.mark.parametrize(
    ("body", "status", "error_class", "text"),
    [
        ({"bad": {"code": "long", "message": "too much"}}, 400, ContextLengthError, "too much"),
        ({"bad": {"code": "odd", "message": "who"}}, 401, ModelAuthError, "who"),
        ({"bad": "wait"}, 429, RateLimitedError, "wait"),
        ({"message": "no wrapping"}, 429, RateLimitedError, "no wrapping"),
    ],
)
def test_a_refusal_has_the_class_of_its_code_or_its_status(
    body: object, status: int, error_class: type[Exception], text: str
) -> None:
    error = FlatReader.errors.refused(Failures("flat"), status, json.dumps(body).encode())
    assert type(error) is error_class
    assert text in str(error)
    assert error.status == status


def test_a_page_in_place_of_json_is_quoted() -> None:
    error = FlatReader.errors.refused(Failures("flat"), 502, b"<h1>Bad gateway")
    assert type(error) is ModelOverloadedError
    assert "<h1>Bad gateway" in str(error)


@pytest.mark.parametrize(("code", "error_class"), [("long", ContextLengthError), ("odd", ModelOverloadedError)])
def test_an_error_in_an_answer_has_the_class_of_its_code(code: str, error_class: type[Exception]) -> None:
    with pytest.raises(error_class, match="oh") as caught:
        events_of(flat(), {"bad": {"code": code, "message": "oh"}})
    assert type(caught.value) is error_class


@given(st.dictionaries(st.sampled_from("abc"), st.integers() | st.lists(st.integers(), max_size=2), max_size=3))
def test_a_path_leads_to_a_value_or_to_none_and_never_fails(wire: Mapping[str, Any]) -> None:
    for key, value in wire.items():
        assert value_at(wire, key) == value
        assert value_at(wire, ("d", key)) == value
        assert value_at(wire, f"{key}.x") is None
        assert value_at(wire, f"{key}.1") == (value[1] if isinstance(value, list) and len(value) > 1 else None)
    assert value_at(wire, "") is None
    assert value_at(wire, "d.0.x") is None


def request(**options: Any) -> ChatRequest:
    return ChatRequest("m", (Message("user", "hi"),), config=GenerateConfig(**options))


def body(**options: Any) -> dict[str, Any]:
    chat = FlatChat({"model": "m", "api_key": "sk-1"})
    sent: dict[str, Any] = json.loads(chat.post(request(**options), Server("https://flat.example")).body)
    return sent


def test_options_go_to_their_places() -> None:
    assert body() == {"m": "m"}
    sent = {"m": "m", "a": {"b": {"heat": 0.5}, "most": 9}, "until": ["x"], "own": 1}
    assert body(temperature=0.5, max_tokens=9, stop=["x"], extra_body={"own": 1}) == sent
    assert body(stop=["x"], send_stop=False) == {"m": "m"}


@pytest.mark.parametrize("option", ["top_p", "top_k", "seed", "presence_penalty", "repetition_penalty"])
def test_an_option_without_a_place_is_refused(option: str) -> None:
    with pytest.raises(UnsupportedInputError, match=f"flat has no {option}"):
        body(**{option: 1})


def test_the_key_goes_into_its_header() -> None:
    server = FlatChat({"model": "m", "api_key": "sk-1"}).server()
    assert (server.url, server.headers) == ("https://flat.example/ask", {"x-flat": "Key sk-1!"})
