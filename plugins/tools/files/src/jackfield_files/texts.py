"""Decode files to text and encode them again, changing nothing but the edits."""

from __future__ import annotations

import codecs
from collections.abc import Sequence

from jackfield.errors import ToolArgumentError

HEAD_BYTES = 8192
BOM = "\ufeff"
# The mark of UTF-32 begins with that of UTF-16.
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


def encoding_of(head: bytes, encodings: Sequence[str], *, is_whole: bool) -> str | None:
    """Return the encoding of a text by its beginning; None if it is not text.

    A byte order mark stays in the text as its first character, so that it is written again.

    Args:
        head: The beginning of the file, at least `HEAD_BYTES` unless the file is shorter.
        encodings: Encodings that are tried in turn if there is no mark. The first one is used if none fits.
        is_whole: True if this is the whole file, so that it cannot end inside a character.
    """
    for mark, encoding in _MARKS:
        if head.startswith(mark):
            return encoding
    if b"\0" in head[:HEAD_BYTES]:
        return None
    for encoding in encodings:
        try:
            codecs.getincrementaldecoder(encoding)().decode(head, final=is_whole)
        except UnicodeDecodeError:
            continue
        return encoding
    return encodings[0]


def decode(data: bytes, encodings: Sequence[str]) -> tuple[str, str] | None:
    """Return a text and its encoding; None for a file that is not text. Invalid bytes survive `encode` unchanged."""
    encoding = encoding_of(data, encodings, is_whole=True)
    if encoding is None:
        return None
    try:
        return data.decode(encoding, "surrogateescape"), encoding
    except UnicodeDecodeError:  # such as half a character at the end of UTF-16
        return None


def encode(text: str, encoding: str) -> bytes:
    """Return the bytes of a text.

    Raises:
        ToolArgumentError: The encoding has no such character; the message names it.
    """
    try:
        return text.encode(encoding, "surrogateescape")
    except UnicodeEncodeError as error:
        character = text[error.start]
        raise ToolArgumentError(f"the file is in {encoding}, which cannot hold {character!a}: leave it out") from error


def check_whole(text: str, what: str) -> None:
    """Refuse lone surrogates, because they cannot be encoded.

    Raises:
        ToolArgumentError: The text contains one.
    """
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ToolArgumentError(f"{what} contains a lone surrogate: write the whole character") from error
