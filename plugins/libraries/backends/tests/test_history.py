"""A history of any kind becomes one that strict servers take, and nothing of it is lost."""

from __future__ import annotations

import json
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from jackfield.messages import ContentItem, FunctionCall, Message
from jackfield_backends.history import NO_RESULT, RESULT_BELOW, Answer, parts_of, repair_arguments

IDS = st.sampled_from(["a", "b", "call_1", "call_2", None])
NAMES = st.sampled_from(["f", "g"])
TEXTS = st.sampled_from(["", "one", "two"])
ARGUMENTS = st.sampled_from(["", "{}", '{"a": 1}', '{"a": 1', "nonsense", "[1]", '{"a": NaN}', '{"a": "\ud800"}'])


@st.composite
def messages(draw: st.DrawFn) -> Message:
    role = draw(st.sampled_from(["user", "assistant", "call", "function"]))
    extra = {"function_id": call_id} if (call_id := draw(IDS)) else None
    if role == "call":
        return Message("assistant", "", function_call=FunctionCall(draw(NAMES), draw(ARGUMENTS)), extra=extra)
    if role == "function":
        return Message("function", draw(TEXTS), name=draw(NAMES), extra=extra)
    if role == "assistant":
        return Message("assistant", draw(TEXTS), reasoning_content=draw(TEXTS) or None)
    return Message("user", draw(TEXTS))


@given(st.lists(messages(), max_size=12))
def test_calls_have_ids_of_their_own_whole_arguments_and_a_result_each(history: list[Message]) -> None:
    answers = [part for part in parts_of(history) if isinstance(part, Answer)]
    calls = [call for answer in answers for call in answer.calls]
    assert len({call.id for call in calls}) == len(calls)
    assert all(isinstance(json.loads(call.function.arguments), dict) for call in calls)
    assert [call.function.name for call in calls] == [m.function_call.name for m in history if m.function_call]


@given(st.lists(messages(), max_size=12))
def test_every_text_and_every_result_is_still_there(history: list[Message]) -> None:
    parts = parts_of(history)
    answers = [part for part in parts if isinstance(part, Answer)]
    said = "\n".join(answer.text for answer in answers)
    thought = "\n".join(answer.reasoning for answer in answers)
    for message in history:
        if message.role == "assistant":
            assert str(message.content) in said
            assert str(message.reasoning_content or "") in thought
    results = [call.result.text for answer in answers for call in answer.calls if call.result.text != NO_RESULT]
    results += [stray.text for answer in answers for stray in answer.strays]
    assert sorted(results) == sorted(str(m.content) for m in history if m.role == "function")
    assert [part for part in parts if isinstance(part, Message)] == [m for m in history if m.role == "user"]


@given(st.lists(messages(), max_size=12), st.lists(messages(), max_size=4))
def test_a_longer_history_begins_with_the_same_parts(history: list[Message], more: list[Message]) -> None:
    short, long = parts_of(history), parts_of([*history, Message("user", "next"), *more])
    assert long[: len(short)] == short


@given(st.lists(messages(), max_size=12))
def test_two_answers_stand_together_only_where_results_parted_them(history: list[Message]) -> None:
    for first, second in pairwise(parts_of(history)):
        if isinstance(first, Answer) and isinstance(second, Answer):
            assert first.calls or first.strays


def test_results_find_their_calls_by_id_and_name_before_id_before_name() -> None:
    history = [
        Message("assistant", function_call=FunctionCall("f", "{}"), extra={"function_id": "1"}),
        Message("assistant", function_call=FunctionCall("g", "{}"), extra={"function_id": "1"}),
        Message("function", "of g", name="g", extra={"function_id": "1"}),
        Message("function", "of f", name="f"),
        Message("function", "of nobody", name="h"),
    ]
    (answer,) = parts_of(history)
    assert isinstance(answer, Answer)
    assert [call.result.text for call in answer.calls] == ["of f", "of g"]
    assert [stray.text for stray in answer.strays] == ["of nobody"]


def test_results_that_share_an_id_are_told_apart_by_their_names() -> None:
    shared = {"function_id": "a"}
    calls = [Message("assistant", "", function_call=FunctionCall(name, "{}"), extra=shared) for name in "fg"]
    results = [Message("function", f"of {name}", name=name, extra=shared) for name in "gf"]
    [answer] = parts_of([*calls, *results])
    assert isinstance(answer, Answer)
    assert [call.result.text for call in answer.calls] == ["of f", "of g"]


def test_media_of_a_result_are_told_apart_from_its_text_and_files_become_notes() -> None:
    content = [ContentItem(image="http://h/a.png"), ContentItem(file="/private/b.pdf")]
    history = [
        Message("assistant", function_call=FunctionCall("f", "{}")),
        Message("function", content, name="f"),
        Message("assistant", function_call=FunctionCall("f", "{}")),
        Message("function", content[:1], name="f"),
    ]
    first, second = (part.calls[0].result for part in parts_of(history) if isinstance(part, Answer))
    assert (first.text, first.media) == ("[file: b.pdf]", (content[0],))
    assert (second.text, second.media) == (RESULT_BELOW, (content[0],))


def test_arguments_that_are_whole_stay_as_they_were_written() -> None:
    assert repair_arguments('{"a":  1}') == '{"a":  1}'
    assert json.loads(repair_arguments("{'a': 1,}")) == {"a": 1}
    assert json.loads(repair_arguments("nonsense")) == {"invalid_arguments": "nonsense"}
    assert repair_arguments(" ") == "{}"
