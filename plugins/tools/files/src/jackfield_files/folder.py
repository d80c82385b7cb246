"""Open workspace files without letting a symlink lead out of the workspace.

`Workspace.resolve` resolves all links in a name. Before the result is used, another process with write access, such as
model-written code, could replace a folder with a link. Each component of the resolved path is therefore opened relative
to the descriptor of its parent, and no component may be a link.
"""

from __future__ import annotations

import difflib
import errno
import os
import secrets
import stat
import time
from collections import deque
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from io import BufferedReader
from itertools import islice
from pathlib import Path

from jackfield.errors import ToolArgumentError, ToolServiceError
from jackfield.tools import Workspace
from jackfield_files.texts import HEAD_BYTES

# Windows has neither these flags nor descriptors of folders, which `_place` reports.
_NO_LINK = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | _NO_LINK
# Do not wait for the other end of a pipe, or acquire a controlling terminal.
_FILE = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | _NO_LINK
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_LINK

_PATIENCE_S = 10.0
_DEEPEST = 64
_LONGEST = 4096
_MOST_IN_FOLDER = 100_000
_REASONS = {
    errno.EACCES: "cannot be accessed: permission denied",
    errno.EPERM: "cannot be accessed: permission denied",
    errno.ENOTDIR: "has a path component that is not a folder",
    errno.ELOOP: "leads through a newly created link: try again",
    errno.ENAMETOOLONG: "is too long for a file name",
    errno.ENOSPC: "cannot be written: the disk is full",
    errno.EDQUOT: "cannot be written: the disk is full",
    errno.EROFS: "cannot be written: the disk is read-only",
}


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry in a folder.

    Attributes:
        path: The path relative to the listed folder, with `/` as separator.
        is_folder: True for a folder.
        is_link: True for a symlink.
        size_bytes: The size of a regular file, otherwise 0.
    """

    path: str
    is_folder: bool = False
    is_link: bool = False
    size_bytes: int = 0


@contextmanager
def reading(workspace: Workspace, name: str) -> Iterator[tuple[BufferedReader, int]]:
    """Open a file for reading, and yield the stream and the file size in bytes.

    Raises:
        ToolArgumentError: The file is missing, not a regular file, outside the workspace, or not readable.
    """
    root, parts = _place(workspace, name)
    with _explain(name, root, parts), _folder(root, parts[:-1]) as folder:
        _check_regular(_status(folder, parts), name)
        with _opened(folder, parts[-1], name) as stream:
            yield stream, os.fstat(stream.fileno()).st_size


class Target:
    """A file to be replaced or created. A lock on its folder excludes other writers that use this class."""

    def __init__(self, folder: int, name: str, status: os.stat_result | None) -> None:
        self._folder = folder
        self._name = name
        self._status = status

    @property
    def is_new(self) -> bool:
        """True if the file does not exist yet."""
        return self._status is None

    def read(self, most_bytes: int) -> bytes:
        """Return up to `most_bytes` from the beginning of the file."""
        if self.is_new:
            raise FileNotFoundError(errno.ENOENT, "no such file")
        with _opened(self._folder, self._name, self._name) as stream:
            return stream.read(most_bytes)

    def put(self, data: bytes) -> None:
        """Replace the file's content atomically, preserving its permissions."""
        temporary_name = f".{secrets.token_hex(8)}.tmp"
        # The copy of a private file must be private from its first byte.
        file = os.open(temporary_name, _NEW, 0o666 if self._status is None else 0o600, dir_fd=self._folder)
        try:
            with os.fdopen(file, "wb") as stream:
                stream.write(data)
                stream.flush()
                if self._status is not None:
                    _keep_rights(file, self._status)
                os.fsync(file)
            os.rename(temporary_name, self._name, src_dir_fd=self._folder, dst_dir_fd=self._folder)
        except BaseException:
            with suppress(FileNotFoundError):
                os.unlink(temporary_name, dir_fd=self._folder)
            raise


@contextmanager
def changing(workspace: Workspace, name: str, *, make_folders: bool = False) -> Iterator[Target]:
    """Open a file so that it can be replaced or created.

    Args:
        workspace, name: The workspace, and the file's name in it.
        make_folders: Create missing parent folders.

    Raises:
        ToolArgumentError: The file is not a regular file, is outside the workspace, or is not writable.
        ToolServiceError: Another process holds the lock on the folder.
    """
    root, parts = _place(workspace, name)
    if make_folders:
        workspace.root.mkdir(parents=True, exist_ok=True)
    with _explain(name, root, parts), _folder(root, parts[:-1], make=make_folders) as folder, _alone(folder, name):
        try:
            status = _status(folder, parts)
        except FileNotFoundError:
            status = None
        if status is not None:
            _check_regular(status, name)
            if not status.st_mode & 0o222:
                raise ToolArgumentError(f"{shown(name)} is read-only")
        yield Target(folder, parts[-1], status)


def check_changeable(workspace: Workspace, name: str, *, make_folders: bool = False) -> tuple[Path, bool]:
    """Check that another program may write a file. Return the file's path, and True if the file does not exist yet.

    Raises:
        ToolArgumentError: The file is not a regular file, is outside the workspace, or is not writable.
        ToolServiceError: Another process holds the lock on the folder.
    """
    with changing(workspace, name, make_folders=make_folders) as target:
        return workspace.resolve(name), target.is_new


def entries(
    workspace: Workspace, name: str, *, skipped: Collection[str] = (), deepest: int = _DEEPEST
) -> Iterator[Entry]:
    """Yield the contents of a folder recursively, level by level, sorted within each folder. Links are not followed.

    Args:
        workspace, name: The workspace, and the folder's name in it.
        skipped: Names of folders that are not entered.
        deepest: The maximum depth.

    Raises:
        ToolArgumentError: The path is not a folder, is outside the workspace, or is not readable.
    """
    root, start = _place(workspace, name)
    waiting: deque[Sequence[str]] = deque([()])
    while waiting:
        below = waiting.popleft()
        try:
            with _explain(name, root, start), _folder(root, (*start, *below)) as folder:
                items = [_entry(item) for item in islice(os.scandir(folder), _MOST_IN_FOLDER)]
        except ToolArgumentError:
            if below:
                continue  # it is unreadable or gone; the others are still listed
            raise
        for entry in sorted(items, key=lambda entry: entry.path):
            parts = (*below, entry.path)
            yield Entry("/".join(parts), entry.is_folder, entry.is_link, entry.size_bytes)
            if entry.is_folder and entry.path not in skipped and len(parts) < min(deepest, _DEEPEST):
                waiting.append(parts)


def shown(name: str) -> str:
    """Escape a file name that contains line breaks or other unprintable characters."""
    return name if name.isprintable() else name.encode("unicode_escape").decode()


def _place(workspace: Workspace, name: str) -> tuple[str, Sequence[str]]:
    """Return the workspace root, and the components of the resolved path below it."""
    if os.open not in os.supports_dir_fd:
        raise ToolServiceError("the file tools require Linux or macOS")
    if len(name) > _LONGEST:
        raise ToolArgumentError(f"a path can have at most {_LONGEST:,} characters, got {len(name):,}")
    path = workspace.resolve(name)
    root = workspace.root.resolve()
    return str(root), path.relative_to(root).parts


@contextmanager
def _folder(root: str, parts: Sequence[str], *, make: bool = False) -> Iterator[int]:
    """Open a folder below the root, and yield its descriptor."""
    folder = os.open(root, _FOLDER & ~getattr(os, "O_NOFOLLOW", 0))
    try:
        for part in parts:
            if make:
                with suppress(FileExistsError):
                    os.mkdir(part, dir_fd=folder)
            inner = os.open(part, _FOLDER, dir_fd=folder)
            os.close(folder)
            folder = inner
        yield folder
    finally:
        os.close(folder)


def _status(folder: int, parts: Sequence[str]) -> os.stat_result:
    if not parts:  # the workspace itself
        return os.stat(folder)
    return os.stat(parts[-1], dir_fd=folder, follow_symlinks=False)


def _check_regular(status: os.stat_result, name: str) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise ToolArgumentError(f"{shown(name)} is a folder: use list_files to see its contents")
    if not stat.S_ISREG(status.st_mode):
        raise ToolArgumentError(f"{shown(name)} is a link, pipe, socket or device, not a regular file")


def _opened(folder: int, part: str, name: str) -> BufferedReader:
    # So that `peek` returns enough to detect the encoding.
    stream: BufferedReader = BufferedReader(os.fdopen(os.open(part, _FILE, dir_fd=folder), "rb", 0), HEAD_BYTES)
    try:
        _check_regular(os.fstat(stream.fileno()), name)
    except BaseException:
        stream.close()
        raise
    return stream


def _keep_rights(file: int, status: os.stat_result) -> None:
    # Drop setuid and setgid, because the content is new.
    os.fchmod(file, stat.S_IMODE(status.st_mode) & 0o777)
    if os.geteuid() == 0:
        os.fchown(file, status.st_uid, status.st_gid)


def _entry(item: os.DirEntry[str]) -> Entry:
    try:
        status = item.stat(follow_symlinks=False)
    except OSError:  # gone meanwhile
        return Entry(item.name)
    mode = status.st_mode
    return Entry(item.name, stat.S_ISDIR(mode), stat.S_ISLNK(mode), status.st_size if stat.S_ISREG(mode) else 0)


@contextmanager
def _alone(folder: int, name: str) -> Iterator[None]:
    """Hold a folder's lock, which excludes other processes and other threads."""
    import fcntl

    until = time.monotonic() + _PATIENCE_S
    while True:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            if time.monotonic() > until:
                raise ToolServiceError(
                    f"the folder containing {shown(name)} is in use by another program: try again"
                ) from None
            time.sleep(0.01)
    yield  # closing the descriptor releases the lock


@contextmanager
def _explain(name: str, root: str, parts: Sequence[str]) -> Iterator[None]:
    """Translate file errors into errors that a model can act on."""
    try:
        yield
    except FileNotFoundError as error:
        raise ToolArgumentError(f"{shown(name)} does not exist{_close_names(root, parts)}") from error
    except OSError as error:
        reason = _REASONS.get(error.errno or 0) or f"cannot be used: {error.strerror or type(error).__name__}"
        raise ToolArgumentError(f"{shown(name)} {reason}") from error


def _close_names(root: str, parts: Sequence[str]) -> str:
    """Suggest similar names in the same folder when a file is missing."""
    try:
        with _folder(root, parts[:-1]) as folder:
            names = list(islice((entry.name for entry in os.scandir(folder)), 1000))
    except OSError:
        return ""
    close = difflib.get_close_matches(parts[-1], names, n=3) if parts else []
    return f"; close names: {', '.join(shown('/'.join((*parts[:-1], name))) for name in close)}" if close else ""
