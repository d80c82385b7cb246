"""Expand file names, folders and glob patterns into lists of files."""

from __future__ import annotations

import fnmatch
import glob
import mimetypes
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from jackfield.errors import ConfigError
from jackfield.plugins import ParserSpec, Plugins
from jackfield.retrieval import shown_path

MOST_FILES = 2000
_SHOWN_NAMES = 5
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")  # two letters at least: C: is a drive
# Skipped like hidden files and folders.
_PROGRAM_FOLDERS = frozenset({"__pycache__", "node_modules"})

WhyNot = Callable[[str], str]
"""Returns the reason why no parser reads the file at a path, or '' if one does."""


@dataclass(frozen=True, slots=True)
class Skipped:
    """A skipped file and the reason for skipping it."""

    path: str
    reason: str

    def __str__(self) -> str:
        return f"{shown_path(self.path)}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Expanded:
    """The result of expanding names.

    Attributes:
        files: The files without duplicates, in the order of the names. Files from a folder or a pattern are sorted.
        skipped: Files in folders and patterns that cannot or should not be read.
        missing: Names that match no file or folder.
    """

    files: tuple[str, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    missing: tuple[str, ...] = ()

    def lines(self) -> list[str]:
        """Return one line per reason for skipping, with a few example names."""
        by_reason: dict[str, list[str]] = {}
        for file in self.skipped:
            by_reason.setdefault(file.reason, []).append(shown_path(file.path))
        lines = []
        for reason, names in by_reason.items():
            more = f" and {len(names) - _SHOWN_NAMES:,} more" if len(names) > _SHOWN_NAMES else ""
            lines.append(f"skipped {', '.join(names[:_SHOWN_NAMES])}{more}: {reason}")
        return lines


def expand(names: Iterable[str], *, why_not: WhyNot | None = None, most: int = MOST_FILES) -> Expanded:
    """Expand names to files. Blocks.

    Named files and names with a scheme (`https:`, `index:`) are returned unchanged. Files from folders and patterns are
    skipped if they are hidden or in a hidden folder, `__pycache__` or `node_modules`, empty, unreadable, not regular,
    or rejected by `why_not`. Symbolic links to folders are followed only if named explicitly, so link cycles end. In a
    pattern, `**` matches any number of folders.

    Args:
        names: Paths of files and folders, with `~` allowed, and patterns with `*`, `?` and `[…]`.
        why_not: Returns the reason why a file cannot be read; see `why_nothing_reads`.
        most: The maximum number of files.

    Raises:
        ConfigError: The names expand to more than `most` files.
    """
    files: dict[str, None] = {}
    skipped: dict[str, str] = {}
    missing: list[str] = []
    for name in names:
        is_missing = True
        for path, reason in _expand_name(name, why_not):
            is_missing = False
            if reason:
                skipped.setdefault(path, reason)
            else:
                files[path] = None
            if len(files) > most:
                raise ConfigError(
                    f"{shown_path(name)!r} contains more than {most:,} files: "
                    "specify a smaller folder, or individual files"
                )
        if is_missing:
            missing.append(name)
    return Expanded(
        tuple(files),
        tuple(Skipped(path, reason) for path, reason in skipped.items() if path not in files),
        tuple(missing),
    )


def has_scheme(name: str) -> bool:
    """Return True if a name starts with a scheme, such as `https:` or `index:`, and is not an existing file."""
    return bool(_SCHEME.match(name)) and not _exists(name)


def why_nothing_reads(host: Plugins, *, also: Iterable[str] = ()) -> WhyNot:
    """Return a function that explains why no installed parser reads a file, judged by its name alone.

    Args:
        host: The plugin host that provides the parsers.
        also: Additional readable extensions, as in `DocumentReader(parser_for=…)`.
    """
    specs = [spec for _, spec in host.specs("parser", ParserSpec)]
    extensions = {*also, *(extension for spec in specs for extension in spec.extensions)}
    media_types = {media_type for spec in specs for media_type in spec.media_types}

    def why_not(path: str) -> str:
        extension = os.path.splitext(path)[1].lower().removeprefix(".")  # noqa: PTH122 - a path object costs ten times
        if extension in extensions:
            return ""
        if not extension:
            return "no file extension"
        media_type = mimetypes.guess_type(path)[0] or ""
        if media_type in media_types or (media_type.startswith("text/") and "text/plain" in media_types):
            return ""
        return f"no installed package can read .{shown_path(extension)} files"

    return why_not


def _expand_name(name: str, why_not: WhyNot | None) -> Iterator[tuple[str, str]]:
    """Yield a name's files, each with the reason for skipping it, or ''."""
    if "\0" in name:  # no file has such a name, and `expanduser` rejects it
        return
    path = os.path.expanduser(name)  # noqa: PTH111 - a path object would take "./" and "//" out of names
    if has_scheme(name):
        yield name, ""
    elif _is_folder(path):
        is_empty = True
        for file, reason in _walk(path):
            is_empty = False
            yield file, reason or _why_skipped(file, why_not)
        if is_empty:
            yield path, "a folder without files"
    elif _exists(path):
        yield path, ""
    elif glob.has_magic(path):
        for file in _glob(path):
            yield file, _why_skipped(file, why_not)


def _exists(path: str) -> bool:
    try:
        os.stat(path)  # noqa: PTH116 - as above
    except (OSError, ValueError):  # a NUL or a lone surrogate
        return False
    return True


def _is_folder(path: str) -> bool:
    try:
        return stat.S_ISDIR(os.stat(path).st_mode)  # noqa: PTH116 - as above
    except (OSError, ValueError):
        return False


def _walk(folder: str) -> Iterator[tuple[str, str]]:
    """Yield the files below a folder in order, and the folders that cannot be opened, each with a reason or ''."""
    pending = [folder]
    while pending:
        parent = pending.pop()
        try:
            entries = _list_folder(parent)
        except OSError as error:
            yield parent, _reason(error)
            continue
        subfolders: list[str] = []
        for entry in entries:
            if _is_ignored(entry.name):
                continue
            if not _is_folder_entry(entry):
                yield entry.path, ""
            elif entry.is_symlink():
                yield entry.path, "a link to a folder"
            else:
                subfolders.append(entry.path)
        pending += reversed(subfolders)


def _list_folder(folder: str) -> list[os.DirEntry[str]]:
    with os.scandir(folder) as entries:
        return sorted(entries, key=lambda entry: entry.name)


def _is_folder_entry(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link to itself
        return False


def _is_ignored(name: str) -> bool:
    return name.startswith(".") or name in _PROGRAM_FOLDERS


def _why_skipped(path: str, why_not: WhyNot | None) -> str:
    try:
        status = os.stat(path)  # noqa: PTH116 - as above
    except OSError as error:
        return _reason(error)
    if not stat.S_ISREG(status.st_mode):
        return "not a regular file"
    if not status.st_size:
        return "empty"
    if not os.access(path, os.R_OK):
        return "permission denied"
    return why_not(path) if why_not else ""


def _reason(error: OSError) -> str:
    return (error.strerror or type(error).__name__).lower()


# --- patterns ---------------------------------------------------------------------------------------------------------


def _glob(pattern: str) -> list[str]:
    """Return the files that match a pattern, sorted. `glob.glob` would follow link cycles in all combinations."""
    parts = pattern.replace(os.sep, "/").split("/")
    fixed = 0
    while not glob.has_magic(parts[fixed]):
        fixed += 1
    root = "/".join(parts[:fixed]) + "/" if fixed else ""
    return sorted(set(_match_parts(root, parts[fixed:])))


def _match_parts(folder: str, parts: Sequence[str]) -> Iterator[str]:
    """Yield the files below a folder that match the pattern's parts. `folder` is '' or ends with a slash."""
    first, *rest = parts
    if first == "**":
        while rest and rest[0] == "**":
            rest = rest[1:]
        for subfolder in _walk_folders(folder):
            yield from _match_parts(subfolder, rest or ["*"])
        return
    for entry in _list_readable(folder):
        if not fnmatch.fnmatch(entry.name, first) or (_is_ignored(entry.name) and not first.startswith(".")):
            continue
        if _is_folder_entry(entry) != bool(rest):
            continue
        if rest:
            yield from _match_parts(f"{folder}{entry.name}/", rest)
        else:
            yield folder + entry.name


def _walk_folders(folder: str) -> Iterator[str]:
    """Yield a folder and its subfolders, except for links and ignored folders. Each is '' or ends with a slash."""
    pending = [folder]
    while pending:
        parent = pending.pop()
        yield parent
        pending += [
            f"{parent}{entry.name}/"
            for entry in _list_readable(parent)
            if entry.is_dir(follow_symlinks=False) and not _is_ignored(entry.name)
        ]


def _list_readable(folder: str) -> list[os.DirEntry[str]]:
    try:
        return _list_folder(folder or ".")
    except OSError:
        return []
