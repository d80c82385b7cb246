"""What somebody gives an agent besides a question: documents, attachments, and what comes through a pipe."""

from __future__ import annotations

import glob
import mimetypes
import os
import stat
import sys
import threading
from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from jackfield.errors import ConfigError
from jackfield.messages import USER, ContentItem, Message

MOST_FILES = 2000
_SHOWN_NAMES = 5
_SAYS_IT_WAITS_S = 2.0
# What belongs to programs and not to people; hidden files and folders are left out, too.
_NOT_OURS = frozenset({"__pycache__", "node_modules"})
# What pictures begin with, where no name says what they are.
_MAGIC = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF8": "image/gif",
    b"BM": "image/bmp",
}

Readable = Callable[[str], bool]
"""Whether a file with an extension (lower case, without its dot) can be read."""


@dataclass(frozen=True, slots=True)
class Documents:
    """The files that were meant, and those that were left out, each with the reason."""

    files: tuple[str, ...] = ()
    skipped: tuple[tuple[str, str], ...] = ()

    def lines(self) -> list[str]:
        """What to say of those that were left out: a line for each reason."""
        reasons = dict.fromkeys(reason for _, reason in self.skipped)
        return [_skipped([name for name, why in self.skipped if why == reason], reason) for reason in reasons]


def documents_of(given: Sequence[str], readable: Readable) -> Documents:
    """The files that paths, folders and globs stand for.

    A file that is named is taken as it is. Of a folder, and of what a glob finds, hidden files, empty ones and those
    that nothing reads are left out.

    Raises:
        ConfigError: There is nothing of a name, or there are more than `MOST_FILES` files.
    """
    files: dict[str, None] = {}
    skipped: dict[str, str] = {}
    for name in given:
        if "://" in name or Path(name).is_file():
            files[name] = None
            continue
        for found, reason in _found(name, readable):
            if reason:
                skipped[found] = reason
            else:
                files[found] = None
            if len(files) > MOST_FILES:
                raise ConfigError(f"{name!r} has more than {MOST_FILES} files: name a smaller folder, or some of them")
    if given and not files:
        told = "; ".join(Documents((), tuple(skipped.items())).lines()) or "it has no files"
        raise ConfigError(f"there is nothing to read in {', '.join(map(repr, given))}: {told}")
    return Documents(tuple(files), tuple((name, why) for name, why in skipped.items() if name not in files))


def _found(name: str, readable: Readable) -> Iterator[tuple[str, str]]:
    """The files of a folder or a glob, with the reason why one is left out, else ''."""
    path = Path(name).expanduser()
    if path.is_file():
        yield str(path), ""
    elif path.is_dir():
        for file in _files_below(path):
            yield file, _why_not(file, readable)
    elif not glob.has_magic(name):
        raise ConfigError(f"there is no file {name!r} in {Path.cwd()}")
    else:
        matches = glob.glob(str(path), recursive=True)  # noqa: PTH207 - of pathlib, none takes a whole path
        if not matches:
            raise ConfigError(f"no file matches {name!r} in {Path.cwd()}")
        # A glob follows links to folders, and so may find a file again and again.
        first = {os.path.realpath(match): match for match in sorted(matches, key=len, reverse=True)}
        for match in sorted(first.values()):
            if not Path(match).is_dir() and _NOT_OURS.isdisjoint(Path(match).parts):
                yield match, _why_not(match, readable)


def _files_below(folder: Path) -> Iterator[str]:
    """The files in a folder and in those inside it, in order; a link to a folder is not followed."""
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not _is_hidden(name))
        yield from (os.path.join(place, name) for name in sorted(names) if not _is_hidden(name))  # noqa: PTH118


def _is_hidden(name: str) -> bool:
    return name.startswith(".") or name in _NOT_OURS


def _why_not(file: str, readable: Readable) -> str:
    try:
        facts = Path(file).stat()
    except OSError as error:
        return (error.strerror or str(error)).lower()
    if not stat.S_ISREG(facts.st_mode):
        return "not a regular file"
    if not facts.st_size:
        return "empty"
    if not os.access(file, os.R_OK):
        return "permission denied"
    extension = Path(file).suffix.lower().removeprefix(".")
    if readable(extension):
        return ""
    return f"no installed package reads .{extension} files" if extension else "it has no extension"


def _skipped(names: Sequence[str], reason: str) -> str:
    shown = ", ".join(names[:_SHOWN_NAMES])
    more = f" and {len(names) - _SHOWN_NAMES} more" if len(names) > _SHOWN_NAMES else ""
    return f"skipped {shown}{more}: {reason}"


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
