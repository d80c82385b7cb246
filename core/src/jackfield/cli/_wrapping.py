"""Wrap lines for a terminal between words, never inside a word."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

# By Chinese and Japanese typographic rules, lines must not start or end with these.
_CLOSING = frozenset("，。、；：！？）】」』》〉〕…—”’·!),.:;?]}%")
_OPENING = frozenset("（【「『《〈〔“‘([{")
_ASCII_PIECES = re.compile(r"\A *[^ ]* *|[^ ]+ *")
_JOINER = "\u200d"


def width_of(text: str) -> int:
    """Return the number of terminal columns that the text occupies."""
    if text.isascii():
        return len(text)
    return sum(_width(char) for char in text)


def wrap_line(line: str, columns: int, *, indent: str = "") -> list[str]:
    """Wrap a line between words, and between Chinese or Japanese characters.

    Args:
        line: Text without line feeds.
        columns: The terminal's width. Words wider than a line are broken at the end of the line.
        indent: A prefix for every line except the first, dropped if it would fill more than half of the width.

    Returns:
        The lines, without trailing spaces. There is always at least one line.
    """
    if width_of(line) <= columns:
        return [line]
    if 2 * width_of(indent) > columns:
        indent = ""
    offsets = find_breaks(line, columns, indent=width_of(indent))
    parts = [line[start:end].rstrip() for start, end in zip([0, *offsets], [*offsets, len(line)], strict=True)]
    return [parts[0], *(indent + part for part in parts[1:])]


def find_breaks(text: str, columns: int, *, indent: int = 0) -> list[int]:
    """Return the offsets at which the second and later lines start.

    Args:
        text: Text without line feeds.
        columns: The width of a line, at least 1.
        indent: The indentation of every line except the first, in columns.
    """
    offsets: list[int] = []
    room = columns
    position = 0
    for piece in split_line(text):
        width = width_of(piece.rstrip(" "))
        if width > room and position and position != (offsets[-1] if offsets else 0):
            offsets.append(position)
            room = columns - indent
        if width > room:  # the piece is wider than a line
            for index, char in enumerate(piece):
                wanted = _width(char)
                if wanted > room and char != " ":
                    offsets.append(position + index)
                    room = columns - indent
                room -= wanted
        else:
            room -= width_of(piece)
        position += len(piece)
    return offsets


def split_line(text: str) -> Iterator[str]:
    """Split text without line feeds at possible line ends: after spaces, and next to Chinese or Japanese characters."""
    if text.isascii():  # must be fast, because an answer is wrapped again whenever it grows
        yield from _ASCII_PIECES.findall(text)
        return
    start = 0
    for index in range(1, len(text)):
        char, before = text[index], text[index - 1]
        if char == " ":
            continue
        if before == " ":
            is_break = bool(text[start:index].strip(" "))  # an indentation belongs to the first word
        else:
            is_break = (
                (_is_ideograph(char) or _is_ideograph(before))
                and char not in _CLOSING
                and before not in _OPENING
                and before != _JOINER
                and _width(char) > 0
            )
        if is_break:
            yield text[start:index]
            start = index
    yield text[start:]


@lru_cache(maxsize=4096)  # a text has few different characters
def _is_ideograph(char: str) -> bool:
    """Return True for a wide character from a script that is written without spaces. Korean is excluded."""
    return char > "\u2e7f" and not "\uac00" <= char <= "\ud7a3" and _width(char) == 2


@lru_cache(maxsize=4096)
def _width(char: str) -> int:
    if char < "\u0300":
        return 1
    import unicodedata  # most texts do not need it

    if unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1
