"""Extract passages from the system message's knowledge block and from tool results."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import takewhile
from pathlib import PurePath
from typing import Any

from jackfield.messages import FUNCTION, SYSTEM, Message

_HEADING = re.compile(r"^#[ \t]*(?:Knowledge Base|知识库)[ \t]*$", re.MULTILINE)
_SOURCE = re.compile(
    r"^##[ \t]*(?:The content from[ \t]+(?P<en>.+?)[ \t]*:|来自[ \t]*(?P<zh>.+?)[ \t]*的内容[ \t]*[：:])\s*$"
)
_FENCE = re.compile(r"^(`{3,})[^`]*$")
_LINK = re.compile(r"^\[[^\]]*\]\((?P<name>.*)\)$")
_PAGE = re.compile(r"\n?^[ \t]*\[page:[ \t]*(\d+)\][^\S\n]*$\n?", re.IGNORECASE | re.MULTILINE)  # with its line ends
_MARK = re.compile(r"^\[[A-Z]?\d{1,3}\]\n", re.MULTILINE)  # the number of a passage
_GAP = re.compile(r"\n\n\.\.\.\n\n")


@dataclass(frozen=True, slots=True)
class Passage:
    """A text that may be quoted.

    Attributes:
        text: The original text.
        source: The name of the document or tool.
        page: The page number, starting at 1, or None if unknown.
        from_tool: True if the text is a tool's own result. The tool's name then counts as part of its topic.
    """

    text: str
    source: str
    page: int | None = None
    from_tool: bool = False


def read_passages(messages: Iterable[Message]) -> list[Passage]:
    """Return all passages in the messages, in order and without duplicates."""
    passages: list[Passage] = []
    for message in messages:
        if message.role == SYSTEM:
            passages += passages_in_block(message.get_text_content())
        elif message.role == FUNCTION:
            passages += passages_in_result(message)
    return list(dict.fromkeys(passages))


def passages_in_block(text: str) -> list[Passage]:
    """Return the passages in a knowledge block, or [] if the text has none."""
    heading = _HEADING.search(text)
    if heading is None:
        return []
    passages: list[Passage] = []
    for source, content in _fenced(text[heading.end() :].split("\n")):
        for chunk in _GAP.split(_MARK.sub("", content)):
            passages += _pages(chunk, _display_name(source))
    return passages


def passages_in_result(message: Message) -> list[Passage]:
    """Return the passages of the documents that a tool result lists, or else its text as a single passage."""
    text = message.get_text_content()
    documents = _listed(text)
    if documents:
        return [passage for document in documents for passage in _of_document(document)]
    return [Passage(text, message.name or "", from_tool=True)] if text.strip() else []


def _of_document(document: dict[str, Any]) -> list[Passage]:
    source = _display_name(str(document["url"]))
    return [passage for chunk in document["text"] for passage in _pages(str(chunk), source)]


def _fenced(lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield each source in a block with its fenced content. Headings inside a fence are content."""
    rest = iter(lines)
    source = ""
    for line in rest:
        if match := _SOURCE.match(line):
            source = match["en"] or match["zh"]
        elif source and (match := _FENCE.match(line.rstrip())):
            # The last fence may never close, for instance if the block was cut to fit a context.
            yield source, "\n".join(_until(match[1], rest))
            source = ""


def _until(fence: str, lines: Iterator[str]) -> Iterator[str]:
    return takewhile(lambda line: line.rstrip() != fence, lines)


def _pages(chunk: str, source: str) -> list[Passage]:
    """Split a chunk at its `[page: N]` lines."""
    first, *rest = _PAGE.split(chunk)
    pages = (None, *map(int, rest[::2]))
    return [Passage(text, source, page) for page, text in zip(pages, (first, *rest[1::2]), strict=True) if text.strip()]


def _display_name(source: str) -> str:
    """Return the file name from a path, a URL or a link such as `[file](guide.pdf)`."""
    link = _LINK.match(source)
    name = link["name"] if link else source
    return PurePath(name.rstrip("/")).name or source


def _listed(text: str) -> list[dict[str, Any]]:
    """Return the documents listed in a tool result, or [] for any other result."""
    try:
        value = json.loads(text) if text.lstrip().startswith("[") else []
    except (ValueError, RecursionError):
        return []
    return value if all(map(_is_document, value)) else []


def _is_document(entry: object) -> bool:
    return isinstance(entry, dict) and "url" in entry and isinstance(entry.get("text"), list)
