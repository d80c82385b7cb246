"""Media in messages: distinguish files from URLs, detect file types, and prepare files for requests.

A file's type is detected from its first bytes, or from its name if the bytes are inconclusive. A file whose content
does not match the kind given in the message is rejected, so a wrong path cannot send private text to a provider.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, unquote, urlsplit

from jackfield.defaults import AGENT_WITH_FILES
from jackfield.errors import MissingFileError, UnsupportedInputError
from jackfield.messages import SYSTEM, USER, ContentItem, Message, basename_of

MAX_FILE_BYTES = 50_000_000  # no provider accepts larger requests
PDF = "application/pdf"

# These addresses never name a local file: `data:` URIs, and URLs of any scheme except `file`.
_MAX_URI_HEAD = 10_000
_MAX_NAME_CHARS = 255
_ELSEWHERE = re.compile(r"data:|(?!file:)[a-z][a-z0-9+.-]+://", re.IGNORECASE)
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
_RIFF_TYPES = {b"WEBP": "image/webp", b"WAVE": "audio/wav", b"AVI ": "video/x-msvideo"}
_MP4_BRANDS = {b"avif": "image/avif", b"heic": "image/heic", b"M4A ": "audio/mp4"}
_DOCUMENTS = (b"%PDF", b"PK\x03\x04", b"\xd0\xcf\x11\xe0", b"SQLite format 3", b"\x7fELF", b"\x1f\x8b")
_KIND_NAMES = {"image": "an image", "audio": "sound", "video": "a video"}


class Media(NamedTuple):
    """A file's content and media type, such as `image/png`."""

    media_type: str
    content: bytes

    @property
    def base64(self) -> str:
        """The base64-encoded content."""
        return base64.b64encode(self.content).decode()

    @property
    def data_uri(self) -> str:
        """The content as a `data:` URI."""
        return f"data:{self.media_type};base64,{self.base64}"


# --- addresses --------------------------------------------------------------------------------------------------------


def path_of(address: object, *, remote: Sequence[str] = ("http", "https")) -> Path | None:
    """Return the file that a path or `file:` URL refers to, or None for `data:` URIs and schemes in `remote`."""
    if not isinstance(address, str) or address[:5].lower() == "data:":
        return None
    try:
        parts = urlsplit(address)
    except ValueError:  # starts like a URL, but is not a valid one
        return Path(address)
    if parts.scheme in remote:
        return None
    if parts.scheme != "file":
        return Path(address)
    from urllib.request import url2pathname  # this loads an HTTP client, and `file:` URLs are rare

    # `file://name.png` is incorrect but common. The name takes the place of the host.
    return Path(url2pathname(unquote(parts.netloc + parts.path)))


def is_local(item: ContentItem, *, remote: Sequence[str] = ("http", "https")) -> bool:
    """Return True if sending the item requires reading a file."""
    if not item.is_media_content():
        return False
    return any(path_of(address, remote=remote) is not None for address in _addresses(item))


def notes_of(items: Sequence[ContentItem]) -> list[str]:
    """Return a note with the kind and name of each item, for messages that cannot contain the items.

    Skip text items.
    """
    return [f"[{item.type}: {_name_of(item.value)}]" for item in items if item.text is None]


def without_foreign_paths(history: tuple[Message, ...]) -> tuple[Message, ...]:
    """Replace local files in messages from models and tools with notes.

    Only files named in user and system messages may be read and sent. Any other path is treated as plain text. Files
    that a tool writes during this run are included in the tool's result as `data:` URIs.
    """
    # Histories are long, and mostly plain text.
    with_items = [m for m in history if isinstance(m.content, list) or isinstance(m.reasoning_content, list)]
    if not any(_names_files(message) for message in with_items):
        return history
    return tuple(_replace_files(message) if _names_files(message) else message for message in history)


def write_data_uri(media_type: str, data: str, name: str = "") -> str:
    """Return base64 content as a `data:` URI that includes the file's name; see `stated_name`."""
    stated = f";name={quote(name[-_MAX_NAME_CHARS:], safe='', errors='replace')}" if name else ""
    return f"data:{media_type}{stated};base64,{data}"


def split_data_uri(address: str) -> tuple[str, str, str] | None:
    """Return the media type, base64 content and file name of a `data:` URI, or None for anything else."""
    head, separator, data = address.partition(";base64,")
    if not separator or head[:5].lower() != "data:":
        return None
    return head[5:].partition(";")[0], data, stated_name(address)


def stated_name(uri: str) -> str:
    """Return the file name in the `name` parameter of a `data:` URI, or '' if there is none.

    The name is untrusted, but it is printable and contains no path separators.
    """
    head = uri[5:_MAX_URI_HEAD].partition(",")[0]
    for parameter in head.split(";")[1:]:
        if parameter[:5].lower() == "name=":
            name = basename_of(unquote(parameter[5:])).replace("\\", "/").rpartition("/")[2]
            return name if name.isprintable() and name not in (".", "..") else ""
    return ""


# --- files ------------------------------------------------------------------------------------------------------------


def read_media(path: Path, kind: str, *, max_bytes: int = MAX_FILE_BYTES) -> Media:
    """Read an image, audio or video file.

    Args:
        path: The file. Error messages only show its name.
        kind: `image`, `audio` or `video`.
        max_bytes: The maximum file size that the server accepts.

    Raises:
        UnsupportedInputError: The file is missing, too large, or of another kind.
    """
    content = _read(path, kind, max_bytes)
    media_type = media_type_of(content[:16])
    if not media_type and kind != "image":  # the first bytes do not show all audio and video formats
        media_type = _type_by_name(path, content)
    if not media_type.startswith(f"{kind}/"):
        raise UnsupportedInputError(
            f"expected {_KIND_NAMES[kind]}, but the file {_shown(path)} is {media_type or 'of an unknown type'}: "
            "convert or remove the file"
        )
    return Media(media_type, content)


def read_file(path: Path, *, max_bytes: int = MAX_FILE_BYTES) -> bytes:
    """Return the content of a file of any kind.

    Raises:
        MissingFileError: The file does not exist or cannot be opened.
        UnsupportedInputError: The file is too large.
    """
    return _read(path, "file", max_bytes)


def pdf_of(address: str) -> Media | None:
    """Return the PDF at a path or in a `data:` URI, or None for URLs and other files.

    Raises:
        UnsupportedInputError: The file is missing or too large; see `read_file`.
    """
    if address[:5].lower() == "data:":
        content = split_data_uri(address)
        return Media(PDF, base64.b64decode(content[1])) if content and content[0].lower() == PDF else None
    path = path_of(address)
    if path is None:
        return None
    data = read_file(path)
    return Media(PDF, data) if data.startswith(b"%PDF") else None


def media_type_of(head: bytes) -> str:
    """Detect a file's media type from its first 16 bytes. Return '' if they are inconclusive."""
    if head.startswith(b"RIFF"):
        return _RIFF_TYPES.get(head[8:12], "")
    if head[4:8] == b"ftyp":
        return _MP4_BRANDS.get(head[8:12], "video/mp4")
    for magic, media_type in _MAGIC:
        if head.startswith(magic):
            return media_type
    return ""


def address_of(
    value: str, kind: str, *, max_bytes: int = MAX_FILE_BYTES, remote: Sequence[str] = ("http", "https")
) -> str:
    """Return the address to send to a server. URLs and `data:` URIs are left unchanged. Files become `data:` URIs.

    Raises:
        UnsupportedInputError: The file cannot be used (see `read_media`), or a `data:` URI is of another kind.
    """
    path = path_of(value, remote=remote)
    if path is not None:
        return read_media(path, kind, max_bytes=max_bytes).data_uri
    if value[:5].lower() == "data:" and not value[5:].lower().startswith(f"{kind}/"):
        raise UnsupportedInputError(
            f"expected {_KIND_NAMES[kind]}, got a data: URI starting with {value[:30]!r}: use data:{kind}/…;base64,…"
        )
    return value


def embed_files(content: Sequence[ContentItem]) -> list[ContentItem]:
    """Embed local media in a tool's result as `data:` URIs, and replace unreadable files with notes.

    Anyone who can write a history can add a path, so paths in messages are not trusted. A tool's files are only read in
    the run that produced them.
    """
    return [_embed(item) if is_local(item) else item for item in content]


# --- helpers ----------------------------------------------------------------------------------------------------------


def _addresses(item: ContentItem) -> list[object]:
    """Return an item's addresses. A video that consists of frames has many addresses."""
    value = item.value
    return value if isinstance(value, list) else [value]


def _name_of(value: object) -> str:
    if isinstance(value, list):
        return f"{len(value)} frames"
    if not isinstance(value, str):
        return "data"
    return (stated_name(value) or "data") if value[:5].lower() == "data:" else basename_of(value)


def _names_files(message: Message) -> bool:
    if message.role in (USER, SYSTEM):
        return False
    parts = (message.content, message.reasoning_content)
    return any(_names_file(item) for part in parts if isinstance(part, list) for item in part)


def _names_file(item: ContentItem) -> bool:
    if item.text is not None:
        return False
    return any(isinstance(address, str) and not _ELSEWHERE.match(address) for address in _addresses(item))


def _replace_files(message: Message) -> Message:
    def replaced(content: str | list[ContentItem] | None) -> str | list[ContentItem] | None:
        if not isinstance(content, list):
            return content
        return [ContentItem(text=notes_of([item])[0]) if _names_file(item) else item for item in content]

    return message.replace(content=replaced(message.content), reasoning_content=replaced(message.reasoning_content))


def _read(path: Path, kind: str, max_bytes: int) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(max_bytes + 1)
    except (OSError, ValueError) as error:  # a path with a NUL is a ValueError
        reason = getattr(error, "strerror", None) or type(error).__name__
        if isinstance(error, IsADirectoryError):
            reason = f"folders can only be read by agent kind {AGENT_WITH_FILES!r}"
        raise MissingFileError(
            f"cannot read the {kind} {_shown(path)}: {reason}; pass a URL or the path of a file"
        ) from error
    if len(content) > max_bytes:
        raise UnsupportedInputError(
            f"the {kind} {_shown(path)} is larger than {max_bytes:,} bytes: reduce its size, or pass its URL"
        )
    return content


def _type_by_name(path: Path, content: bytes) -> str:
    """Return the media type that a file's name implies. Text and documents are not media, regardless of their names."""
    if _is_text(content[:1024]) or content.startswith(_DOCUMENTS):
        return ""
    import mimetypes  # this reads the system's tables, which few files need

    return mimetypes.guess_type(path.name)[0] or ""


def _is_text(head: bytes) -> bool:
    # This includes SVG, which no provider accepts as an image.
    return all(byte >= 0x20 or byte in b"\t\n\r\f\x1b" for byte in head)


def _shown(path: Path) -> str:
    return repr(basename_of(str(path)))


def _embed(item: ContentItem) -> ContentItem:
    kind, value = item.get_type_and_value()
    try:
        if isinstance(value, list):
            return ContentItem(video=[_data_uri(frame, "image") for frame in value])
        return ContentItem.model_validate({kind: _data_uri(value, kind)})
    except UnsupportedInputError as error:
        return ContentItem(text=f"{notes_of([item])[0]} was omitted: {error}")


def _data_uri(address: str, kind: str) -> str:
    path = path_of(address)
    return address if path is None else read_media(path, kind).data_uri
