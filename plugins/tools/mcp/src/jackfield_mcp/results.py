"""What a server answers, as content for a model."""

from __future__ import annotations

import base64
import binascii
from typing import Any

from jackfield.errors import ToolServiceError
from jackfield.jsontext import dumps
from jackfield.messages import ContentItem
from jackfield.tools import ToolResult

_MOST_ERROR = 10_000  # characters


def of_call(result: Any, server: str) -> ToolResult:
    """The result of a tool.

    Raises:
        ToolServiceError: The server says that the call failed; the text is what it says.
    """
    items = list(map(_item, result.content))
    structured = result.structured_content
    if result.is_error:
        raise _failed(items, structured)
    if structured is not None and not items:
        items = [ContentItem(text=dumps(structured))]
    metadata = {"server": server, **({} if structured is None else {"structured_content": structured})}
    return ToolResult(_content(items), metadata)


def _failed(items: list[ContentItem], structured: object) -> ToolServiceError:
    text = "\n\n".join(item.text for item in items if item.text) or dumps(structured)
    return ToolServiceError(text[:_MOST_ERROR], code="is_error")


def of_resource(result: Any, server: str) -> ToolResult:
    """The contents of a resource."""
    return ToolResult(_content([_of_contents(one) for one in result.contents]), {"server": server})


def of_prompt(result: Any, server: str) -> ToolResult:
    """The messages of a prompt, each with its role before it."""
    items = []
    for message in result.messages:
        item = _item(message.content)
        if item.text is None:
            items += [ContentItem(text=f"{message.role}:"), item]
        else:
            items.append(ContentItem(text=f"{message.role}: {item.text}"))
    return ToolResult(_content(items), {"server": server})


def _content(items: list[ContentItem]) -> str | list[ContentItem]:
    """One text if all are texts, as most models want it."""
    if any(item.text is None for item in items):
        return items
    return "\n\n".join(item.text or "" for item in items) or "(empty)"


def _item(block: Any) -> ContentItem:
    match block.type:
        case "text":
            return ContentItem(text=block.text)
        case "image" | "audio":
            return _medium(block.type, block.data, block.mime_type)
        case "resource_link":
            named = f"{block.title or block.name}: {block.uri}"
            return ContentItem(text=f"[{named}]{f' {block.description}' if block.description else ''}")
        case "resource":
            return _of_contents(block.resource)
        case other:
            return ContentItem(text=f"[content of type {other!r}]")


def _of_contents(contents: Any) -> ContentItem:
    text = getattr(contents, "text", None)
    if text is not None:
        return ContentItem(text=f"[{contents.uri}]\n{text}")
    kind = (contents.mime_type or "").partition("/")[0]
    if kind in ("image", "audio"):
        return _medium(kind, contents.blob, contents.mime_type)
    return ContentItem(
        text=f"[{contents.uri}: {contents.mime_type or 'bytes'}, {len(contents.blob) * 3 // 4} bytes, not shown]"
    )


def _medium(kind: str, data: str, mime_type: str) -> ContentItem:
    try:
        base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return ContentItem(text=f"[{kind} that cannot be read: it is not base64]")
    if not data or not mime_type.startswith(f"{kind}/") or any(sign in mime_type for sign in ",;\n "):
        return ContentItem(text=f"[{kind} that cannot be read: {mime_type!r}]")
    return ContentItem.model_validate({kind: f"data:{mime_type};base64,{data}"})
