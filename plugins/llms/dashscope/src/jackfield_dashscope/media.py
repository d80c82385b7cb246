"""Images, audio and video as DashScope takes them: addresses as they are, local files as `data:` URIs.

The SDK would upload local files to the provider's store instead; inside of the request they reach no server but the one
that is asked.
"""

from __future__ import annotations

import base64
import mimetypes
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from urllib.request import url2pathname

from jackfield.errors import UnsupportedInputError
from jackfield.messages import ContentItem, basename_of

MAX_FILE_BYTES = 7_500_000  # in base64, the ten million that DashScope takes
_REMOTE = ("http", "https", "oss", "data")

# How files of each kind begin, for those whose names say nothing, or something else.
_BEGINNINGS: tuple[tuple[bytes, str], ...] = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"BM", "image/bmp"),
    (b"II*\0", "image/tiff"),
    (b"MM\0*", "image/tiff"),
    (b"ID3", "audio/mpeg"),
    (b"\xff\xfb", "audio/mpeg"),
    (b"\xff\xf3", "audio/mpeg"),
    (b"OggS", "audio/ogg"),
    (b"fLaC", "audio/flac"),
    (b"#!AMR", "audio/amr"),
    (b"\x1aE\xdf\xa3", "video/webm"),
)
_IN_RIFF = {b"WEBP": "image/webp", b"WAVE": "audio/wav", b"AVI ": "video/x-msvideo"}


def media_part(item: ContentItem) -> dict[str, Any]:
    """The part of a message for an image, audio or video.

    Raises:
        UnsupportedInputError: A local file is missing, too large, or not what it should be.
    """
    kind, value = item.get_type_and_value()
    if isinstance(value, dict):
        return {kind: _inline_audio(value)}
    if isinstance(value, list):
        return {kind: [_address(frame, "image") for frame in value]}
    return {kind: _address(value, kind)}


def is_local(item: ContentItem) -> bool:
    """Whether sending the item means reading a file."""
    if not item.is_media_content() or isinstance(item.value, dict):
        return False
    values = item.value if isinstance(item.value, list) else [item.value]
    return any(_path_of(value) is not None for value in values)


def notes_of(items: Sequence[ContentItem]) -> list[str]:
    """What stands in place of items that a message of this role cannot carry: their kind and name."""
    return [f"[{item.type}: {_name_of(item.value)}]" for item in items if item.text is None]


def _name_of(value: object) -> str:
    if isinstance(value, list):
        return f"{len(value)} frames"
    return basename_of(value) if isinstance(value, str) and not value.startswith("data:") else "data"


def _inline_audio(value: dict[str, Any]) -> str:
    """Audio as OpenAI takes it, `{"data": …, "format": …}`, where the data may also be an address."""
    data = value.get("data") or value.get("url")
    if not isinstance(data, str):
        raise UnsupportedInputError("audio given as a dict needs 'data' in base64 and 'format', or an address as 'url'")
    if data.startswith(tuple(f"{scheme}:" for scheme in _REMOTE)):
        return data
    return f"data:audio/{value.get('format') or 'wav'};base64,{data}"


def _address(value: str, kind: str) -> str:
    path = _path_of(value)
    if path is None:
        return value
    content = _content_of(path, kind)
    return f"data:{_type_of(path, content, kind)};base64,{base64.b64encode(content).decode()}"


def _path_of(value: str) -> Path | None:
    scheme = value[:9].partition(":")[0].lower() if ":" in value[:9] else ""
    if scheme in _REMOTE:
        return None
    # `file://name.png` is no correct URL, but common: there the name stands where the host should.
    return Path(url2pathname(unquote(value[5:].removeprefix("//")))) if scheme == "file" else Path(value)


def _content_of(path: Path, kind: str) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or type(error).__name__
        raise UnsupportedInputError(
            f"the {kind} {_shown(path)} cannot be read: {reason}; give a URL or a path"
        ) from error
    if len(content) > MAX_FILE_BYTES:
        raise UnsupportedInputError(
            f"the {kind} {_shown(path)} has more than {MAX_FILE_BYTES:,} bytes: make it smaller, or give its URL"
        )
    return content


def _type_of(path: Path, content: bytes, kind: str) -> str:
    media_type = _type_by_content(content[:16]) or mimetypes.guess_type(path.name)[0] or "of no known type"
    if not media_type.startswith(f"{kind}/"):
        raise UnsupportedInputError(
            f"the file {_shown(path)} is {media_type}, and should be {kind}: convert it, or leave it out"
        )
    return media_type


def _type_by_content(head: bytes) -> str:
    if head.startswith(b"RIFF"):
        return _IN_RIFF.get(head[8:12], "")
    if head[4:8] == b"ftyp":
        return {b"M4A ": "audio/mp4", b"heic": "image/heic", b"avif": "image/avif"}.get(head[8:12], "video/mp4")
    return next((media_type for beginning, media_type in _BEGINNINGS if head.startswith(beginning)), "")


def _shown(path: Path) -> str:
    return repr(basename_of(str(path)))
