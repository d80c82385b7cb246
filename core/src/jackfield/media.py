"""Images, audio and video in files: read, checked, and prepared for a request.

The first bytes of a file decide what it is; its name only counts if they do not tell. A file that is not of the kind it
is sent as is refused, so a wrong path cannot carry a private text to a provider.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from jackfield.errors import UnsupportedInputError
from jackfield.messages import ContentItem, basename_of
from jackfield.models import is_local, notes_of, path_of

MAX_FILE_BYTES = 50_000_000  # no provider takes a larger request

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
    (b"\xff\xf2", "audio/mpeg"),
    (b"\xff\xf1", "audio/aac"),
    (b"\xff\xf9", "audio/aac"),
    (b"OggS", "audio/ogg"),
    (b"fLaC", "audio/flac"),
    (b"#!AMR", "audio/amr"),
    (b"\x1aE\xdf\xa3", "video/webm"),
)
_DOCUMENTS = (b"%PDF", b"PK\x03\x04", b"\xd0\xcf\x11\xe0", b"SQLite format 3", b"\x7fELF", b"\x1f\x8b")
_IN_RIFF = {b"WEBP": "image/webp", b"WAVE": "audio/wav", b"AVI ": "video/x-msvideo"}
_A_KIND = {"image": "an image", "audio": "sound", "video": "a video"}
_BRANDS = {b"avif": "image/avif", b"heic": "image/heic", b"M4A ": "audio/mp4"}


class Media(NamedTuple):
    """The content of a file, and its media type (`image/png`)."""

    media_type: str
    content: bytes

    @property
    def base64(self) -> str:
        """The content in base64."""
        return base64.b64encode(self.content).decode()

    @property
    def data_uri(self) -> str:
        """The content as a `data:` URI."""
        return f"data:{self.media_type};base64,{self.base64}"


def read_media(path: Path, kind: str, *, max_bytes: int = MAX_FILE_BYTES) -> Media:
    """A file that should be an image, audio or video.

    Args:
        path: Where it is. Errors show only the last part.
        kind: `image`, `audio` or `video`.
        max_bytes: The largest file that the server takes.

    Raises:
        UnsupportedInputError: It is missing, too large, or of another kind.
    """
    content = _content_of(path, kind, max_bytes)
    media_type = media_type_of(content[:16])
    if not media_type and kind != "image":  # sound and film have more formats than can be told by their beginnings
        media_type = _type_by_name(path, content)
    if not media_type.startswith(f"{kind}/"):
        raise UnsupportedInputError(
            f"the file {_shown(path)} is {media_type or 'of an unknown type'}, but should be {_A_KIND[kind]}: "
            "convert it, or leave it out"
        )
    return Media(media_type, content)


def _content_of(path: Path, kind: str, max_bytes: int) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(max_bytes + 1)
    except (OSError, ValueError) as error:  # a path with a NUL is a ValueError
        reason = getattr(error, "strerror", None) or type(error).__name__
        raise UnsupportedInputError(
            f"the {kind} {_shown(path)} cannot be read: {reason}; give a URL or a path"
        ) from error
    if len(content) > max_bytes:
        raise UnsupportedInputError(
            f"the {kind} {_shown(path)} is larger than {max_bytes:,} bytes: make it smaller, or give its URL"
        )
    return content


def media_type_of(head: bytes) -> str:
    """The media type that the first bytes of a file show, '' if none is known. Sixteen bytes are enough."""
    if head.startswith(b"RIFF"):
        return _IN_RIFF.get(head[8:12], "")
    if head[4:8] == b"ftyp":
        return _BRANDS.get(head[8:12], "video/mp4")
    return next((media_type for magic, media_type in _MAGIC if head.startswith(magic)), "")


def address_of(
    value: str, kind: str, *, max_bytes: int = MAX_FILE_BYTES, remote: Sequence[str] = ("http", "https")
) -> str:
    """What is sent to a server: a URL or `data:` URI unchanged, a file as a `data:` URI.

    Raises:
        UnsupportedInputError: As `read_media`, or a `data:` URI says that it is something else.
    """
    path = path_of(value, remote=remote)
    if path is not None:
        return read_media(path, kind, max_bytes=max_bytes).data_uri
    if value[:5].lower() == "data:" and not value[5:].lower().startswith(f"{kind}/"):
        raise UnsupportedInputError(
            f"a data: URI that begins {value[:30]!r} is not {_A_KIND[kind]}: write data:{kind}/…;base64,…"
        )
    return value


def with_files_inside(content: Sequence[ContentItem]) -> list[ContentItem]:
    """What a tool gave, with its local media inside of it, as `data:` URIs; what cannot be read becomes a note.

    A path in a message proves nothing: whoever can write a history can write one. So a tool's own files are read in the
    run that has made them, and never later.
    """
    return [_inside(item) if is_local(item) else item for item in content]


def _inside(item: ContentItem) -> ContentItem:
    kind, value = item.get_type_and_value()
    try:
        if isinstance(value, list):
            return ContentItem(video=[_data_uri(frame, "image") for frame in value])
        return ContentItem.model_validate({kind: _data_uri(value, kind)})
    except UnsupportedInputError as error:
        return ContentItem(text=f"{notes_of([item])[0]} was left out: {error}")


def _data_uri(address: str, kind: str) -> str:
    path = path_of(address)
    return address if path is None else read_media(path, kind).data_uri


def _type_by_name(path: Path, content: bytes) -> str:
    """The type that the name claims, for content that may be media: a text or a document is none, whatever its name."""
    if _is_text(content[:1024]) or content.startswith(_DOCUMENTS):
        return ""
    import mimetypes  # it reads the tables of the machine, and few files need them

    return mimetypes.guess_type(path.name)[0] or ""


def _is_text(head: bytes) -> bool:
    # Markup (SVG) is text, too: no provider takes it as an image.
    return b"\0" not in head and all(byte >= 0x20 or byte in b"\t\n\r\f\x1b" for byte in head)


def _shown(path: Path) -> str:
    return repr(basename_of(str(path)))
