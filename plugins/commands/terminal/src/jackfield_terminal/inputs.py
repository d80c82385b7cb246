"""Read an agent's inputs: documents, attachments and standard input."""

from __future__ import annotations

import mimetypes
import os
import re
import stat
import sys
import threading
from base64 import b64encode
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TextIO
from urllib.parse import urlsplit

from jackfield import sync
from jackfield.attachments import decode_text
from jackfield.errors import ConfigError, DocParserError
from jackfield.messages import USER, ContentItem, Message
from jackfield_documents import Expanded, WhyNot, expand

_HINT_AFTER_S = 2.0
_SAMPLE_BYTES = 8192  # enough to recognise text files
# Magic numbers that identify piped images.
_SIGNATURES = {
    re.compile(rb"\x89PNG\r\n\x1a\n"): "image/png",
    re.compile(rb"\xff\xd8\xff"): "image/jpeg",
    re.compile(rb"GIF8"): "image/gif",
    re.compile(rb"BM"): "image/bmp",
    re.compile(rb"RIFF.{4}WEBP", re.DOTALL): "image/webp",
}


def find_documents(names: Sequence[str], why_not: WhyNot | None) -> Expanded:
    """Find the files that match paths, directories and patterns.

    Args:
        names: See `jackfield_documents.expand`.
        why_not: Returns the reason to skip a file. If None, no file is skipped.

    Raises:
        ConfigError: A name matches nothing, there are too many files, or none of them can be read.
    """
    documents = expand(names, why_not=why_not)
    if documents.missing:
        raise ConfigError(f"no files or folders match {documents.missing[0]!r} in {Path.cwd()}")
    if names and not documents.files:
        reasons = "; ".join(documents.lines()) or "no files"
        raise ConfigError(f"there is nothing to read in {', '.join(repr(name) for name in names)}: {reasons}")
    return documents


def why_not_sent(why_not_parsed: WhyNot) -> WhyNot:
    """Return a function that gives the reason why a file's content cannot be sent to a model, or ''.

    Args:
        why_not_parsed: Returns the reason why no installed parser can read a file, or ''.
    """

    def why_not(path: str) -> str:
        reason = why_not_parsed(path)
        if not reason:
            return ""
        content = Path(path).read_bytes()
        # Allow PDFs, because the model may support them; its abilities are not known yet.
        return "" if content.startswith(b"%PDF") or decode_text(content) is not None else reason

    return why_not


# --- attachments ------------------------------------------------------------------------------------------------------


def make_question(text: str, attachments: Sequence[str]) -> Message:
    """Create a question with attached images, audio and files.

    Raises:
        ConfigError: An attachment does not exist.
    """
    if not attachments:
        return Message(USER, text)
    return Message(USER, [ContentItem(text=text), *(make_attachment(name) for name in attachments)])


def make_attachment(name: str) -> ContentItem:
    """Create a content item from a file, a URL, or `-` for standard input.

    Raises:
        ConfigError: The file does not exist, or standard input is not an image in a known format.
    """
    if name == "-":
        data = read_input()
        for signature, media_type in _SIGNATURES.items():
            if signature.match(data):
                return _content_item(media_type, f"data:{media_type};base64,{b64encode(data).decode()}")
        raise ConfigError("-a -: standard input does not contain a PNG, JPEG, GIF, BMP or WebP image")
    if "://" not in name:
        path = Path(name).expanduser()
        if not path.is_file():
            raise ConfigError(f"the attachment {name!r} {_why_no_file(path, if_folder='attach the files in it')}")
        name = str(path)
    media_type = mimetypes.guess_type(name.partition("?")[0])[0] or ""
    return _content_item(media_type, name)


def _why_no_file(path: Path, *, if_folder: str) -> str:
    """Return the reason why a path is not that of a file, to complete a sentence about it."""
    if path.is_dir():
        return f"is a folder; {if_folder}"
    if path.exists():
        return "is not a regular file; copy its content into one"
    return "does not exist" if path.is_absolute() else f"is not in {Path.cwd()}"


def _content_item(media_type: str, value: str) -> ContentItem:
    match media_type.partition("/")[0]:
        case "image":
            return ContentItem(image=value)
        case "audio":
            return ContentItem(audio=value)
        case "video":
            return ContentItem(video=value)
    return ContentItem(file=value)


# --- fragments --------------------------------------------------------------------------------------------------------


def read_fragment(source: str) -> str:
    """Return the complete text of a file or URL, for use in a prompt. Files other than text are parsed.

    Raises:
        ConfigError: The source does not exist, or contains no text that an installed package can read.
    """
    from jackfield_documents import DocumentReader, is_url  # most questions have no fragments

    if not is_url(source):
        path = Path(source).expanduser()
        if not path.is_file():
            raise ConfigError(f"the fragment {source!r} {_why_no_file(path, if_folder='specify the files in it')}")
        raw = path.read_bytes()
        if b"\0" not in raw[:_SAMPLE_BYTES]:
            with suppress(UnicodeDecodeError):
                return raw.decode("utf-8-sig").strip()
        source = str(path)
    # The user typed the URL, so it may be local or in a private network, but redirects may not.
    host = urlsplit(source).hostname if is_url(source) else None
    reader = DocumentReader(fetch_cfg={"allow": [host]} if host else None)
    try:
        document = sync.run(reader.read(source))
    except DocParserError as error:
        raise ConfigError(f"the fragment {source!r} cannot be read: {error}") from error
    return "\n\n".join(block.text for block in document.blocks).strip()


# --- standard input ---------------------------------------------------------------------------------------------------


def is_piped(stream: TextIO | None) -> bool:
    """Return True for a pipe, socket or file, and False for a terminal or /dev/null."""
    if stream is None or stream.closed or stream.isatty():
        return False
    try:
        mode = os.fstat(stream.fileno()).st_mode
    except (OSError, ValueError):  # the stream has no file descriptor
        return False
    return stat.S_IFMT(mode) in (stat.S_IFIFO, stat.S_IFREG, stat.S_IFSOCK)


def read_text() -> str:
    """Read standard input as text until it ends.

    Raises:
        ConfigError: The input is not UTF-8.
    """
    try:
        return read_input().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"standard input is not valid UTF-8 (invalid byte at position {error.start}); to attach an image, pass -a -"
        ) from error


def read_input() -> bytes:
    """Read standard input until it ends, printing a hint if this takes long."""
    if sys.stdin is None:
        return b""
    waiting = threading.Timer(_HINT_AFTER_S, _print_hint)
    waiting.daemon = True
    waiting.start()
    try:
        return sys.stdin.buffer.read()
    finally:
        waiting.cancel()


def _print_hint() -> None:
    sys.stderr.write("jackfield: reading standard input until it ends; if there is nothing to read, add < /dev/null\n")
    sys.stderr.flush()
