"""What a tool gave back, as the content of a message: within bounds, and with its files inside."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from jackfield import sync
from jackfield._lazy import installed, needed
from jackfield.messages import ContentItem
from jackfield.models._media import is_local, notes_of
from jackfield.tools._base import ToolResult

Content = str | list[ContentItem]
_MEDIA = "jackfield.media"


async def content_of(output: Any) -> tuple[Content, dict[str, Any]]:
    """The content for the model, with files of this machine inside, and the metadata for people."""
    given, metadata = (output.content, output.metadata) if isinstance(output, ToolResult) else (output, {})
    content: Content = given if isinstance(given, str) or _are_items(given) else _json_of(given)
    if not isinstance(content, str) and any(map(is_local, content)):
        content = await sync.in_worker(_with_files_inside, content)
    return content, dict(metadata)


def _are_items(output: object) -> bool:
    return isinstance(output, list) and all(isinstance(item, ContentItem) for item in output)


def _with_files_inside(content: list[ContentItem]) -> list[ContentItem]:
    with_files_inside = needed(_MEDIA, "with_files_inside", "the files of a tool's result need jackfield-backend")
    return list(with_files_inside(content))


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


def cut_text(text: str, limit: int) -> str:
    """A text cut to about `limit` characters, with notes of what is missing.

    JSON stays JSON if jackfield-backend is installed: of a list the first elements are kept, of an object all small
    values. Any other text is cut as by `cut_middle`.
    """
    if len(text) <= limit:
        return text
    cutting = installed("jackfield.tools._cutting") if text.lstrip()[:1] in ("{", "[") else None
    return cut_middle(text, limit) if cutting is None else str(cutting.cut_json(text, limit))


def cut_middle(text: str, limit: int) -> str:
    """A text cut to about `limit` characters, both ends kept, with a note of how much is missing.

    It is cut between lines, where these are short enough.
    """
    if len(text) <= limit:
        return text
    head = limit * 2 // 3
    start = len(text) - (limit - head)
    # At the end of a line, if there is one near.
    head = text.rfind("\n", head - head // 4, head) + 1 or head
    start = text.find("\n", start, start + (len(text) - start) // 4) + 1 or start
    return f"{text[:head].removesuffix(chr(10))}\n[… {start - head} characters left out …]\n{text[start:]}"
