"""Tables read any protocol of JSON objects."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield.config import GenerateConfig
from jackfield.errors import (
    ContextLengthError,
    MissingSecretError,
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
from jackfield_http.backend import Exchange
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
    with pytest.raises(ModelResponseError, match="not part of a response"):
        events_of(KindReader(Failures("kinds")), {"value": "a"})


def test_a_whole_answer_has_a_table_of_its_own() -> None:
    reader = KindReader(Failures("kinds"))
    body = {"parts": [{"type": "text", "value": "a"}, {"type": "text", "value": "b"}], "why": "stop"}
    assert reader.whole(json.dumps(body).encode()) == [TextDelta("a"), TextDelta("b")]
    assert list(reader.finish()) == [ModelFinished("stop", provider_reason="stop")]


def test_a_whole_answer_may_be_an_error_and_may_have_the_tables_of_a_stream() -> None:
    class Failing(KindReader):
        errors = ErrorKeys("bad")

    with pytest.raises(ModelOverloadedError, match="error in the response: oh"):
        Failing(Failures("kinds")).whole(b'{"bad": "oh", "parts": [], "why": "stop"}')
    assert flat().whole(b'{"text": "a", "why": "fin", "n": {"in": 1}}') == [TextDelta("a")]


def test_texts_that_continue_are_those_of_the_tables() -> None:
    assert FlatReader.texts == {"text", "thought", "args", "arguments"}
    assert KindReader.texts == {"value"}

    class WholeReader(KindReader):
        whole_answer = AnswerKeys("said.all", "said.thought", CallKeys(arguments="said.input"))

    assert WholeReader.texts == {"value", "all", "thought", "input"}


def test_usage_of_any_table_is_waited_for() -> None:
    class OneOfTwo(KindReader):
        answers: ClassVar = {**KindReader.answers, "counts": AnswerKeys(usage=UsageKeys("in"))}

    reader = OneOfTwo(Failures("kinds"))
    list(reader.feed(b'data: {"type": "end", "value": "stop"}\n\n'))
    assert (reader.complete, reader.done) == (True, False)
    list(reader.feed(b'data: {"type": "counts", "in": 3}\n\n'))
    assert reader.done
    assert UsageReported(Usage(prompt_tokens=3, total_tokens=3)) in list(reader.finish())


def test_an_answer_with_an_end_mark_is_not_over_before_it() -> None:
    class Marked(FlatReader):
        end_mark = b"END"

    reader = Marked(Failures("flat"))
    list(reader.feed(b'data: {"why": "fin", "n": {"in": 1}}\n\n'))
    assert (reader.complete, reader.done) == (True, False)
    list(reader.feed(b"data: END\n\n"))
    assert reader.done


def test_each_count_is_read_and_a_total_that_was_sent_wins() -> None:
    class Counting(FlatReader):
        usage = UsageKeys("a", "b", "c", "d", "e", "f")
        answers: ClassVar = {"": AnswerKeys(reason="why", usage=usage)}

    sent = {"a": 1, "b": 2, "c": 50, "d": 4, "e": 5, "f": 6, "why": "fin"}
    (reported, finished) = events_of(Counting(Failures("flat")), sent)
    assert reported.usage == Usage(
        prompt_tokens=1,
        completion_tokens=2,
        total_tokens=50,
        cached_tokens=4,
        cache_write_tokens=5,
        reasoning_tokens=6,
    )
    assert finished.reason == "stop"
    assert events_of(Counting(Failures("flat")), {"why": "odd"}) == [ModelFinished("other", provider_reason="odd")]


def test_what_was_once_sent_is_kept_and_the_last_value_counts() -> None:
    first = {"model": "m", "id": "i", "at": 5, "n": {"in": 1, "out": 1}}
    last = {"why": "fin", "model": "n", "id": "j", "at": 6, "n": {"out": 0}}
    assert events_of(flat(), first, {}, last)[-2:] == [
        UsageReported(Usage(prompt_tokens=1, completion_tokens=0, total_tokens=1)),
        ModelFinished("stop", "n", "j", 6, provider_reason="fin"),
    ]


def test_reasons_are_by_default_those_of_jackfield() -> None:
    for reason in ("stop", "length", "tool_calls", "content_filter"):
        reader = KindReader(Failures("kinds"))
        assert events_of(reader, {"type": "end", "value": reason}) == [ModelFinished(reason, provider_reason=reason)]


def test_calls_in_the_object_itself_have_other_names_and_may_lack_parts() -> None:
    class Calling(FlatReader):
        answers: ClassVar = {"": AnswerKeys(calls=CallKeys(), reason="why")}

    assert events_of(
        Calling(Failures("flat")),
        {"index": 1, "id": "c", "name": "f", "arguments": {"x": 1}},
        {"index": 0, "name": "g"},
        {"index": 1, "id": None, "arguments": None, "why": "fin"},
    )[:3] == [
        FunctionCallDelta(0, "c", "f", '{"x": 1}'),
        FunctionCallDelta(1, "", "g", ""),
        FunctionCallDelta(0, "", "", ""),
    ]


def test_a_text_that_is_no_text_is_not_part_of_an_answer() -> None:
    with pytest.raises(ModelResponseError, match="not part of a response"):
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
    assert error.code == (body["bad"]["code"] if isinstance(body, dict) and isinstance(body.get("bad"), dict) else None)


def test_a_page_in_place_of_json_is_quoted() -> None:
    error = FlatReader.errors.refused(Failures("flat"), 502, b"<h1>Bad gateway")
    assert type(error) is ModelOverloadedError
    assert "<h1>Bad gateway" in str(error)


@pytest.mark.parametrize(("code", "error_class"), [("long", ContextLengthError), ("odd", ModelOverloadedError)])
def test_an_error_in_an_answer_has_the_class_of_its_code(code: str, error_class: type[Exception]) -> None:
    with pytest.raises(error_class, match="oh") as caught:
        events_of(flat(), {"bad": {"code": code, "message": "oh"}})
    assert type(caught.value) is error_class
    assert caught.value.code == code
    assert caught.value.status is None


@given(st.dictionaries(st.sampled_from("abc"), st.integers() | st.lists(st.integers(), max_size=2), max_size=3))
def test_a_path_leads_to_a_value_or_to_none_and_never_fails(wire: Mapping[str, Any]) -> None:
    for key, value in wire.items():
        assert value_at(wire, key) == value
        assert value_at(wire, ("d", key)) == value
        assert value_at(wire, f"{key}.x") is None
        assert value_at(wire, f"{key}.1") == (value[1] if isinstance(value, list) and len(value) > 1 else None)
    assert value_at(wire, "") is None
    assert value_at(wire, "d.0.x") is None


@pytest.mark.parametrize(
    ("wire", "path", "value"),
    [
        ({"a": [1, 2]}, "a.1", 2),
        ({"a": [1, 2]}, "a.2", None),
        ({"a": [1, 2]}, "a.-1", None),
        ({"a": {"1": "x"}}, "a.1", "x"),
        ({"a": 0}, ("a", "b"), 0),
        ({"a": None, "b": 1}, ("a", "b"), 1),
        ({"a": ""}, ("a", "b"), ""),
        ("text", "a", None),
        ([5], "0", 5),
        ({"a": 1}, (), None),
    ],
)
def test_a_path_leads_through_objects_and_lists(wire: object, path: Any, value: object) -> None:
    assert value_at(wire, path) == value


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


@pytest.mark.parametrize(
    ("option", "value"),
    [
        *((name, 1) for name in ("top_p", "top_k", "seed", "presence_penalty")),
        *((name, 1) for name in ("repetition_penalty", "frequency_penalty")),
        ("reasoning_effort", "low"),
        ("response_format", {"type": "json_object"}),
    ],
)
def test_an_option_without_a_place_is_refused(option: str, value: object) -> None:
    with pytest.raises(UnsupportedInputError, match=f"flat does not support {option}: remove it for this model"):
        body(**{option: value})


def test_stop_and_a_single_call_at_a_time_may_have_no_place() -> None:
    class Bare(FlatChat):
        options: ClassVar = {"temperature": "t"}

    chat, tool = Bare({"model": "m", "api_key": "k"}), {"name": "f", "description": "", "parameters": {}}

    def sent(functions: tuple[Any, ...], **options: Any) -> Any:
        asked = replace(request(**options), functions=functions)
        return json.loads(chat.post(asked, Server("https://flat.example")).body)

    assert sent((), stop=["x"]) == {"m": "m"}  # Jackfield itself ends the answer there
    assert sent((), parallel_function_calls=False) == {"m": "m"}
    assert sent((), temperature=0.0) == {"m": "m", "t": 0.0}
    with pytest.raises(UnsupportedInputError, match="parallel_function_calls"):
        sent((tool,), parallel_function_calls=False)
    assert sent((tool,)) == {"m": "m"}


def test_the_extra_body_wins_over_options_and_the_body() -> None:
    assert body(max_tokens=9, extra_body={"a": 1, "m": "n"}) == {"m": "n", "a": 1}


def test_the_key_goes_into_its_header() -> None:
    server = FlatChat({"model": "m", "api_key": "sk-1"}).server()
    assert (server.url, server.headers) == ("https://flat.example/ask", {"x-flat": "Key sk-1!"})


def test_a_configured_address_takes_the_place_of_the_providers_and_the_key_is_needed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("FLAT_KEY", raising=False)
    server = FlatChat({"model": "m", "api_key": "sk-1", "base_url": "http://127.0.0.1:1/v2/"}).server()
    assert server.url == "http://127.0.0.1:1/v2/ask"
    assert server.key.value == "sk-1"
    with pytest.raises(MissingSecretError, match="FLAT_KEY"):
        FlatChat({"model": "m"}).server()

    class Movable(FlatChat):
        key_rule = KeyRule("FLAT_KEY", url_variable="FLAT_URL")

    monkeypatch.setenv("FLAT_URL", "http://127.0.0.1:1/v3")
    assert Movable({"model": "m", "api_key": "sk-1"}).server().url == "http://127.0.0.1:1/v3/ask"

    class Usual(FlatChat):
        key_header = TableBackend.key_header

    assert Usual({"model": "m", "api_key": "sk-1"}).server().headers == {"authorization": "Bearer sk-1"}


def test_a_reader_is_made_for_the_request() -> None:
    chat, failures = FlatChat({"model": "m", "api_key": "sk-1"}), Failures("flat")
    reader = chat.reader(Exchange(request(), Server("https://flat.example"), failures, 7.0))
    assert (type(reader), reader.failures) == (FlatReader, failures)
    assert reader.events._patience_s == 7
    assert type(chat.refusal(failures, 400, b'{"bad": {"code": "long"}}')) is ContextLengthError
