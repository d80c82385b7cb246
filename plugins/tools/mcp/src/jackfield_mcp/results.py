"""Convert server results to content for a model."""

from __future__ import annotations

import base64
import binascii
import contextlib
from typing import Any

from jackfield.errors import ToolServiceError, UnsupportedInputError
from jackfield.jsontext import dumps
from jackfield.media import Media, media_type_of
from jackfield.messages import ContentItem
from jackfield.plurals import format_count
from jackfield.tools import ToolResult
from jackfield_backends.images import decode_image

_MOST_ERROR = 10_000  # characters
_MOST_TEXT = 200_000  # characters of a text resource sent as bytes
_CHARSETS = ("utf-8", "us-ascii", "iso-8859-1", "windows-1252", "utf-16")
_TEXTUAL = frozenset(
    f"application/{name}"
    for name in (
        "json",
        "xml",
        "yaml",
        "x-yaml",
        "toml",
        "javascript",
        "sql",
        "x-sh",
        "x-ndjson",
        "x-www-form-urlencoded",
    )
)


def of_call(result: Any, server: str) -> ToolResult:
    """Convert the result of a tool call.

    Raises:
        ToolServiceError: The server reports that the call failed. The message is the server's.
    """
    items = [_item(one) for one in result.content]
    structured = result.structured_content
    if result.is_error:
        text = "\n\n".join(item.text for item in items if item.text) or dumps(structured)
        raise ToolServiceError(text[:_MOST_ERROR], code="is_error")
    if structured is not None and not items:
        items = [ContentItem(text=dumps(structured))]
    metadata = {"server": server, **({} if structured is None else {"structured_content": structured})}
    return ToolResult(_content(items), metadata)


def of_resource(result: Any, server: str) -> ToolResult:
    """Convert the contents of a resource."""
    return ToolResult(_content([_of_contents(one) for one in result.contents]), {"server": server})


def of_prompt(result: Any, server: str) -> ToolResult:
    """Convert the messages of a prompt, each preceded by its role."""
    items = []
    for message in result.messages:
        item = _item(message.content)
        if item.text is None:
            items += [ContentItem(text=f"{message.role}:"), item]
        else:
            items.append(ContentItem(text=f"{message.role}: {item.text}"))
    return ToolResult(_content(items), {"server": server})


def _content(items: list[ContentItem]) -> str | list[ContentItem]:
    """Join the items to one string if all are text, because most models prefer a string."""
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
    media_type = contents.mime_type or ""
    kind = media_type.partition("/")[0]
    if kind in ("image", "audio"):
        return _medium(kind, contents.blob, media_type)
    content = _decode(contents.blob)
    if content is None:
        return ContentItem(text=f"[{contents.uri}: {media_type or 'bytes'}, not shown: invalid base64]")
    if _is_textual(media_type):
        with contextlib.suppress(UnicodeDecodeError):
            return ContentItem(text=f"[{contents.uri}]\n{_cut(content.decode(_charset(media_type)))}")
    return ContentItem(text=f"[{contents.uri}: {media_type or 'bytes'}, {len(content)} bytes, not shown]")


def _is_textual(media_type: str) -> bool:
    name = media_type.partition(";")[0].strip().lower()
    return name.startswith("text/") or name in _TEXTUAL or name.endswith(("+json", "+xml", "+yaml"))


def _charset(media_type: str) -> str:
    """Return the charset of a media type if it is a common one, else UTF-8.

    Rare codecs are excluded because some take hours to decode a short text.
    """
    _, _, value = media_type.lower().partition("charset=")
    charset = value.partition(";")[0].strip(" \"'")
    return charset if charset in _CHARSETS else "utf-8"


def _cut(text: str) -> str:
    more = len(text) - _MOST_TEXT
    return text if more <= 0 else f"{text[:_MOST_TEXT]}\n[{format_count(more, 'more character')}]"


def _decode(encoded: str) -> bytes | None:
    try:
        return base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        return None


def _medium(kind: str, data: str, media_type: str) -> ContentItem:
    """Return an image or sound, identified by its bytes rather than by the server's label."""
    try:
        medium = decode_image(data) if kind == "image" else _decode_audio(data)
    except UnsupportedInputError as error:
        return ContentItem(text=f"[{kind} labelled {media_type[:100]!r} omitted: {error}]")
    return ContentItem.model_validate({kind: medium.data_uri})


def _decode_audio(data: str) -> Media:
    content = _decode(data)
    if content is None:
        raise UnsupportedInputError("the data is not valid base64")
    media_type = media_type_of(content[:16])
    if not media_type.startswith("audio/"):
        raise UnsupportedInputError(f"expected audio, got {media_type or 'an unknown format'} ({len(content)} bytes)")
    return Media(media_type, content)
