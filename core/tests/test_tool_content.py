"""The content of a result: which values become texts, which are refused, and how much is kept."""

from __future__ import annotations

import asyncio
import dataclasses
import enum
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from jackfield.errors import ToolServiceError
from jackfield.messages import ContentItem
from jackfield.tools import ToolResult
from jackfield.tools._content import content_of, cut, writable
from tests.support.tools import Point, Silent


@dataclasses.dataclass
class Pair:
    left: object
    right: object


class Colour(enum.Enum):
    RED = "red"


class Moment(BaseModel):
    at: datetime
    colour: Colour


class Speaks:
    def __str__(self) -> str:
        return "hello"


class Shows:
    def __repr__(self) -> str:
        return "shown"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("text", "text"),
        (5, "5"),
        (None, "null"),
        (True, "true"),
        ([1], "[\n    1\n]"),
        ({"é": 1}, '{\n    "é": 1\n}'),
        (float("nan"), '"NaN"'),
        ([float("inf"), "NaN é"], '[\n    "Infinity",\n    "NaN é"\n]'),
        (Point(x=1, day=date(2026, 1, 2)), '{\n    "x": 1,\n    "day": "2026-01-02"\n}'),
        (
            Moment(at=datetime(2026, 1, 2, 3, 4, tzinfo=UTC), colour=Colour.RED),
            '{\n    "at": "2026-01-02T03:04:00Z",\n    "colour": "red"\n}',
        ),
        (Pair(1, {2}), '{\n    "left": 1,\n    "right": [\n        2\n    ]\n}'),
        (frozenset({3}), "[\n    3\n]"),
        (date(2026, 1, 2), '"2026-01-02"'),
        (Decimal("1.5"), '"1.5"'),
        (Path("/srv/a"), '"/srv/a"'),
        (Speaks(), '"hello"'),
        (Shows(), '"shown"'),
        (Colour.RED, '"Colour.RED"'),
    ],
    ids=str,
)
def test_a_value_of_a_tool_becomes_text_or_json(value: Any, text: str) -> None:
    assert asyncio.run(content_of(value)) == (text, {})
    assert asyncio.run(content_of(ToolResult(value, {"a": 1}))) == (text, {"a": 1})


@pytest.mark.parametrize("value", [Point, Pair, b"x", bytearray(b"x"), len, Silent(), lambda: 1, [Silent()]])
def test_a_value_without_a_text_is_a_failure_that_names_its_type(value: Any) -> None:
    name = type(value[0] if isinstance(value, list) else value).__name__
    with pytest.raises(ToolServiceError) as caught:
        asyncio.run(content_of(value))
    assert str(caught.value) == (
        f"The tool returned an object of type {name}, which cannot be converted to text. Tools must return a "
        "string, JSON values, content items or a ToolResult."
    )


def test_metadata_and_items_are_passed_on() -> None:
    items, metadata = [ContentItem(text="a"), ContentItem(image="https://h/a.png")], {"sandbox": "s"}
    content, given = asyncio.run(content_of(ToolResult(items, metadata)))
    assert content is items
    assert (given, given is metadata) == ({"sandbox": "s"}, False)
    assert asyncio.run(content_of([])) == ([], {})
    mixed, _ = asyncio.run(content_of([ContentItem(text="a"), "b"]))
    assert isinstance(mixed, str)


def test_items_share_one_bound() -> None:
    text, image = ContentItem(text="x" * 10), ContentItem(image="i" * 8)
    assert cut([text, text], max_chars=20, max_media_chars=0) == [text, text]
    assert cut([text, text, text], max_chars=20, max_media_chars=0) == [
        text, text, ContentItem(text="[… 1 more part with 10 characters omitted …]"),
    ]  # fmt: skip
    assert cut([image, image], max_chars=20, max_media_chars=16) == [image, image]
    kept = cut([image, image], max_chars=200, max_media_chars=15)
    assert kept[0] == image
    assert str(kept[1].text).endswith(" was omitted: 8 characters")  # type: ignore[union-attr]
    assert cut([image] * 3, max_chars=2, max_media_chars=99)[2:] == [  # an item counts as a character at least
        ContentItem(text="[… 1 more part with 0 characters omitted …]")
    ]
    frames = ContentItem(video=["a" * 5, "b" * 4])
    assert cut([frames], max_chars=20, max_media_chars=9) == [frames]
    assert "9 characters" in str(cut([frames], max_chars=20, max_media_chars=8))
    assert cut("x\udc80", max_chars=9, max_media_chars=0) == "x?"
    assert cut([ContentItem(text="x\udc80")], max_chars=9, max_media_chars=0) == [ContentItem(text="x?")]
    assert (writable("é"), writable("a\udc80é")) == ("é", "a?é")
