"""What a model thinks at the beginning of its text is reasoning, from whatever backend, and however it is cut."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield import sync
from jackfield.events import FunctionCallDelta, ModelEvent, ModelFinished, PluginEvent, ReasoningDelta, TextDelta
from jackfield.messages import ModelResponse
from jackfield.models import fold
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
