"""Which files are meant by names of files, folders and patterns."""

from __future__ import annotations

import fnmatch
import glob
import mimetypes
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, dropwhile

from jackfield.errors import ConfigError
from jackfield.plugins import ParserSpec, Plugins
from jackfield.retrieval import shown_path

MOST_FILES = 2000
_SHOWN_NAMES = 5
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")  # two letters at least: C: is a drive
# What belongs to programs and not to people; hidden files and folders are left out, too.
_OF_PROGRAMS = frozenset({"__pycache__", "node_modules"})

WhyNot = Callable[[str], str]
"""Why nothing can read the file of a path; '' if something can."""


@dataclass(frozen=True, slots=True)
class Skipped:
    """A file that was found and left out, and the reason."""

    path: str
    reason: str

    def __str__(self) -> str:
        return f"{shown_path(self.path)}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Expanded:
    """What names stand for.

    Attributes:
        files: Each once, in the order of the names; those of a folder or a pattern are sorted.
        skipped: What was left out of folders and of what patterns match.
        missing: The names that stand for nothing: no such file or folder, or no match.
    """

    files: tuple[str, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    missing: tuple[str, ...] = ()

    def lines(self) -> list[str]:
        """A line for each reason why something was left out, with a few of the names."""
        reasons = dict.fromkeys(one.reason for one in self.skipped)
        return [_line([one.path for one in self.skipped if one.reason == reason], reason) for reason in reasons]


def expand(names: Iterable[str], *, why_not: WhyNot | None = None, most: int = MOST_FILES) -> Expanded:
    """Find the files that are meant. It blocks.

    A file that is named is taken as it is, and so is whatever has a scheme (`https:`, `index:`). Of folders and of what
    patterns match, these are left out: hidden files and folders, those of programs (`__pycache__`), what is empty or
    not a regular file, what may not be read, and what `why_not` has a reason against. A folder that is a link is not
    entered unless it is named, so that links in a circle lead nowhere. In a pattern, `**` stands for any folders.

    Args:
        names: Paths, `~` allowed, of files and folders; and patterns with `*`, `?` and `[…]`.
        why_not: Says whether a file can be read; see `why_nothing_reads`.
        most: How many files there may be.

    Raises:
        ConfigError: There are more.
    """
    files: dict[str, None] = {}
    skipped: dict[str, str] = {}
    missing: list[str] = []
    for name in names:
        is_there = False
        for path, reason in _found(name, why_not):
            is_there = True
            if reason:
                skipped.setdefault(path, reason)
            else:
                files[path] = None
            if len(files) > most:
                raise ConfigError(
                    f"{shown_path(name)!r} brings more than {most:,} files: name a smaller folder, or some of them"
                )
        if not is_there:
            missing.append(name)
    return Expanded(
        tuple(files),
        tuple(Skipped(path, reason) for path, reason in skipped.items() if path not in files),
        tuple(missing),
    )


def has_scheme(name: str) -> bool:
    """Whether a name begins as a URL does, or with another word and a colon, and there is no file of that name."""
    return bool(_SCHEME.match(name)) and not _exists(name)


def why_nothing_reads(host: Plugins, *, also: Iterable[str] = ()) -> WhyNot:
    """Says of a file whether an installed parser reads files of its name. No file is opened for it.

    Args:
        host: Whose parsers are asked.
        also: Further extensions that are read, as for `DocumentReader(parser_for=…)`.
    """
    specs = [spec for _, spec in host.specs("parser", ParserSpec)]
    extensions = {*also, *(extension for spec in specs for extension in spec.extensions)}
    media_types = {media_type for spec in specs for media_type in spec.media_types}

    def why_not(path: str) -> str:
        extension = os.path.splitext(path)[1].lower().removeprefix(".")  # noqa: PTH122 - a path object costs ten times
        if extension in extensions:
            return ""
        if not extension:
            return "its name has no extension"
        guessed = mimetypes.guess_type(path)[0] or ""
        if guessed in media_types or (guessed.startswith("text/") and "text/plain" in media_types):
            return ""
        return f"no installed package reads .{shown_path(extension)} files"

    return why_not


def _found(name: str, why_not: WhyNot | None) -> Iterator[tuple[str, str]]:
    """The files of a name, each with the reason to leave it out, or ''; nothing if there is nothing of that name."""
    if "\0" in name:  # no file has such a name, and `expanduser` refuses it
        return
    path = os.path.expanduser(name)  # noqa: PTH111 - a path object would take "./" and "//" out of names
    if has_scheme(name):
        yield name, ""
    elif _is_folder(path):
        yield from _in_folder(path, why_not)
    elif _exists(path):
        yield path, ""
    elif glob.has_magic(path):
        for file in _matches(path):
            yield file, _why_skipped(file, why_not)


def _in_folder(path: str, why_not: WhyNot | None) -> Iterator[tuple[str, str]]:
    is_empty = True
    for file, reason in _below(path):
        is_empty = False
        yield file, reason or _why_skipped(file, why_not)
    if is_empty:
        yield path, "a folder without files"


def _exists(path: str) -> bool:
    try:
        os.stat(path)  # noqa: PTH116 - as above
    except (OSError, ValueError):  # a NUL, or half of a surrogate pair
        return False
    return True


def _is_folder(path: str) -> bool:
    try:
        return stat.S_ISDIR(os.stat(path).st_mode)  # noqa: PTH116 - as above
    except (OSError, ValueError):
        return False


def _below(folder: str) -> Iterator[tuple[str, str]]:
    """The files in a folder and in those inside it, in order, and what cannot be looked into."""
    waiting = [folder]
    while waiting:
        here = waiting.pop()
        try:
            entries = _entries(here)
        except OSError as error:
            yield here, _reason(error)
            continue
        inside: list[str] = []
        for entry in entries:
            if _is_left_out(entry.name):
                continue
            if not _is_folder_entry(entry):
                yield entry.path, ""
            elif entry.is_symlink():
                yield entry.path, "a link to a folder"
            else:
                inside.append(entry.path)
        waiting += reversed(inside)


def _entries(folder: str) -> list[os.DirEntry[str]]:
    with os.scandir(folder) as entries:
        return sorted(entries, key=lambda entry: entry.name)


def _is_folder_entry(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link that leads to itself
        return False


def _is_left_out(name: str) -> bool:
    return name.startswith(".") or name in _OF_PROGRAMS


def _why_skipped(path: str, why_not: WhyNot | None) -> str:
    try:
        facts = os.stat(path)  # noqa: PTH116 - as above
    except OSError as error:
        return _reason(error)
    if not stat.S_ISREG(facts.st_mode):
        return "not a regular file"
    if not facts.st_size:
        return "empty"
    if not os.access(path, os.R_OK):
        return "permission denied"
    return why_not(path) if why_not else ""


def _reason(error: OSError) -> str:
    return (error.strerror or type(error).__name__).lower()


# --- patterns ---------------------------------------------------------------------------------------------------------


def _matches(pattern: str) -> list[str]:
    """The files that a pattern matches, sorted. `glob` would follow links in a circle, in all combinations."""
    parts = pattern.replace(os.sep, "/").split("/")
    plain = next(number for number, part in enumerate(parts) if glob.has_magic(part))
    start = "/".join(parts[:plain]) + "/" if plain else ""
    return sorted(dict.fromkeys(_matching(start, parts[plain:])))


def _matching(folder: str, parts: Sequence[str]) -> Iterator[str]:
    """The files of a folder, which has a slash at its end, that the parts of a pattern stand for."""
    first, *rest = parts
    if first == "**":
        inner = list(dropwhile("**".__eq__, rest)) or ["*"]
        return chain.from_iterable(_matching(one, inner) for one in _folders(folder))
    return _matching_here(folder, first, rest)


def _matching_here(folder: str, first: str, rest: Sequence[str]) -> Iterator[str]:
    for entry in _fitting(folder, first):
        if _is_folder_entry(entry) == bool(rest):
            yield from _matching(f"{folder}{entry.name}/", rest) if rest else [folder + entry.name]


def _fitting(folder: str, pattern: str) -> Iterator[os.DirEntry[str]]:
    """What has a name of that pattern; what is left out, only where the pattern begins with a dot."""
    for entry in _listed(folder):
        if fnmatch.fnmatch(entry.name, pattern) and (pattern.startswith(".") or not _is_left_out(entry.name)):
            yield entry


def _folders(folder: str) -> Iterator[str]:
    """A folder and those inside it, but for links and those that are left out; each with a slash at its end."""
    waiting = [folder]
    while waiting:
        here = waiting.pop()
        yield here
        waiting += (
            f"{here}{entry.name}/"
            for entry in _listed(here)
            if entry.is_dir(follow_symlinks=False) and not _is_left_out(entry.name)
        )


def _listed(folder: str) -> list[os.DirEntry[str]]:
    """What is in a folder; nothing where it may not be looked into."""
    try:
        return _entries(folder or ".")
    except OSError:
        return []


def _line(paths: Sequence[str], reason: str) -> str:
    names = ", ".join(map(shown_path, paths[:_SHOWN_NAMES]))
    more = f" and {len(paths) - _SHOWN_NAMES:,} more" if len(paths) > _SHOWN_NAMES else ""
    return f"skipped {names}{more}: {reason}"
