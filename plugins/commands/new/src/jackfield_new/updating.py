"""Bring a plugin up to a newer template, and keep the author's changes.

A generated plugin keeps a record of the answers and of the files as the template wrote them. An update merges three
versions of each file: as it was written, as it is now, and as the newer template writes it.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from jackfield.errors import ConfigError
from jackfield_new.questions import Answers
from jackfield_new.remotes import run_git

RECORD = PurePosixPath(".jackfield-new.json")
Files = Mapping[PurePosixPath, bytes]
_FORMAT = 1
_NEEDS_GIT = "an update needs git, which shows and undoes what it changes"


@dataclass(frozen=True)
class Record:
    """The record of a generated plugin.

    Attributes:
        answers: The answers to the questions of the template.
        files: The files as the template wrote them, by their paths.
    """

    answers: Answers
    files: Files

    def to_bytes(self) -> bytes:
        """Return the record as the file of a plugin."""
        table = {
            "about": "jackfield new wrote this; jackfield new --update needs it, and changes it.",
            "format": _FORMAT,
            "answers": self.answers,
            "files": {str(path): content.decode() for path, content in self.files.items()},
        }
        return json.dumps(table, indent=1, ensure_ascii=False).encode() + b"\n"

    @classmethod
    def read(cls, folder: Path) -> Record:
        """Read the record of a plugin.

        Raises:
            ConfigError: There is none, or this version cannot read it.
        """
        try:
            table = json.loads((folder / RECORD).read_text(encoding="utf-8"))
            if table["format"] != _FORMAT:
                raise ConfigError(f"{folder / RECORD} is of a newer jackfield-new: pip install --upgrade jackfield-new")
            files = {_checked(path): text.encode() for path, text in table["files"].items()}
            return cls(dict(table["answers"]), files)
        except FileNotFoundError:
            raise ConfigError(
                f"{str(folder)!r} has no {RECORD}, which `jackfield new` writes into a plugin: go to the plugin's "
                "folder, or pass --dir PATH"
            ) from None
        except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
            raise ConfigError(f"{folder / RECORD} cannot be read ({error}): restore it from git") from error


@dataclass(frozen=True)
class Change:
    """A change of one file by an update.

    Attributes:
        path: The file's path in the plugin.
        action: The kind of change, for people.
        content: The file's new content; None to remove the file.
        conflicts: The number of places that both changed.
        is_kept: True if the file stays unchanged although the template changed.
    """

    path: PurePosixPath
    action: str
    content: bytes | None = None
    conflicts: int = 0
    is_kept: bool = False


def check_clean(folder: Path) -> None:
    """Refuse a folder with changes that git could not restore.

    Raises:
        ConfigError: The folder has uncommitted changes or is in no git repository, or git is missing.
    """
    try:
        done = run_git(folder, "status", "--porcelain", "--", ".")
    except OSError as error:
        raise ConfigError(f"{_NEEDS_GIT}: install git ({error})") from error
    if done.returncode:
        raise ConfigError(f"{str(folder)!r} is in no git repository: commit it to one, or pass --force")
    if done.stdout:
        raise ConfigError(f"{str(folder)!r} has changes that are not committed: commit them, or pass --force")


def plan_update(folder: Path, record: Record, files: Files) -> list[Change]:
    """Return the files that an update changes, and those it leaves although the template changed. Nothing is written.

    Args:
        folder: The plugin.
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
            yield Change(path, "kept: you changed it, and the template no longer has it", is_kept=True)
        elif present is None:
            yield Change(path, "left out: you removed it, and the template has changed it", is_kept=True)
        else:
            merged, conflicts = _merge(present, base or b"", new)
            action = f"CONFLICT in {conflicts} places: look for <<<<<<<" if conflicts else "merged with your changes"
            yield Change(path, action, merged, conflicts)


def apply_update(folder: Path, changes: list[Change], record: Record) -> None:
    """Write the changes and the new record.

    Raises:
        ConfigError: A file cannot be written; `git checkout` restores the others.
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
        raise ConfigError(f"the update stopped ({error}): git restore . undoes what it wrote") from error


def _merge(present: bytes, base: bytes, new: bytes) -> tuple[bytes, int]:
    """Merge two changed versions of a file; return the result and the number of conflicts in it."""
    labels = ("yours", "the template as it was", "the newer template")
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder, name) for name in ("present", "base", "new")]
        for path, content in zip(paths, (present, base, new), strict=True):
            path.write_bytes(content)
        options = [word for label in labels for word in ("-L", label)]
        try:
            done = run_git(Path(folder), "merge-file", "-p", *options, *paths)
        except OSError as error:
            raise ConfigError(f"{_NEEDS_GIT}: install git ({error})") from error
    if done.returncode > 127:  # otherwise not a number of conflicts
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
    """Check a path of a record, which may have been edited, because an update must not write outside the plugin."""
    path = PurePosixPath(text)
    if path.is_absolute() or ".." in path.parts:
        raise ValueError(f"{text!r} is outside of the plugin")
    return path
