"""Decode and re-encode files so that everything but the edits is preserved."""

from __future__ import annotations

import codecs
from collections.abc import Sequence

from jackfield.errors import ToolArgumentError

HEAD_BYTES = 8192
BOM = "\ufeff"
# UTF-32 comes before UTF-16, because its byte order mark begins with that of UTF-16.
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


def encoding_of(head: bytes, encodings: Sequence[str], *, is_whole: bool) -> str | None:
    """Detect the encoding of a text file from its first bytes, or return None for a binary file.

    The encoding keeps a byte order mark as the text's first character, so the mark is written back.

    Args:
        head: The beginning of the file, at least `HEAD_BYTES` unless the file is shorter.
        encodings: Encodings to try in turn if there is no byte order mark. If none fits, the first is used.
        is_whole: True if `head` is the whole file. Otherwise it may end within a character.
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
    """Return a file's text and encoding, or None for a binary file.

    Invalid bytes survive a round trip through `encode`.
    """
    encoding = encoding_of(data, encodings, is_whole=True)
    if encoding is None:
        return None
    try:
        return data.decode(encoding, "surrogateescape"), encoding
    except UnicodeDecodeError:  # such as half a character at the end of UTF-16
        return None


def encode(text: str, encoding: str) -> bytes:
    """Encode a text.

    Raises:
        ToolArgumentError: The text contains a character that the encoding lacks; the message names the character.
    """
    try:
        return text.encode(encoding, "surrogateescape")
    except UnicodeEncodeError as error:
        character = text[error.start]
        raise ToolArgumentError(
            f"the file is encoded as {encoding}, which cannot represent {character!a}: remove that character"
        ) from error


def check_whole(text: str, what: str) -> None:
    """Reject text with lone surrogates, which cannot be encoded.

    Raises:
        ToolArgumentError: The text contains a lone surrogate.
    """
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ToolArgumentError(f"{what} contains a lone surrogate: pass the complete character") from error
