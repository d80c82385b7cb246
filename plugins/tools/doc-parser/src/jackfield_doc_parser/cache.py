"""An on-disk cache of parsed documents, shared between processes.

Each combination of file content and parser has its own entry. A cache failure must never fail a call: a document whose
entry is unreadable is parsed again, and the first error is logged.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import tempfile
import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from jackfield.retrieval import Block, BlockKind, Document
from jackfield_documents import Fingerprint

_VERSION = 2
_SUFFIX = ".doc"
_STAGING = ".new-"
_ABANDONED_S = 3600.0  # age of an incomplete file after which its writer must have been killed
_TOUCH_S = 60.0  # least age of the recorded use before a new one is recorded
_KINDS = frozenset(get_args(BlockKind))

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Entry:
    """A listed cache file."""

    path: Path
    size_bytes: int
    used_at: float


class DocumentCache:
    """Stores parsed documents by content hash and parser, up to a total size.

    Any number of threads and processes can share a folder. Writes are atomic and entries carry a checksum. Processes
    that write the same entry write the same bytes.

    Args:
        folder: The cache folder, created on first use with access for the current user only.
        max_bytes: The maximum total size. The least recently used entries are deleted first; 0 disables the cache.
    """

    def __init__(self, folder: Path, *, max_bytes: int) -> None:
        self.folder = folder
        self._max_bytes = max_bytes
        self._has_warned = False

    def get(self, fingerprint: Fingerprint, *, source: str) -> Document | None:
        """Return the cached document with `source` as its source, or None if there is no intact entry."""
        path = self._path(fingerprint)
        try:
            data = path.read_bytes()
            with contextlib.suppress(OSError):  # it is read-only, or was deleted a moment ago
                if time.time() - path.stat().st_mtime > _TOUCH_S:
                    os.utime(path)
            return _document(data, source, fingerprint.content_hash)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError, zlib.error) as error:
            self._warn(error)
            return None

    def put(self, fingerprint: Fingerprint, document: Document) -> None:
        """Store a document, unless it exceeds the cache size or would not survive a JSON round trip."""
        data = _bytes(document)
        if len(data) > self._max_bytes:
            return
        if _document(data, document.source, document.content_hash) != document:  # such as dates in its metadata
            return
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._write(self._path(fingerprint), data)
            self._make_room()
        except OSError as error:
            self._warn(error)

    def _path(self, fingerprint: Fingerprint) -> Path:
        key = f"{_VERSION}\0{fingerprint.content_hash}\0{fingerprint.parser}\0{fingerprint.of_parts}"
        return self.folder / f"{hashlib.sha256(key.encode()).hexdigest()}{_SUFFIX}"

    def _write(self, target: Path, data: bytes) -> None:
        descriptor, staging = tempfile.mkstemp(dir=self.folder, prefix=_STAGING)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
            Path(staging).replace(target)
        except BaseException:
            Path(staging).unlink(missing_ok=True)
            raise

    def _make_room(self) -> None:
        entries = sorted(self._entries(), key=lambda entry: entry.used_at)
        excess = sum(entry.size_bytes for entry in entries) - self._max_bytes
        for entry in entries:
            if excess <= 0:
                return
            with contextlib.suppress(OSError):  # another process was quicker, or has the file open on Windows
                entry.path.unlink()
            excess -= entry.size_bytes

    def _entries(self) -> Iterator[_Entry]:
        """Yield the cache entries, and delete incomplete files left behind by killed processes."""
        with os.scandir(self.folder) as entries:
            for one in entries:
                with contextlib.suppress(OSError):  # it may be gone by now
                    facts = one.stat(follow_symlinks=False)
                    if one.name.endswith(_SUFFIX):
                        yield _Entry(Path(one.path), facts.st_size, facts.st_mtime)
                    elif one.name.startswith(_STAGING) and time.time() - facts.st_mtime > _ABANDONED_S:
                        Path(one.path).unlink()

    def _warn(self, error: Exception) -> None:
        if not self._has_warned:
            self._has_warned = True
            _log.warning(
                "the document cache in %s cannot be used (%s); documents will be parsed without it. Delete the folder, "
                "or set a different `path`",
                self.folder,
                repr(error),
            )


def default_folder() -> Path:
    """Return `$XDG_CACHE_HOME/jackfield/documents`, with `~/.cache` as the default base."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache").absolute() / "jackfield" / "documents"


def _bytes(document: Document) -> bytes:
    rows = [(block.text, block.kind, block.page, block.level, block.part) for block in document.blocks]
    content = {"title": document.title, "metadata": dict(document.metadata), "blocks": rows}
    # The checksum of zlib shows whether a file is complete.
    return zlib.compress(json.dumps(content, default=repr).encode(), 1)


def _document(data: bytes, source: str, content_hash: str) -> Document:
    """Decode a cached document.

    Raises:
        ValueError, KeyError, TypeError, zlib.error: The data is incomplete or was not written by this cache.
    """
    content = json.loads(zlib.decompress(data))
    blocks = tuple(_block(*row) for row in content["blocks"])
    return Document(source, blocks, content_hash, _text(content["title"]), dict(content["metadata"]))


def _block(text: Any, kind: Any, page: Any, level: Any, part: Any) -> Block:
    if kind not in _KINDS or type(level) is not int or not (page is None or type(page) is int):
        raise ValueError("invalid block")
    return Block(_text(text), kind, page, level, _text(part))


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("invalid text")
    return value
