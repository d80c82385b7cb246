"""A history of any kind becomes one that strict servers take, and nothing of it is lost."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield.messages import ContentItem, FunctionCall, Message, Origin
from jackfield_backends.history import NO_RESULT, RESULT_BELOW, Answer, parts_of, repair_arguments, text_of

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


@pytest.mark.parametrize("others", [0, 1])
def test_reasoning_in_parts_is_kept_whether_its_message_is_alone_or_not(others: int) -> None:
    thought = [ContentItem(text="first"), ContentItem(text="then")]
    history = [Message("assistant", "a", reasoning_content=thought), *[Message("assistant", "b")] * others]
    [answer] = parts_of(history)
    assert isinstance(answer, Answer)
    assert answer.reasoning == "first\nthen"


@pytest.mark.parametrize("content", ["", [], [ContentItem(text="")]])
def test_an_empty_result_stays_empty(content: str | list[ContentItem]) -> None:
    for history in ([Message("assistant", function_call=FunctionCall("f", "{}"))], []):
        [answer] = parts_of([*history, Message("function", content, name="f")])
        assert isinstance(answer, Answer)
        results = [call.result for call in answer.calls] or list(answer.strays)
        assert [(result.name, result.text, result.media) for result in results] == [("f", "", ())]


def test_text_stands_before_notes_and_media_are_in_order() -> None:
    picture, sound = ContentItem(image="http://h/a.png"), ContentItem(audio="http://h/a.mp3")
    content = [picture, ContentItem(file="/private/b.pdf"), ContentItem(text=""), ContentItem(text="plot"), sound]
    assert text_of(content) == "plot\n[image: a.png]\n[file: b.pdf]\n[audio: a.mp3]"
    assert (text_of(None), text_of(""), text_of([])) == ("", "", "")
    history = [Message("assistant", function_call=FunctionCall("f", "{}")), Message("function", content, name="f")]
    [answer] = parts_of(history)
    assert isinstance(answer, Answer)
    [call] = answer.calls
    assert (call.result.text, call.result.media) == ("plot\n[file: b.pdf]", (picture, sound))
    assert call.result.label == "Result of the tool f:"


def test_the_messages_of_an_answer_are_joined_line_by_line_without_empty_ones() -> None:
    said = [
        Message("assistant", "a", reasoning_content="x"),
        Message("assistant", ""),
        Message("assistant", "b", reasoning_content=""),
        Message("assistant", "c", reasoning_content="y"),
    ]
    [answer] = parts_of(said)
    assert isinstance(answer, Answer)
    assert (answer.text, answer.reasoning, answer.messages) == ("a\nb\nc", "x\ny", tuple(said))


def test_messages_of_others_stay_apart() -> None:
    history = [
        Message("system", "s"),
        Message("user", "a"),
        Message("user", "b"),
        Message("function", "stray", name="f"),
        Message("assistant", "c"),
        Message("assistant", "d"),
        Message("user", "e"),
    ]
    parts = parts_of(history)
    assert [part for part in parts if isinstance(part, Message)] == [*history[:3], history[6]]
    answers = [part for part in parts if isinstance(part, Answer)]
    assert [(answer.text, len(answer.strays), len(answer.messages)) for answer in answers] == [
        ("", 1, 0),
        ("c\nd", 0, 2),
    ]


def test_an_id_of_the_server_is_kept_and_others_are_numbered_by_the_calls_before_them() -> None:
    def call(call_id: str | None) -> Message:
        extra = None if call_id is None else {"function_id": call_id}
        return Message("assistant", function_call=FunctionCall("f", "{}"), extra=extra)

    ids = ["a", None, "a", "call_5", "", None]
    answers = [part for part in parts_of([call(one) for one in ids]) if isinstance(part, Answer)]
    assert [call.id for call in answers[0].calls] == ["a", "call_2", "call_3", "call_5", "call_6", "call_7"]
    apart = [message for one in ids for message in (call(one), Message("user", "go on"))]
    answers = [part for part in parts_of(apart) if isinstance(part, Answer)]
    assert [answer.calls[0].id for answer in answers] == ["a", "call_2", "call_3", "call_5", "call_6", "call_7"]


def test_an_answer_of_several_servers_is_split_where_its_origin_changes() -> None:
    def said(origin: str, *, calls: bool = False) -> Message:
        call = FunctionCall("f", "{}") if calls else None
        return Message("assistant", origin, function_call=call, origin=Origin(backend=origin))

    history = [said("x"), said("x", calls=True), said("x", calls=True), said("y"), said("y", calls=True)]
    [answer] = parts_of(history)
    assert isinstance(answer, Answer)
    split = list(answer.by_origin())
    assert [messages for messages, _ in split] == [history[:3], history[3:]]
    assert [[call.id for call in calls] for _, calls in split] == [["call_1", "call_2"], ["call_3"]]


def test_a_call_without_a_result_says_so() -> None:
    [answer] = parts_of([Message("assistant", function_call=FunctionCall("f", '{"a": 1'))])
    assert isinstance(answer, Answer)
    [call] = answer.calls
    assert (call.result.name, call.result.text) == ("f", "(no result: the call was not carried out)")
    assert json.loads(call.function.arguments) == {"a": 1}
    assert RESULT_BELOW == "(the result is in the next message)"


@pytest.mark.parametrize("length", [1999, 2000, 2001, 5000])
def test_arguments_of_any_length_are_repaired_alike(length: int) -> None:
    whole = '{"a": "' + "x" * (length - 9) + '"}'
    assert len(whole) == length
    assert repair_arguments(whole) == whole
    for broken in (whole[:-1], '{"a": NaN, "b": "' + "x" * length + '"}', "[" * length):
        repaired = json.loads(repair_arguments(broken), parse_constant=pytest.fail)
        assert isinstance(repaired, dict)


def test_arguments_that_are_whole_stay_as_they_were_written() -> None:
    assert repair_arguments('{"a":  1}') == '{"a":  1}'
    assert json.loads(repair_arguments("{'a': 1,}")) == {"a": 1}
    assert json.loads(repair_arguments("nonsense")) == {"invalid_arguments": "nonsense"}
    assert repair_arguments(" ") == "{}"


def test_long_arguments_are_checked_to_their_end_and_stay_as_they_are() -> None:
    whole = '{"a":   "' + "x" * 3000 + '"}'
    assert repair_arguments(whole) == whole
    broken = "{}" + " " * 3000 + "and more"
    assert repair_arguments(broken) != broken
    assert isinstance(json.loads(repair_arguments(broken)), dict)
