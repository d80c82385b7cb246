"""What a tool gave back, as the content of a message: within bounds, and with its files inside."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from jackfield import sync
from jackfield._lazy import needed
from jackfield.errors import ConfigError, UnsupportedInputError
from jackfield.messages import ContentItem
from jackfield.models._media import is_local, notes_of, path_of
from jackfield.tools._base import ToolResult
from jackfield.tools._cutting import cut_text

Content = str | list[ContentItem]
_MEDIA = "jackfield_backend.media"


async def content_of(output: Any) -> tuple[Content, dict[str, Any]]:
    """The content for the model, with files of this machine inside, and the metadata for people."""
    metadata: dict[str, Any] = {}
    if isinstance(output, ToolResult):
        output, metadata = output.content, dict(output.metadata)
    if isinstance(output, str):
        return output, metadata
    if not isinstance(output, list) or not all(isinstance(item, ContentItem) for item in output):
        return _json_of(output), metadata
    content: list[ContentItem] = output
    if any(map(is_local, content)):
        content = await sync.in_worker(_with_media_inside, content)
    return content, metadata


def _json_of(value: object) -> str:
    indent = None if isinstance(value, int | float | None) else 4
    text = json.dumps(_plain(value), indent=indent, ensure_ascii=False, default=_plain)
    if "NaN" in text or "Infinity" in text:  # JSON has no such numbers; perhaps they are only in a text
        text = json.dumps(json.loads(text, parse_constant=str), indent=indent, ensure_ascii=False)
    return text


def _plain(value: object) -> object:
    """What JSON can hold of a value it does not know: a pydantic model's fields, else its text."""
    if isinstance(value, dict | list | tuple | int | float | None):
        return value
    dump = getattr(value, "model_dump", None)
    return dump(mode="json") if callable(dump) else str(value)


def cut(content: Content, *, max_chars: int, max_media_chars: int) -> Content:
    """A content within bounds, of all its items together. An item counts as at least one character.

    A text that does not fit any more is cut, a medium becomes a note; of many items, the first are kept.
    """
    if isinstance(content, str):
        return cut_text(writable(content), max_chars)
    fitting: list[ContentItem] = []
    chars, media_chars = max_chars, max_media_chars
    for number, item in enumerate(content):
        if chars <= 0:
            rest = sum(len(one.text) for one in content[number:] if one.text is not None)
            note = f"[… {len(content) - number} more parts with {rest} characters left out …]"
            return [*fitting, ContentItem(text=note)]
        size = 0 if item.text is not None else _size_of(item.value)
        part = _part(item, chars) if size <= media_chars else _left_out(item, size)
        media_chars -= size if size <= media_chars else 0
        fitting.append(part)
        chars -= max(1, len(part.text or ""))
    return fitting


def _part(item: ContentItem, chars: int) -> ContentItem:
    return item if item.text is None else ContentItem(text=cut_text(writable(item.text), chars))


def _left_out(item: ContentItem, size: int) -> ContentItem:
    return ContentItem(text=f"{notes_of([item])[0]} was left out: it has {size} characters")


def _size_of(value: Any) -> int:
    if isinstance(value, str):
        return len(value)
    parts: Sequence[object] = list(value.values()) if isinstance(value, dict) else value
    return sum(map(_size_of, parts)) if isinstance(parts, list | tuple) else len(str(value))


def writable(text: str) -> str:
    """The text as UTF-8 can hold it: file names and broken escapes bring half characters, which no backend can send."""
    return text if text.isascii() else text.encode(errors="replace").decode()


def _with_media_inside(content: list[ContentItem]) -> list[ContentItem]:
    """The content with the local media of a tool inside of it, as `data:` URIs.

    A path in a message proves nothing: whoever can write a history can write one. So a tool's own files are read here,
    in the run that has made them, and never later. What cannot be read becomes a note.
    """
    return [_inside(item) if is_local(item) else item for item in content]


def _inside(item: ContentItem) -> ContentItem:
    kind, value = item.get_type_and_value()
    try:
        if isinstance(value, list):
            return ContentItem(video=[_data_uri(frame, "image") for frame in value])
        return ContentItem.model_validate({kind: _data_uri(value, kind)})
    except (UnsupportedInputError, ConfigError) as error:
        return ContentItem(text=f"{notes_of([item])[0]} was left out: {error}")


def _data_uri(value: str, kind: str) -> str:
    path = path_of(value)
    if path is None:
        return value
    return str(needed(_MEDIA, "read_media", "the files of a tool's result need jackfield-backend")(path, kind).data_uri)
