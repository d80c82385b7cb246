"""List and read a conversation's images, and save images made by tools."""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from urllib.parse import unquote_to_bytes
from uuid import uuid4

from jackfield.errors import ToolServiceError, UnsupportedInputError
from jackfield.media import media_type_of, path_of, read_media
from jackfield.messages import SYSTEM, USER, Message, basename_of
from jackfield.sync import in_worker
from jackfield.tools import Workspace
from jackfield_fetch.fetcher import Fetcher
from jackfield_fetch.rules import shown

_ENDINGS = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp", ".tif", ".tiff")


def images_in(messages: Sequence[Message], files: Sequence[str]) -> list[str]:
    """Return a conversation's images in order and without duplicates: URLs, `data:` URIs and paths.

    Paths count only in user and system messages; elsewhere they are ordinary text. Images among `files`, recognised by
    name, come last.

    Args:
        messages: The conversation so far: `ToolContext.messages`.
        files: `ToolContext.files`, which is empty for a tool without `file_access`.
    """
    named = (name for name in files if basename_of(name).lower().endswith(_ENDINGS))
    return list(dict.fromkeys((*_in_messages(messages), *named)))


async def image_bytes(address: str, fetcher: Fetcher) -> bytes:
    """Return the content of an image in a conversation.

    Args:
        address: An address from `images_in`. A path is opened and read, so the caller must trust it.
        fetcher: Fetches URLs. Its `max_bytes` also limits files and `data:` URIs.

    Raises:
        ToolServiceError: The content cannot be read, or does not begin like an image.
    """
    most = fetcher.config.max_bytes
    if address[:5].lower() == "data:":
        content, name = _inside(address, most), "the image in the conversation"
    elif (path := path_of(address)) is not None:
        try:
            return (await in_worker(read_media, path, "image", max_bytes=most)).content
        except UnsupportedInputError as error:
            raise ToolServiceError(error.message) from error
    else:
        fetched = await fetcher.fetch(address)
        content, name = fetched.content, shown(address)
    # The media type stated by a server or URI proves nothing.
    if not media_type_of(content[:16]).startswith("image/"):
        raise ToolServiceError(f"{name} is not an image in a known format")
    return content


def data_uri(content: bytes) -> str:
    """Return an image as a `data:` URI, with the media type detected from its first bytes."""
    return f"data:{media_type_of(content[:16])};base64,{base64.b64encode(content).decode()}"


def save_image(content: bytes, workspace: Workspace, folder: str, *, ending: str) -> str:
    """Write an image into the workspace atomically, and return its path there. Blocks.

    The name is derived from the content, so saving the same image twice yields one file. No link below the workspace is
    followed, even if running code replaces a folder with one.

    Args:
        content: The image file's content.
        workspace: The run's workspace.
        folder: The folder's path in the workspace, with / between its parts: `tools/` and the tool's name.
        ending: The file extension, such as `.png`.

    Raises:
        ToolServiceError: The image cannot be written.
    """
    name = f"{hashlib.sha256(content).hexdigest()[:16]}{ending}"
    try:
        workspace.root.mkdir(parents=True, exist_ok=True)
        with ExitStack() as opened:
            here = _folder(opened, workspace.root.resolve(), None)
            for part in folder.split("/"):
                with suppress(FileExistsError):
                    os.mkdir(part, dir_fd=here)
                here = _folder(opened, part, here)
            _write(content, name, here)
    except OSError as error:
        raise ToolServiceError(f"the image cannot be saved: {error.strerror or type(error).__name__}") from error
    return f"{folder}/{name}"


def _in_messages(messages: Sequence[Message]) -> Iterator[str]:
    for message in messages:
        for item in message.items:
            if item.image and _may_name(message, item.image):
                yield item.image


def _may_name(message: Message, image: str) -> bool:
    return message.role in (USER, SYSTEM) or path_of(image) is None


def _inside(uri: str, most: int) -> bytes:
    head, _, written = uri.partition(",")
    if len(written) > 3 * most:  # base64 has 4 characters for 3 bytes; percent-encoding 3 for 1
        raise ToolServiceError(f"the image in the conversation is larger than {most / 2**20:.3g} MiB")
    try:
        if head.lower().endswith(";base64"):
            content = base64.b64decode(written, validate=True)
        else:
            content = unquote_to_bytes(written)
    except (binascii.Error, ValueError) as error:
        raise ToolServiceError("the image in the conversation is not valid base64") from error
    if len(content) > most:
        raise ToolServiceError(f"the image in the conversation is larger than {most / 2**20:.3g} MiB")
    return content


def _folder(opened: ExitStack, path: str | Path, parent: int | None) -> int:
    """Open a folder itself, never a link's target."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=parent)
    opened.callback(os.close, descriptor)
    return descriptor


def _write(content: bytes, name: str, folder: int) -> None:
    # Written under a temporary name first, so that no reader sees half an image, and a link at that path is replaced.
    fresh = f".{uuid4().hex}"
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666, dir_fd=folder)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        os.replace(fresh, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(OSError):
            os.unlink(fresh, dir_fd=folder)
        raise
