"""Which files messages name, and who may: only messages of the user, and of the system."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from jackfield.messages import SYSTEM, USER, ContentItem, Message, basename_of

# What no file of this machine is meant by: the content itself, or a URL of any scheme but `file`.
_ELSEWHERE = re.compile(r"data:|(?!file:)[a-z][a-z0-9+.-]+://", re.IGNORECASE)


def path_of(address: object, *, remote: Sequence[str] = ("http", "https")) -> Path | None:
    """The file that an address means: a path, or a `file:` URL; None for a `data:` URI and the schemes in `remote`."""
    if not isinstance(address, str) or address[:5].lower() == "data:":
        return None
    try:
        parts = urlsplit(address)
    except ValueError:  # what begins like a URL and is none
        return Path(address)
    if parts.scheme in remote:
        return None
    if parts.scheme != "file":
        return Path(address)
    from urllib.request import url2pathname  # it loads an HTTP client, and few addresses are of this kind

    # `file://name.png` is no correct URL, but common: there the name stands where the host should.
    return Path(url2pathname(unquote(parts.netloc + parts.path)))


def is_local(item: ContentItem, *, remote: Sequence[str] = ("http", "https")) -> bool:
    """Whether sending the item means reading a file."""
    return item.is_media_content() and any(path_of(one, remote=remote) is not None for one in _addresses(item))


def _addresses(item: ContentItem) -> list[object]:
    """What an item names: of a video, perhaps many frames."""
    value = item.value
    return value if isinstance(value, list) else [value]


def without_foreign_paths(history: tuple[Message, ...]) -> tuple[Message, ...]:
    """The history, with a note in place of each file of this machine that a model's or a tool's message names.

    Only the user, and who wrote the system message, may have a file read and sent. A path elsewhere is a text that
    somebody wrote; what a tool made in this run stands in its result as a `data:` URI.
    """
    # A history is long, and most of it is plain text.
    in_items = [m for m in history if isinstance(m.content, list) or isinstance(m.reasoning_content, list)]
    if not any(map(_names_files, in_items)):
        return history
    return tuple(_with_notes(message) if _names_files(message) else message for message in history)


def _names_files(message: Message) -> bool:
    if message.role in (USER, SYSTEM):
        return False
    parts = (message.content, message.reasoning_content)
    return any(_means_a_file(item) for part in parts if isinstance(part, list) for item in part)


def _means_a_file(item: ContentItem) -> bool:
    named = () if item.text is not None else _addresses(item)
    return any(isinstance(one, str) and not _ELSEWHERE.match(one) for one in named)


def _with_notes(message: Message) -> Message:
    def noted(content: str | list[ContentItem] | None) -> str | list[ContentItem] | None:
        if not isinstance(content, list):
            return content
        return [ContentItem(text=notes_of([item])[0]) if _means_a_file(item) else item for item in content]

    return message.replace(content=noted(message.content), reasoning_content=noted(message.reasoning_content))


def notes_of(items: Sequence[ContentItem]) -> list[str]:
    """Notes in place of items that a message cannot carry: their kind and name; texts are left out."""
    return [f"[{item.type}: {_name_of(item.value)}]" for item in items if item.text is None]


def _name_of(value: object) -> str:
    if isinstance(value, list):
        return f"{len(value)} frames"
    return basename_of(value) if isinstance(value, str) and value[:5].lower() != "data:" else "data"
