"""Texts that are held back while an answer begins, and files that a history may not have read."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from jackfield import Message
from jackfield.events import (
    FunctionCallDelta,
    MediaDelta,
    ModelEvent,
    ModelFinished,
    ReasoningDelta,
    StreamReset,
    TextDelta,
)
from jackfield.media import notes_of, without_foreign_paths
from jackfield.messages import ContentItem
from jackfield.models._thoughts import ThoughtSeparator


def split(*given: ModelEvent, inside: bool = False) -> list[ModelEvent]:
    async def events() -> AsyncIterator[ModelEvent]:
        for event in given:
            yield event

    async def gathered() -> list[ModelEvent]:
        return [event async for event in ThoughtSeparator(events(), inside=inside)]

    return asyncio.run(gathered())


@pytest.mark.parametrize(
    "event",
    [
        FunctionCallDelta(0, id="c", name="act"),
        MediaDelta(ContentItem(image="https://h/a.png")),
        ModelFinished("stop"),
        ReasoningDelta("r"),
    ],
    ids=lambda event: type(event).__name__,
)
def test_no_event_passes_a_text_that_is_held_back(event: ModelEvent) -> None:
    assert split(TextDelta("<th"), event) == [TextDelta("<th"), event]


def test_a_text_that_is_held_back_is_given_when_the_stream_breaks_off() -> None:
    assert split(TextDelta("<thi")) == [TextDelta("<thi")]


def test_after_a_reset_in_a_thought_the_answer_begins_anew() -> None:
    reset = StreamReset("again")
    assert split(TextDelta("<think>a"), reset, TextDelta("b")) == [ReasoningDelta("a"), reset, TextDelta("b")]
    assert split(TextDelta("<thi"), reset, TextDelta("nk>b")) == [reset, TextDelta("nk>b")]
    assert split(TextDelta("a"), TextDelta("b</think>c"), inside=True)[-1] == TextDelta("c")
    assert split(TextDelta("a</think>"), reset, TextDelta("b</think>c"), inside=True)[2:] == [
        ReasoningDelta("b"),
        TextDelta("c"),
    ]


@pytest.mark.parametrize("part", ["content", "reasoning_content"])
@pytest.mark.parametrize(
    "item",
    [
        {"image": "/home/me/secret.png"},
        {"image": "file:///home/me/secret.png"},
        {"video": ["https://h/a.png", "/home/me/secret.png"]},
        {"file": "secret.png"},
    ],
    ids=str,
)
def test_only_a_user_or_a_system_message_names_a_file_that_is_read(part: str, item: dict[str, Any]) -> None:
    content: dict[str, Any] = {"content": "", part: [ContentItem.model_validate(item)]}
    [model] = without_foreign_paths((Message("assistant", **content),))
    assert "/home/me" not in repr(model)
    assert model.model_dump() != Message("assistant", **content).model_dump()
    if part == "content":
        [result] = without_foreign_paths((Message("function", name="f", **content),))
        assert result.content[0].text, "a note stands in its place"  # type: ignore[index, union-attr]
        for role in ("user", "system"):
            assert without_foreign_paths((Message(role, **content),)) == (Message(role, **content),)


@pytest.mark.parametrize("address", ["data:image/png;base64,AAAA", "DATA:image/png;base64,AAAA"])
def test_a_note_has_nothing_of_the_content_of_a_data_uri(address: str) -> None:
    assert notes_of([ContentItem(image=address)]) == ["[image: data]"]
