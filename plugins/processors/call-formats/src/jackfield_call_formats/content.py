"""Combine message contents, each a string or a list of items."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby

from jackfield.messages import ContentItem

Content = str | list[ContentItem]


def in_lines(parts: Sequence[Content]) -> Content:
    """Join contents into one, each starting on a new line."""
    texts = [part for part in parts if isinstance(part, str)]
    return _lines(texts) if len(texts) == len(parts) else as_content(_items(parts))


def _lines(parts: Iterable[str]) -> str:
    pieces: list[str] = []
    for part in parts:
        if pieces and not pieces[-1].endswith("\n"):
            pieces.append("\n")
        pieces.append(part)
    return "".join(pieces)


def _items(parts: Iterable[Content]) -> list[ContentItem]:
    items: list[ContentItem] = []
    for part in parts:
        if items and not _ends_line(items[-1]):
            items.append(ContentItem(text="\n"))
        items += [ContentItem(text=part)] if isinstance(part, str) else part
    return items


def _ends_line(item: ContentItem) -> bool:
    return (item.text or "").endswith("\n")


def between(before: str, content: Content, after: str) -> Content:
    """Put text before and after a content."""
    if isinstance(content, str):
        return f"{before}{content}{after}"
    return as_content([ContentItem(text=before), *content, *([ContentItem(text=after)] if after else [])])


def with_texts(content: Content, change: Callable[[str], str]) -> Content:
    """Apply a function to every text in a content."""
    if isinstance(content, str):
        return change(content)
    return [ContentItem(text=change(item.text)) if item.text is not None else item for item in content]


def as_content(items: Iterable[ContentItem]) -> Content:
    """Join adjacent text items. Return a plain string if only text remains."""
    joined: list[ContentItem] = []
    for is_text, run in groupby(items, key=lambda item: item.text is not None):
        together = list(run)
        joined += [ContentItem(text="".join(item.text or "" for item in together))] if is_text else together
    if len(joined) == 1 and joined[0].text is not None:
        return joined[0].text
    return joined
