"""Join contents of messages, texts or items."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from jackfield.messages import ContentItem

Content = str | list[ContentItem]


def in_lines(parts: Sequence[Content]) -> Content:
    """Parts in one content, each on a line of its own."""
    if all(isinstance(part, str) for part in parts):
        return _lines([part for part in parts if isinstance(part, str)])
    items: list[ContentItem] = []
    for part in parts:
        if items and not (items[-1].text or "").endswith("\n"):
            items.append(ContentItem(text="\n"))
        items += [ContentItem(text=part)] if isinstance(part, str) else part
    return as_content(items)


def _lines(parts: Iterable[str]) -> str:
    pieces: list[str] = []
    for part in parts:
        if pieces and not pieces[-1].endswith("\n"):
            pieces.append("\n")
        pieces.append(part)
    return "".join(pieces)


def between(before: str, content: Content, after: str) -> Content:
    """A content with a text before and a text after it."""
    if isinstance(content, str):
        return f"{before}{content}{after}"
    return as_content([ContentItem(text=before), *content, *([ContentItem(text=after)] if after else [])])


def with_texts(content: Content, change: Callable[[str], str]) -> Content:
    """A content with each of its texts changed."""
    if isinstance(content, str):
        return change(content)
    return [ContentItem(text=change(item.text)) if item.text is not None else item for item in content]


def as_content(items: Iterable[ContentItem]) -> Content:
    """Items with neighbouring texts joined; a text if there is nothing else."""
    joined: list[ContentItem] = []
    for item in items:
        if joined and item.text is not None and joined[-1].text is not None:
            joined[-1] = ContentItem(text=joined[-1].text + item.text)
        else:
            joined.append(item)
    if len(joined) == 1 and joined[0].text is not None:
        return joined[0].text
    return joined
