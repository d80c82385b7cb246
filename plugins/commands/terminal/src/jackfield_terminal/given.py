"""What an agent is given with a question: documents, attachments, and standard input."""

from __future__ import annotations

import mimetypes
import os
import re
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
    re.compile(rb"\x89PNG\r\n\x1a\n"): "image/png",
    re.compile(rb"\xff\xd8\xff"): "image/jpeg",
    re.compile(rb"GIF8"): "image/gif",
    re.compile(rb"BM"): "image/bmp",
    re.compile(rb"RIFF.{4}WEBP", re.DOTALL): "image/webp",
}


def documents_of(given: Sequence[str], why_not: WhyNot | None) -> Expanded:
    """The files that paths, folders and patterns stand for, and what is left out of them.

    Args:
        given: See `jackfield_documents.expand`.
        why_not: Says why a file cannot be read; None if every file may be read.

    Raises:
        ConfigError: Nothing matches a name, there are too many files, or none of them can be read.
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
    """The question, with attached pictures, sounds and files.

    Raises:
        ConfigError: An attachment does not exist.
    """
    if not attachments:
        return Message(USER, text)
    return Message(USER, [ContentItem(text=text), *map(attachment, attachments)])


def attachment(name: str) -> ContentItem:
    """A file, a URL, or `-` for standard input, as a part of a message.

    Raises:
        ConfigError: It does not exist, or standard input holds nothing of a known kind.
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
    media_type = next((kind for magic, kind in _MAGIC.items() if magic.match(data)), "")
    if not media_type:
        raise ConfigError("-a -: standard input does not hold a PNG, JPEG, GIF, BMP or WebP picture")
    return _item(media_type, f"data:{media_type};base64,{b64encode(data).decode()}")


# --- standard input ---------------------------------------------------------------------------------------------------


def is_piped(stream: TextIO | None) -> bool:
    """Whether a stream is a pipe or a file, rather than a terminal or /dev/null."""
    if stream is None or stream.closed or stream.isatty():
        return False
    try:
        mode = os.fstat(stream.fileno()).st_mode
    except (OSError, ValueError):  # it has no file
        return False
    return stat.S_IFMT(mode) in (stat.S_IFIFO, stat.S_IFREG, stat.S_IFSOCK)


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
    """All of standard input; if it takes a while, a line says what is being waited for."""
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
    sys.stderr.write("jackfield: reading standard input until it ends; if there is nothing to read, add < /dev/null\n")
    sys.stderr.flush()
