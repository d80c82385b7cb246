"""Convert histories to the messages that chat templates expect. This module is pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from jackfield.media import notes_of
from jackfield.messages import ASSISTANT, USER, ContentItem, Message
from jackfield.request import FunctionSchema
from jackfield_backends.history import Answer, Result, parts_of, text_of

TemplateMessage = dict[str, Any]


def template_messages(history: Sequence[Message], *, in_parts: bool = False) -> list[TemplateMessage]:
    """Convert a history, so that an answer and its calls form a single message.

    Args:
        history: The messages, oldest first.
        in_parts: True to represent all content as lists of parts, as templates of models with images expect. An image
            part contains the address from the history.
    """
    return [message for part in parts_of(history) for message in _of_part(part, in_parts=in_parts)]


def template_tools(functions: Iterable[FunctionSchema]) -> list[dict[str, Any]]:
    """Convert tools to the format that templates expect."""
    return [{"type": "function", "function": dict(function)} for function in functions]


def _of_part(part: Message | Answer, *, in_parts: bool) -> Iterator[TemplateMessage]:
    if isinstance(part, Message):
        yield {"role": part.role, "content": _content(part.items, in_parts=in_parts)}
        return
    if part.messages:
        yield _of_answer(part, in_parts=in_parts)
    for call in part.calls:
        content = _content([ContentItem(text=call.result.text)], in_parts=in_parts)
        yield {"role": "tool", "name": call.result.name, "tool_call_id": call.id, "content": content}
    for call in part.calls:
        if call.result.media:
            yield _as_user(call.result, "", in_parts=in_parts)
    for stray in part.strays:
        yield _as_user(stray, stray.text, in_parts=in_parts)


def _of_answer(answer: Answer, *, in_parts: bool) -> TemplateMessage:
    message: TemplateMessage = {
        "role": ASSISTANT,
        "content": _content([ContentItem(text=answer.text)], in_parts=in_parts),
    }
    if answer.reasoning:
        message["reasoning_content"] = answer.reasoning
    if answer.calls:
        message["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                # As an object, which templates render in their model's own format.
                "function": {"name": call.function.name, "arguments": json.loads(call.function.arguments)},
            }
            for call in answer.calls
        ]
    return message


def _as_user(result: Result, text: str, *, in_parts: bool) -> TemplateMessage:
    """Return a user message for a result without a call, or for parts that a `tool` message cannot contain."""
    items = [ContentItem(text=f"{result.label}\n{text}" if text else result.label), *result.media]
    return {"role": USER, "content": _content(items, in_parts=in_parts)}


def _content(items: Sequence[ContentItem], *, in_parts: bool) -> str | list[dict[str, Any]]:
    return [_part(item) for item in items] if in_parts else text_of(items)


def _part(item: ContentItem) -> dict[str, Any]:
    if item.image is not None:
        return {"type": "image", "image": item.image}
    return {"type": "text", "text": item.text if item.text is not None else notes_of([item])[0]}
