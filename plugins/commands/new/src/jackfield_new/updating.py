"""Update a plugin to a newer template, while retaining the author's changes.

A generated plugin contains a record of the answers and of the files as the template wrote them. An update merges three
versions of each file: the original, the current one, and that of the newer template.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from jackfield.errors import ConfigError
from jackfield.plurals import format_count
from jackfield_new.questions import Answers
from jackfield_new.remotes import run_git

RECORD = PurePosixPath(".jackfield-new.json")
Files = Mapping[PurePosixPath, bytes]
_FORMAT = 1
_NEEDS_GIT = "an update needs git to show and undo its changes"


@dataclass(frozen=True)
class Record:
    """The record of a generated plugin.

    Attributes:
        answers: The answers to the template's questions.
        files: The files as the template wrote them, by path.
    """

    answers: Answers
    files: Files

    def to_bytes(self) -> bytes:
        """Return the content of the record file."""
        table = {
            "about": "Written by jackfield new; read and rewritten by jackfield new --update.",
            "format": _FORMAT,
            "answers": self.answers,
            "files": {str(path): content.decode() for path, content in self.files.items()},
        }
        return json.dumps(table, indent=1, ensure_ascii=False).encode() + b"\n"

    @classmethod
    def read(cls, folder: Path) -> Record:
        """Read a plugin's record.

        Raises:
            ConfigError: The record does not exist, or this version cannot read it.
        """
        try:
            table = json.loads((folder / RECORD).read_text(encoding="utf-8"))
            if table["format"] != _FORMAT:
                raise ConfigError(
                    f"{folder / RECORD} was written by a newer jackfield-new: run pip install --upgrade jackfield-new"
                )
            files = {_checked(path): text.encode() for path, text in table["files"].items()}
            return cls(dict(table["answers"]), files)
        except FileNotFoundError:
            raise ConfigError(
                f"{str(folder)!r} has no {RECORD}, which `jackfield new` writes into every plugin: change to "
                "the plugin's folder, or pass --dir PATH"
            ) from None
        except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
            raise ConfigError(f"{folder / RECORD} cannot be read ({error}): restore it from git") from error


@dataclass(frozen=True)
class Change:
    """A change that an update makes to a file.

    Attributes:
        path: The file's path within the plugin.
        action: A description of the change.
        content: The new content, or None to remove the file.
        conflicts: The number of places changed by both the author and the template.
        is_kept: True if the file stays as it is although the template has changed.
    """

    path: PurePosixPath
    action: str
    content: bytes | None = None
    conflicts: int = 0
    is_kept: bool = False


def check_clean(folder: Path) -> None:
    """Refuse a directory with changes that git could not restore.

    Raises:
        ConfigError: The directory has uncommitted changes or is not in a git repository, or git is missing.
    """
    try:
        done = run_git(folder, "status", "--porcelain", "--", ".")
    except OSError as error:
        raise ConfigError(f"{_NEEDS_GIT}: install git ({error})") from error
    if done.returncode:
        raise ConfigError(f"{str(folder)!r} is not in a git repository: commit it to one, or pass --force")
    if done.stdout:
        raise ConfigError(f"{str(folder)!r} has uncommitted changes: commit them, or pass --force")


def plan_update(folder: Path, record: Record, files: Files) -> list[Change]:
    """Return the files that an update changes, and those it leaves alone although the template has changed.

    Args:
        folder: The plugin's directory.
        record: The plugin's record.
        files: The files as the newer template writes them.

    Raises:
        ConfigError: A file cannot be read or merged.
    """
    return list(_changes(folder, record.files, files))


def _changes(folder: Path, before: Files, files: Files) -> Iterator[Change]:
    for path in sorted({*before, *files}):
        base, new, present = before.get(path), files.get(path), _read(folder / path)
        if new in (base, present):
            continue
        if present == base:
            yield Change(path, "removed" if new is None else "added" if base is None else "updated", new)
        elif new is None:
            yield Change(path, "kept: you changed this file, but the template no longer has it", is_kept=True)
        elif present is None:
            yield Change(path, "skipped: you removed this file, but the template has changed it", is_kept=True)
        else:
            merged, conflicts = _merge(present, base or b"", new)
            action = (
                f"CONFLICT in {format_count(conflicts, 'place')}: look for <<<<<<<"
                if conflicts
                else "merged with your changes"
            )
            yield Change(path, action, merged, conflicts)


def apply_update(folder: Path, changes: list[Change], record: Record) -> None:
    """Write the changes and the new record.

    Raises:
        ConfigError: A file cannot be written; `git restore` undoes the changes already made.
    """
    try:
        for change in changes:
            file = folder / change.path
            if change.is_kept:
                continue
            if change.content is None:
                file.unlink()
            else:
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(change.content)
        (folder / RECORD).write_bytes(record.to_bytes())
    except OSError as error:
        raise ConfigError(f"the update failed ({error}): to undo its changes, run: git restore .") from error


def _merge(present: bytes, base: bytes, new: bytes) -> tuple[bytes, int]:
    """Merge two changed versions of a file; return the result and its number of conflicts."""
    labels = ("yours", "the older template", "the newer template")
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder, name) for name in ("present", "base", "new")]
        for path, content in zip(paths, (present, base, new), strict=True):
            path.write_bytes(content)
        options = [word for label in labels for word in ("-L", label)]
        try:
            done = run_git(Path(folder), "merge-file", "-p", *options, *paths)
        except OSError as error:
            raise ConfigError(f"{_NEEDS_GIT}: install git ({error})") from error
    if done.returncode > 127:  # an error code, not the number of conflicts
        raise ConfigError(f"git cannot merge a file: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout, done.returncode


def _read(file: Path) -> bytes | None:
    try:
        return file.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise ConfigError(f"{file} cannot be read ({error}): nothing was changed") from error


def _checked(text: str) -> PurePosixPath:
    """Validate a path from a record, which may have been edited, so that updates cannot write outside the plugin."""
    path = PurePosixPath(text)
    if path.is_absolute() or ".." in path.parts:
        raise ValueError(f"{text!r} is outside the plugin's folder")
    return path
