"""What a tool gave back, as the content of a message: within bounds, and with its files inside."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from jackfield import sync
from jackfield.media import embed_files, is_local, notes_of
from jackfield.messages import ContentItem
from jackfield.tools._base import ToolResult
from jackfield.tools._cutting import cut_text

Content = str | list[ContentItem]


async def content_of(output: Any) -> tuple[Content, dict[str, Any]]:
    """The content for the model, with files of this machine inside, and the metadata for people."""
    given, metadata = (output.content, output.metadata) if isinstance(output, ToolResult) else (output, {})
    content: Content = given if isinstance(given, str) or _are_items(given) else _json_of(given)
    if not isinstance(content, str) and any(map(is_local, content)):
        content = await sync.in_worker(embed_files, content)
    return content, dict(metadata)


def _are_items(output: object) -> bool:
    return isinstance(output, list) and all(isinstance(item, ContentItem) for item in output)


def _json_of(value: object) -> str:
    indent = None if isinstance(value, int | float | None) else 4  # with one, Python writes it, and slowly
    text = json.dumps(value, indent=indent, ensure_ascii=False, default=_plain)
    if "NaN" in text or "Infinity" in text:  # JSON has no such numbers; perhaps they are only in a text
        text = json.dumps(json.loads(text, parse_constant=str), indent=indent, ensure_ascii=False)
    return text


def _plain(value: object) -> object:
    """What JSON can hold of a value it does not know: a pydantic model's fields, else its text."""
    dump = getattr(value, "model_dump", None)
    return dump(mode="json") if callable(dump) else str(value)


def cut(content: Content, *, max_chars: int, max_media_chars: int) -> Content:
    """A content within bounds, of all its items together. An item counts as at least one character.

    A text that does not fit any more is cut, a medium becomes a note; of many items, the first are kept.
    """
    if isinstance(content, str):
        return cut_text(writable(content), max_chars)
    fitting: list[ContentItem] = []
    for number, item in enumerate(content):
        if max_chars <= 0:
            return [*fitting, _note_of_rest(content[number:])]
        size = 0 if item.text is not None else _size_of(item.value)
        fits = size <= max_media_chars
        fitting.append(_part(item, max_chars) if fits else _left_out(item, size))
        max_media_chars -= size * fits
        max_chars -= len(fitting[-1].text or " ")
    return fitting


def _note_of_rest(items: Sequence[ContentItem]) -> ContentItem:
    count = sum(len(item.text or "") for item in items)
    return ContentItem(text=f"[… {len(items)} more parts with {count} characters left out …]")


def _part(item: ContentItem, chars: int) -> ContentItem:
    return item if item.text is None else ContentItem(text=cut_text(writable(item.text), chars))


def _left_out(item: ContentItem, size: int) -> ContentItem:
    return ContentItem(text=f"{notes_of([item])[0]} was left out: it has {size} characters")


def _size_of(value: object) -> int:
    if isinstance(value, str):
        return len(value)
    parts = list(value.values()) if isinstance(value, dict) else value
    return sum(map(_size_of, parts)) if isinstance(parts, list | tuple) else len(str(value))


def writable(text: str) -> str:
    """The text as UTF-8 can hold it: file names and broken escapes bring half characters, which no backend can send."""
    return text if text.isascii() else text.encode(errors="replace").decode()
