"""Convert tool results to message content, embedding files and applying size limits."""

from __future__ import annotations

import json
from collections.abc import Set
from dataclasses import fields, is_dataclass
from typing import Any

from jackfield import sync
from jackfield.errors import ToolServiceError
from jackfield.media import embed_files, is_local, notes_of
from jackfield.messages import ContentItem
from jackfield.plurals import format_count
from jackfield.tools._base import ToolResult
from jackfield.tools._cutting import cut_text

Content = str | list[ContentItem]


async def content_of(output: Any) -> tuple[Content, dict[str, Any]]:
    """Return a result's content for the model, with local files embedded, and its metadata."""
    value, metadata = (output.content, output.metadata) if isinstance(output, ToolResult) else (output, {})
    content: Content
    if isinstance(value, str):
        content = value
    elif isinstance(value, list) and all(isinstance(item, ContentItem) for item in value):
        content = value
        if any(is_local(item) for item in content):
            content = await sync.in_worker(embed_files, content)
    else:
        content = _write_json(value)
    return content, dict(metadata)


def cut(content: Content, *, max_chars: int, max_media_chars: int) -> Content:
    """Limit the total size of the content items. Every item counts as at least one character.

    Text that does not fit is truncated, and media that do not fit are replaced with notes. If there are too many items,
    only the first items are kept.
    """
    if isinstance(content, str):
        return cut_text(writable(content), max_chars)
    kept: list[ContentItem] = []
    for number, item in enumerate(content):
        if max_chars <= 0:
            rest = content[number:]
            count = sum(len(one.text or "") for one in rest)
            omitted = f"{format_count(len(rest), 'more part')} with {format_count(count, 'character')}"
            return [*kept, ContentItem(text=f"[… {omitted} omitted …]")]
        if item.text is not None:
            kept.append(ContentItem(text=cut_text(writable(item.text), max_chars)))
        elif (size := _size_of(item.value)) <= max_media_chars:
            kept.append(item)
            max_media_chars -= size
        else:
            kept.append(ContentItem(text=f"{notes_of([item])[0]} was omitted: {size} characters"))
        max_chars -= len(kept[-1].text or " ")
    return kept


def writable(text: str) -> str:
    """Replace lone surrogates, which occur in file names and broken escapes and cannot be encoded as UTF-8."""
    return text if text.isascii() else text.encode(errors="replace").decode()


def _write_json(value: object) -> str:
    indent = None if isinstance(value, int | float | None) else 4  # indentation uses the slow encoder
    text = json.dumps(value, indent=indent, ensure_ascii=False, default=_plain)
    if "NaN" in text or "Infinity" in text:  # not valid as JSON numbers, but valid inside a string
        text = json.dumps(json.loads(text, parse_constant=str), indent=indent, ensure_ascii=False)
    return text


def _plain(value: object) -> object:
    """Convert a pydantic model or dataclass to a dict, a set to a list, and any other value to a string."""
    dump = getattr(value, "model_dump", None)
    if callable(dump) and not isinstance(value, type):
        return dump(mode="json")
    if is_dataclass(value) and not isinstance(value, type):
        return {one.name: getattr(value, one.name) for one in fields(value)}
    if isinstance(value, Set):
        return list(value)
    if isinstance(value, type | bytes | bytearray) or callable(value) or _has_no_text(value):
        raise ToolServiceError(
            f"The tool returned an object of type {type(value).__name__}, which cannot be converted to text. Tools "
            "must return a string, JSON values, content items or a ToolResult."
        )
    return str(value)


def _has_no_text(value: object) -> bool:
    return type(value).__str__ is object.__str__ and type(value).__repr__ is object.__repr__


def _size_of(value: object) -> int:
    if isinstance(value, str):
        return len(value)
    parts = list(value.values()) if isinstance(value, dict) else value
    return sum(_size_of(part) for part in parts) if isinstance(parts, list | tuple) else len(str(value))
