"""What a model thinks at the beginning of its text is reasoning, from whatever backend, and however it is cut."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield import sync
from jackfield.events import (
    FunctionCallDelta,
    MediaDelta,
    ModelEvent,
    ModelFinished,
    PluginEvent,
    ReasoningDelta,
    StreamReset,
    TextDelta,
)
from jackfield.messages import ContentItem, ModelResponse
from jackfield.models import fold
from jackfield.models._thoughts import ThoughtSeparator
from jackfield.testing import ScriptedModel

DONE = ModelFinished("stop")
ASK = [{"role": "user", "content": "q"}]
ADD = {"name": "add", "description": "", "parameters": {"type": "object", "properties": {}}}


def heard(*events: ModelEvent, **config: Any) -> list[ModelEvent]:
    async def gather() -> list[ModelEvent]:
        model = ScriptedModel([events])
        return [event async for event in model.astream(ASK, [ADD], config={"fncall_prompt_type": "native", **config})]

    return sync.run(gather())


def folded(*pieces: str, **config: Any) -> ModelResponse:
    return fold(heard(*map(TextDelta, pieces), DONE, **config))


def parts(answer: ModelResponse) -> tuple[str, str]:
    reasoning = "".join(message.reasoning_content or "" for message in answer.messages)
    return reasoning, answer.get_content()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<think>why</think>Yes.", ("why", "Yes.")),
        ("\n <think>\nwhy\n</think>\n\nYes.", ("why", "Yes.")),
        ("Yes. <think>no</think>", ("", "Yes. <think>no</think>")),
        ("```\n<think>x</think>\n```", ("", "```\n<think>x</think>\n```")),
        ("<think>cut off", ("cut off", "")),
        ("<thinking>", ("", "<thinking>")),
        (" " * 200 + "<think>why</think>Yes.", ("why", "Yes.")),
        (" " * 201 + "<think>why</think>Yes.", ("", " " * 201 + "<think>why</think>Yes.")),
        ("<", ("", "<")),
        ("", ("", "")),
    ],
)
def test_only_what_opens_the_answer_is_a_thought(text: str, expected: tuple[str, str]) -> None:
    assert parts(folded(text)) == expected
    assert parts(folded(*text)) == expected


def test_where_the_prompt_opened_the_thought_the_answer_begins_inside_of_it() -> None:
    assert parts(folded("why</think>Yes.", thought_in_content=True)) == ("why", "Yes.")
    assert parts(folded("</think>Yes.", thought_in_content=True)) == ("", "Yes.")
    assert parts(folded("why</think>", thought_in_content=True)) == ("why", "")
    assert parts(folded("why</think>\n", "Yes.", thought_in_content=True)) == ("why", "Yes.")


@pytest.mark.parametrize("text", ["It is 4.", "It is\n\n4.\n", "a < b"])
def test_an_answer_that_ends_inside_a_thought_that_it_did_not_open_is_text(text: str) -> None:
    assert parts(folded(text, thought_in_content=True)) == ("", text)
    assert parts(folded(*text, thought_in_content=True)) == ("", text)
    assert parts(fold(heard(TextDelta(text), ModelFinished("length"), thought_in_content=True)))[1] == ""
    assert parts(folded(f"<think>{text}", thought_in_content=True))[1] == ""


def test_a_call_after_an_unclosed_thought_leaves_it_a_thought() -> None:
    call = FunctionCallDelta(0, id="c", name="add", arguments="{}")
    assert parts(fold(heard(TextDelta("add!"), call, DONE, thought_in_content=True))) == ("add!", "")


def test_thoughts_can_be_left_in_the_text() -> None:
    assert parts(folded("<think>why</think>Yes.", thought_in_content=False)) == ("", "<think>why</think>Yes.")


def test_a_server_that_takes_them_apart_itself_is_believed() -> None:
    events = heard(ReasoningDelta("why"), TextDelta("<think>is a tag"), DONE, thought_in_content=True)
    assert parts(fold(events)) == ("why", "<think>is a tag")


def test_a_native_call_after_a_thought_is_a_call() -> None:
    call = FunctionCallDelta(0, id="c", name="add", arguments="{}")
    answer = fold(heard(PluginEvent("acme.note"), *map(TextDelta, "<think>add!</think>\n"), call, DONE))
    assert parts(answer) == ("add!", "")
    assert [one.name for one in answer.get_function_calls()] == ["add"]


def test_an_answer_without_thoughts_passes_event_by_event() -> None:
    given_events: Sequence[ModelEvent] = [TextDelta("Yes"), TextDelta(" <think>"), DONE]
    for out, event in zip(heard(*given_events), given_events, strict=True):
        assert out is event or out == event


@given(
    st.lists(st.sampled_from(["<think>", "</think>", "\n", " ", "<", "a", "</th", "ink>"]), max_size=10).map("".join),
    st.lists(st.integers(0, 60), max_size=6),
    st.sampled_from([None, True, False]),
)
def test_cutting_the_stream_elsewhere_never_changes_the_answer(
    text: str, places: list[int], inside: bool | None
) -> None:
    edges = [0, *sorted({place % (len(text) + 1) for place in places}), len(text)]
    pieces = [text[start:end] for start, end in itertools.pairwise(edges)]
    whole = parts(folded(text, thought_in_content=inside))
    assert parts(folded(*pieces, thought_in_content=inside)) == whole


def test_stop_texts_hold_whatever_the_server_does() -> None:
    assert parts(folded("<think>STOP here?</think>", "Yes. ST", "OP", " more", stop=["STOP"])) == (
        "STOP here?",
        "Yes. ",
    )


# --- event by event ---

CALL, IMAGE = FunctionCallDelta(0, id="c", name="f"), MediaDelta(ContentItem(image="http://x/a.png"))
STOP, NOTE = ModelFinished("stop"), PluginEvent("acme/note", {})
NO_END = StreamReset("the answer has no </think>, so all of it was treated as text")


def T(text: str) -> TextDelta:  # noqa: N802 - a table of events
    return TextDelta(text)


def R(text: str) -> ReasoningDelta:  # noqa: N802
    return ReasoningDelta(text)


SEPARATED: dict[str, tuple[bool, list[ModelEvent], list[ModelEvent]]] = {
    "text": (False, [T("a"), T("b"), STOP], [T("a"), T("b"), STOP]),
    "an empty piece": (False, [T(""), T("a"), STOP], [T(""), T("a"), STOP]),
    "a thought": (False, [T("<think>\n\na\n"), T("\nb\n</think>\n\nc"), STOP], [R("a"), R("\n\nb"), T("c"), STOP]),
    "a piece of blank lines": (
        False,
        [T("<think>a"), T("\n"), T("b\n"), T("\n</think>c"), STOP],
        [R("a"), R("\nb"), T("c"), STOP],
    ),
    "an empty thought": (False, [T("<think>\n\n</think>\n\nc"), STOP], [R(""), T("c"), STOP]),
    "blanks before a thought": (False, [T(" \n"), T("<think>a</think>b"), STOP], [R("a"), T("b"), STOP]),
    "200 blanks": (False, [T(" " * 200 + "<think>a</think>b"), STOP], [R("a"), T("b"), STOP]),
    "201 blanks": (False, [T(" " * 201 + "<think>a"), STOP], [T(" " * 201 + "<think>a"), STOP]),
    "half a tag at the end": (False, [T("<thi"), STOP], [T("<thi"), STOP]),
    "half a tag and more": (False, [T("<thi"), T("s"), STOP], [T("<this"), STOP]),
    "half a tag before a break": (False, [T("<thi")], [T("<thi")]),
    "a thought that breaks off": (False, [T("<think>a</thi")], [R("a"), R("</thi")]),
    "a thought without an end": (False, [T("<think>a\n"), STOP], [R("a"), STOP]),
    "a tag later": (False, [T("a<think>b</think>"), STOP], [T("a<think>b</think>"), STOP]),
    "a call behind half a tag": (False, [T("<thi"), CALL, T("nk>"), STOP], [T("<thi"), CALL, T("nk>"), STOP]),
    "media behind half a tag": (False, [T("<"), IMAGE, STOP], [T("<"), IMAGE, STOP]),
    "a note behind half a tag": (False, [T("<thi"), NOTE, T("nk>a"), STOP], [NOTE, R("a"), STOP]),
    "a call in a thought": (False, [T("<think>a"), CALL, T("b</think>c"), STOP], [R("a"), CALL, R("b"), T("c"), STOP]),
    "reasoning of the server": (False, [R("r"), T("<think>a"), STOP], [R("r"), T("<think>a"), STOP]),
    "reasoning behind half a tag": (False, [T("<"), R("r"), T("think>"), STOP], [T("<"), R("r"), T("think>"), STOP]),
    "a reset in a thought": (
        False,
        [T("<think>a"), StreamReset("x"), T("<think>b</think>c"), STOP],
        [R("a"), StreamReset("x"), R("b"), T("c"), STOP],
    ),
    "inside": (True, [T("a</think>b"), STOP], [R("a"), T("b"), STOP]),
    "inside, opened again": (True, [T("<think>a</think>b"), STOP], [R("a"), T("b"), STOP]),
    "inside, never closed": (True, [T("a"), T("b"), STOP], [R("a"), R("b"), NO_END, T("ab"), STOP]),
    "inside, never closed and short": (True, [T("<th"), STOP], [T("<th"), STOP]),
    "inside, never closed and blank": (True, [T(" "), STOP], [R(" "), STOP]),
    "inside, opened again and never closed": (True, [T("<think>a"), STOP], [R("a"), STOP]),
    "inside, cut off": (True, [T("a"), ModelFinished("length")], [R("a"), ModelFinished("length")]),
    "inside, with a call": (True, [T("a"), CALL, STOP], [R("a"), CALL, STOP]),
    "inside, reset after a call": (
        True,
        [T("a"), CALL, StreamReset("x"), T("b"), STOP],
        [R("a"), CALL, StreamReset("x"), R("b"), NO_END, T("b"), STOP],
    ),
    "inside, reasoning of the server": (True, [R("r"), T("a"), STOP], [R("r"), T("a"), STOP]),
}


@pytest.mark.parametrize("case", SEPARATED)
def test_each_event_becomes_what_it_is_once_that_is_certain(case: str) -> None:
    inside, events, expected = SEPARATED[case]

    async def separate() -> list[ModelEvent]:
        async def stream() -> AsyncIterator[ModelEvent]:
            for event in events:
                yield event

        return [event async for event in ThoughtSeparator(stream(), inside=inside)]

    assert asyncio.run(separate()) == expected


@pytest.mark.parametrize("read", [0, 1, 3])
def test_closing_the_separator_closes_the_stream_of_the_backend(read: int) -> None:
    closed: list[bool] = []

    async def leave() -> None:
        async def stream() -> AsyncIterator[ModelEvent]:
            try:
                for text in "<think>a</think>", "b", "c", "d":
                    yield T(text)
            finally:
                closed.append(True)

        separator = ThoughtSeparator(stream())
        for _ in range(read):
            await anext(separator)
        await separator.aclose()
        with pytest.raises(StopAsyncIteration):
            await anext(separator)

        class Bare:
            """An iterator that cannot be closed."""

            def __aiter__(self) -> Bare:
                return self

            async def __anext__(self) -> ModelEvent:
                raise StopAsyncIteration

        await ThoughtSeparator(Bare()).aclose()

    asyncio.run(leave())
    assert closed == ([True] if read else [])
