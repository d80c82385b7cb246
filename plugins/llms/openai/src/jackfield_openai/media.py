"""Images, audio and video as Chat Completions takes them: addresses as they are, local files as `data:` URIs."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit
from urllib.request import url2pathname

from jackfield.errors import UnsupportedInputError
from jackfield.messages import ContentItem, basename_of

MAX_FILE_BYTES = 50_000_000  # no provider takes a larger request


def media_part(item: ContentItem) -> dict[str, Any]:
    """The part of a message for an image, audio or video.

    Raises:
        UnsupportedInputError: A local file is missing, too large, or not what it should be.
    """
    kind, value = item.get_type_and_value()
    if kind == "image":
        return {"type": "image_url", "image_url": {"url": _address(value, "image")}}
    if kind == "audio":
        return {"type": "input_audio", "input_audio": _audio(value)}
    if isinstance(value, list):
        return {"type": "video", "video": [_address(frame, "image") for frame in value]}
    return {"type": "video_url", "video_url": {"url": _address(value, "video")}}


def is_local(item: ContentItem) -> bool:
    """Whether sending the item means reading a file."""
    kind, value = item.get_type_and_value()
    if kind in ("text", "file"):
        return False
    return any(_local_path(entry) is not None for entry in (value if isinstance(value, list) else [value]))


def media_type_of(head: bytes) -> str:
    """The media type that the first bytes of a file show, '' if none is known. Sixteen bytes are enough."""
    for magic, media_type in _MAGIC:
        if head.startswith(magic):
            return media_type
    if head.startswith(b"RIFF"):
        return {b"WEBP": "image/webp", b"WAVE": "audio/wav", b"AVI ": "video/x-msvideo"}.get(head[8:12], "")
    if head[4:8] == b"ftyp":
        brand = head[8:12]
        return {b"avif": "image/avif", b"heic": "image/heic", b"M4A ": "audio/mp4"}.get(brand, "video/mp4")
    return ""


_MAGIC = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"BM", "image/bmp"),
    (b"II*\x00", "image/tiff"),
    (b"MM\x00*", "image/tiff"),
    (b"ID3", "audio/mpeg"),
    (b"\xff\xfb", "audio/mpeg"),
    (b"\xff\xf3", "audio/mpeg"),
    (b"OggS", "audio/ogg"),
    (b"fLaC", "audio/flac"),
    (b"\x1aE\xdf\xa3", "video/webm"),
)


def _address(value: str, kind: str) -> str:
    path = _local_path(value)
    if path is not None:
        media_type, content = _read(path, kind)
        return f"data:{media_type};base64,{base64.b64encode(content).decode()}"
    if value[:5].lower() == "data:" and not value[5:].lower().startswith(f"{kind}/"):
        raise UnsupportedInputError(
            f"a data: URI that begins {value[:30]!r} is no {kind}: write data:{kind}/…;base64,…"
        )
    return value


def _audio(value: str | dict[str, Any]) -> dict[str, Any]:
    if isinstance(value, dict):
        return value
    path = _local_path(value)
    if path is None:
        return {"data": value}
    media_type, content = _read(path, "audio")
    known = {"audio/mpeg": "mp3", "audio/mp4": "m4a"}
    return {
        "data": base64.b64encode(content).decode(),
        "format": known.get(media_type, media_type.removeprefix("audio/")),
    }


def _local_path(value: Any) -> Path | None:
    if not isinstance(value, str) or value[:5].lower() == "data:":
        return None
    parts = urlsplit(value)
    if parts.scheme in ("http", "https"):
        return None
    # `file://name.png` is no correct URL, but common: there the name stands where the host should.
    return Path(url2pathname(unquote(parts.netloc + parts.path))) if parts.scheme == "file" else Path(value)


def _read(path: Path, kind: str) -> tuple[str, bytes]:
    try:
        with path.open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise UnsupportedInputError(
            f"the {kind} {_shown(path)} cannot be read: {reason}; give a URL or a path"
        ) from error
    if len(content) > MAX_FILE_BYTES:
        raise UnsupportedInputError(
            f"the {kind} {_shown(path)} is larger than {MAX_FILE_BYTES:,} bytes: make it smaller"
        )
    media_type = media_type_of(content[:16])
    if not media_type.startswith(f"{kind}/"):
        what = media_type or "of no known type"
        raise UnsupportedInputError(
            f"the file {_shown(path)} is {what}, and should be {kind}: convert it, or leave it out"
        )
    return media_type, content


def _shown(path: Path) -> str:
    return repr(basename_of(str(path)))


def notes_of(items: Sequence[ContentItem]) -> list[str]:
    """What is said in place of items that a message of this role cannot carry: their kind and name."""
    return [f"[{item.type}: {_name_of(item)}]" for item in items if item.text is None]


def _name_of(item: ContentItem) -> str:
    value = item.value
    if isinstance(value, list):
        return f"{len(value)} frames"
    return basename_of(value) if isinstance(value, str) and value[:5].lower() != "data:" else "data"
