"""What somebody gives an agent besides a question: documents, attachments, and what comes through a pipe."""

from __future__ import annotations

import mimetypes
import os
import stat
import sys
import threading
from base64 import b64encode
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from jackfield.errors import ConfigError
from jackfield.messages import USER, ContentItem, Message
from jackfield_documents import Expanded, WhyNot, expand

_SAYS_IT_WAITS_S = 2.0
# What pictures begin with, where no name says what they are.
_MAGIC = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF8": "image/gif",
    b"BM": "image/bmp",
}


def documents_of(given: Sequence[str], why_not: WhyNot | None) -> Expanded:
    """The files that paths, folders and patterns stand for, and what is left out of them.

    Args:
        given: See `jackfield_documents.expand`.
        why_not: Says why nothing reads a file; None if whatever it is may be read.

    Raises:
        ConfigError: A name stands for nothing, there are too many files, or nothing to read among them.
    """
    found = expand(given, why_not=why_not)
    if found.missing:
        raise ConfigError(f"no file, folder or pattern matches {found.missing[0]!r} in {Path.cwd()}")
    if given and not found.files:
        reasons = "; ".join(found.lines()) or "no files"
        raise ConfigError(f"there is nothing to read in {', '.join(map(repr, given))}: {reasons}")
    return found


# --- attachments ------------------------------------------------------------------------------------------------------


def question(text: str, attachments: Sequence[str]) -> Message:
    """What is asked, with pictures, sounds and files beside it.

    Raises:
        ConfigError: An attachment is not there.
    """
    if not attachments:
        return Message(USER, text)
    return Message(USER, [ContentItem(text=text), *map(attachment, attachments)])


def attachment(name: str) -> ContentItem:
    """A file, a URL, or `-` for standard input, as a part of a message.

    Raises:
        ConfigError: It is not there, or standard input holds nothing whose kind can be seen.
    """
    if name == "-":
        return _attached_input()
    if "://" not in name:
        path = Path(name).expanduser()
        if not path.is_file():
            what = "is a folder; attach the files in it" if path.is_dir() else f"is not in {Path.cwd()}"
            raise ConfigError(f"the attachment {name!r} {what}")
        name = str(path)
    media_type = mimetypes.guess_type(name.partition("?")[0])[0] or ""
    return _item(media_type, name)


def _item(media_type: str, value: str) -> ContentItem:
    match media_type.partition("/")[0]:
        case "image":
            return ContentItem(image=value)
        case "audio":
            return ContentItem(audio=value)
        case "video":
            return ContentItem(video=value)
    return ContentItem(file=value)


def _attached_input() -> ContentItem:
    data = read_input()
    media_type = next((kind for magic, kind in _MAGIC.items() if data.startswith(magic)), "")
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        media_type = "image/webp"
    if not media_type:
        raise ConfigError("-a -: standard input does not hold a PNG, JPEG, GIF, BMP or WebP picture")
    return _item(media_type, f"data:{media_type};base64,{b64encode(data).decode()}")


# --- standard input ---------------------------------------------------------------------------------------------------


def is_piped(stream: TextIO | None) -> bool:
    """Whether somebody has put something behind a stream: a pipe or a file, and neither a terminal nor /dev/null."""
    if stream is None or stream.closed or stream.isatty():
        return False
    try:
        mode = os.fstat(stream.fileno()).st_mode
    except (OSError, ValueError):  # it has no file
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISREG(mode) or stat.S_ISSOCK(mode)


def read_text() -> str:
    """All of standard input.

    Raises:
        ConfigError: It is not UTF-8.
    """
    try:
        return read_input().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"standard input is not UTF-8 text (byte {error.start}); a picture is attached with -a -"
        ) from error


def read_input() -> bytes:
    """All of standard input; if it is slow to come, a line says what is waited for."""
    if sys.stdin is None:
        return b""
    waiting = threading.Timer(_SAYS_IT_WAITS_S, _say_what_is_waited_for)
    waiting.daemon = True
    waiting.start()
    try:
        return sys.stdin.buffer.read()
    finally:
        waiting.cancel()


def _say_what_is_waited_for() -> None:
    sys.stderr.write("jackfield: reading standard input to its end; where there is nothing to read, add < /dev/null\n")
    sys.stderr.flush()
