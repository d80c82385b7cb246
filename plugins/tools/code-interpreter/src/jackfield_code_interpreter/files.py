"""Copy a conversation's files to where the code runs: regular files only, within limits, without following links.

Model-written code may modify the folders at the same time. Each name is therefore opened only once, and all checks look
at the open file.
"""

from __future__ import annotations

import math
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from jackfield.plurals import format_count
from jackfield_confine.paths import FILE, open_folder

_PIECE_BYTES = 1 << 20
_LISTED = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_MAX_NOTES = 20


@dataclass(frozen=True, slots=True)
class FileLimits:
    """Limits on copied files over the lifetime of a folder. None means unlimited."""

    file_bytes: int | None = 256 << 20
    total_bytes: int | None = 1 << 30
    files: int | None = 200


class BroughtFiles:
    """Copies files into a folder.

    A file is copied again only after its source has changed, so edits made by the code survive. Files that were already
    in the folder are never overwritten.
    """

    def __init__(self, folder: Path, limits: FileLimits | None = None) -> None:
        self._folder = folder
        self._limits = limits or FileLimits()
        self._copies: dict[str, str] = {}
        self._seen: dict[str, tuple[float, int]] = {}
        self._real_folders: dict[str, Path] = {}
        self._copied_bytes = 0

    def bring(self, paths: Sequence[str]) -> list[str]:
        """Copy new and changed files. Paths that are not local files, such as URLs and folders, are skipped.

        Returns:
            Notes for the model about files that were refused, failed to copy or had to be renamed.
        """
        notes = [note for path in paths for note in self._bring(path)]
        if len(notes) > _MAX_NOTES:
            notes[_MAX_NOTES:] = [f"Note: the same applies to {format_count(len(notes) - _MAX_NOTES, 'more file')}."]
        return notes

    def _bring(self, path: str) -> Iterator[str]:
        source = Path(path)
        if not _may_be_copied(source):
            return
        shown = _shown(source.name)
        try:
            with self._open(source, path) as (file, facts):
                state = (facts.st_mtime, facts.st_size)
                if file is None or self._seen.get(path) == state:
                    return
                name = self._copies.get(path) or self._free_name(source)
                self._copy(file, facts, name, new=path not in self._copies)
        except _RefusedError as refusal:
            yield f"Note: the file {shown} was not copied to the working directory: {refusal}."
            return
        except OSError as error:
            yield f"Note: the file {shown} could not be copied to the working directory: {error.strerror}."
            return
        if name != source.name and path not in self._copies:
            yield f"Note: a file named {shown} already existed; the conversation's file was copied as {_shown(name)}."
        self._copies[path], self._seen[path] = name, state

    @contextmanager
    def _open(self, source: Path, path: str) -> Iterator[tuple[int | None, os.stat_result]]:
        """Open a file and yield its descriptor and `stat` result.

        The descriptor is None if the file is already in the target folder.
        """
        # Links on the way to a file are resolved once, when it is first named, because code could plant others later.
        real_folder = self._real_folders.setdefault(path, source.parent.resolve())
        with open_folder(real_folder) as parent:
            facts = os.stat(source.name, dir_fd=parent, follow_symlinks=False)
            if real_folder == self._folder.resolve():
                yield None, facts
                return
            if stat.S_ISLNK(facts.st_mode):
                raise _RefusedError("it is a symbolic link; pass the path of the file itself")
            if not stat.S_ISREG(facts.st_mode):
                raise _RefusedError("not a regular file")
            file = os.open(source.name, FILE, dir_fd=parent)
        try:
            facts = os.fstat(file)
            if not stat.S_ISREG(facts.st_mode):  # replaced meanwhile
                raise _RefusedError("not a regular file")
            if facts.st_nlink > 1 and self._folder.resolve() in real_folder.parents:
                raise _RefusedError("the file has another hard link, possibly outside the folder")
            yield file, facts
        finally:
            os.close(file)

    def _copy(self, file: int, facts: os.stat_result, name: str, *, new: bool) -> None:
        most = self._room(facts.st_size, new=new)
        with open_folder(self._folder.resolve()) as folder:
            # A new file replaces the old one; writing into the old one would follow it to wherever the code has put it.
            fresh = f".{uuid4().hex}"
            # The copy has the same permissions as the original.
            target = os.open(fresh, _WRITE, facts.st_mode & 0o666 | 0o600, dir_fd=folder)
            try:
                try:
                    self._copied_bytes += _copy_bytes(file, target, most)
                    _give_to_owner(target, folder)
                finally:
                    os.close(target)
                os.replace(fresh, name, src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                with suppress(OSError):
                    os.unlink(fresh, dir_fd=folder)
                raise

    def _room(self, size_bytes: int, *, new: bool) -> float:
        """Return the byte limit for copying a file of this size, or refuse the file if it does not fit."""
        limits = (self._limits.file_bytes, self._limits.files, self._limits.total_bytes)
        file_bytes, files, total_bytes = (math.inf if limit is None else limit for limit in limits)
        if size_bytes > file_bytes:
            raise _RefusedError(f"its size of {size_bytes} bytes exceeds the limit of {file_bytes} (setting 'file_mb')")
        if new and len(self._copies) >= files:
            raise _RefusedError(f"the limit of {files} copied files has been reached (see the setting 'brought_files')")
        if self._copied_bytes + size_bytes > total_bytes:
            raise _RefusedError(f"the copied files would exceed {total_bytes} bytes in total (setting 'brought_mb')")
        return min(file_bytes, total_bytes - self._copied_bytes)

    def _free_name(self, source: Path) -> str:
        candidate, number = source.name, 1
        while os.path.lexists(self._folder / candidate):
            number += 1
            candidate = f"{source.stem}-{number}{source.suffix}"
        return candidate


def remove_folder(folder: Path) -> None:
    """Remove a folder and its contents at any depth, without following links. Undeletable contents are left behind."""
    with suppress(OSError):
        handle = os.open(folder, _LISTED)
        try:
            _empty(handle)
        finally:
            os.close(handle)
        folder.rmdir()


def _empty(handle: int) -> None:
    # Nested folders are moved up to here, one level at a time: `shutil.rmtree` recurses for each level, and the code
    # may have made more levels than Python's recursion or a path allows.
    waiting = os.listdir(handle)
    while waiting:
        name = waiting.pop()
        with suppress(OSError):
            try:
                inner = os.open(name, _LISTED, dir_fd=handle)
            except OSError:
                os.unlink(name, dir_fd=handle)
                continue
            try:
                waiting += _move_up(inner, handle)
            finally:
                os.close(inner)
            os.rmdir(name, dir_fd=handle)


def _move_up(inner: int, handle: int) -> list[str]:
    """Move the contents of a folder into another, and return their new names."""
    moved = []
    for name in os.listdir(inner):
        fresh = f".{uuid4().hex}"
        with suppress(OSError):
            os.rename(name, fresh, src_dir_fd=inner, dst_dir_fd=handle)
            moved.append(fresh)
    return moved


class _RefusedError(Exception):
    """A file may not be copied; the message says why."""


def _copy_bytes(source: int, target: int, most: float) -> int:
    """Copy a whole file and return its size in bytes. Refuse a file that has grown beyond `most`."""
    copied = 0
    while piece := os.read(source, _PIECE_BYTES):
        copied += len(piece)
        if copied > most:
            raise _RefusedError(f"it grew beyond the limit of {most} bytes while being copied")
        while piece:
            piece = piece[os.write(target, piece) :]
    return copied


def _give_to_owner(file: int, folder: int) -> None:
    """Make the folder's owner the owner of a file that root copied, because sandboxed code does not run as root."""
    owner = os.fstat(folder).st_uid
    if os.geteuid() == 0 and owner != 0:
        os.fchown(file, owner, owner)


def _may_be_copied(path: Path) -> bool:
    """Return True if the path exists and is not a folder. Links count, whatever their target."""
    try:
        return path.name not in ("", "..") and not stat.S_ISDIR(path.lstat().st_mode)
    except (OSError, ValueError):
        return False  # a data: URI is longer than any file's name; no name has a null byte


def _shown(name: str) -> str:
    """Shorten and quote a file name for use in a sentence."""
    return repr(name if len(name) <= 100 else f"{name[:80]}…{name[-19:]}")
