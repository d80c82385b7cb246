"""Extract the visible content of an answer, on which reading answers and sending them back must agree."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from jackfield.messages import Message
from jackfield_http import arguments_of

Item: TypeAlias = Mapping[str, Any]
"""An item of `input` or `output` on the wire."""

SEPARATOR = "\n\n"
"""Separator between the messages of one answer, and between parts of its reasoning."""

_MEDIA_TYPES = {"svg": "image/svg+xml"}


@dataclass(frozen=True, slots=True)
class VisibleContent:
    """An answer's visible content. A call is an (id, name, arguments) tuple, and an image a `data:` URI."""

    text: str
    reasoning: str
    calls: tuple[tuple[str, str, str], ...]
    images: tuple[str, ...]


def content_of_items(items: Sequence[Item]) -> VisibleContent:
    """Return the visible content of an answer's items, which equals that of its events.

    Raises:
        AttributeError, TypeError: `items` contains something other than items.
    """
    of_type: defaultdict[str, list[Item]] = defaultdict(list)
    for item in items:
        of_type[item["type"]].append(item)
    texts = ("".join(texts_of(message)) for message in of_type["message"])
    calls = of_type["function_call"]
    return VisibleContent(
        text=SEPARATOR.join(text for text in texts if text),
        reasoning=SEPARATOR.join(thought for item in of_type["reasoning"] for thought in thoughts_of(item)),
        calls=tuple((call_id_of(call), call["name"], arguments_of(call.get("arguments"))) for call in calls),
        images=tuple(image for item in items if (image := image_of(item))),
    )


def content_of_messages(messages: Sequence[Message]) -> VisibleContent | None:
    """Return the visible content of an answer's messages, or None if they contain parts this backend does not know."""
    reasoning = [message.reasoning_content for message in messages if message.reasoning_content]
    items = [item for message in messages for item in message.items]
    images = [item.image for item in items if item.image is not None]
    texts = [item.text for item in items if item.text is not None]
    if len(images) + len(texts) < len(items) or not all(isinstance(thought, str) for thought in reasoning):
        return None
    return VisibleContent(
        text="".join(texts),
        reasoning="".join(map(str, reasoning)),
        calls=tuple(_calls_in(messages)),
        images=tuple(images),
    )


def _calls_in(messages: Sequence[Message]) -> Iterator[tuple[str, str, str]]:
    for message in messages:
        if (call := message.function_call) is not None:
            yield message.function_id or "", call.name, call.arguments


def texts_of(item: Item) -> Iterator[str]:
    """Yield the non-empty texts of a message item, including refusals."""
    return parts_of(item.get("content"))


def thoughts_of(item: Item) -> Iterator[str]:
    """Yield the non-empty texts of a reasoning item, summary first."""
    yield from parts_of(item.get("summary"))
    yield from parts_of(item.get("content"))


def parts_of(content: Iterable[Item] | str | None) -> Iterator[str]:
    """Yield the non-empty texts in a list of content parts."""
    if isinstance(content, str):
        content = ({"text": content},)
    for part in content or ():
        if text := part.get("text") or part.get("refusal"):
            yield text


def call_id_of(item: Item) -> str:
    """Return the id shared by a call and its result."""
    return str(item.get("call_id") or item.get("id") or "")


def image_of(item: Item) -> str | None:
    """Return an item's image as a `data:` URI, or None if it has none."""
    if item["type"] != "image_generation_call" or not item.get("result"):
        return None
    kind = item.get("output_format") or "png"
    return f"data:{_MEDIA_TYPES.get(kind, f'image/{kind}')};base64,{item['result']}"
