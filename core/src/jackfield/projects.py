"""The project's file: where it is found, and which parts of it apply.

`[tool.jackfield]` of a `pyproject.toml` comes from whoever wrote the project, so it may only narrow what plugins may
do. What it would switch on, set, prefer or order only applies after the user has agreed (`jackfield trust`). Agreement
is bound to the file's place, to the table and to the content of the files that it names as plugins; any change of these
withdraws it.

This module imports the standard library only, as `settings` does.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from jackfield._localfiles import LocalFile
from jackfield.errors import ConfigError

FILE = "pyproject.toml"
NARROWING = ("allow", "block", "safe", "strict")
ASKING = ("enabled", "settings", "prefer", "order", "local")
_MAX_FILE_BYTES = 4 << 20
TRUST_FOLDER = "trusted"

Answer = Literal["yes", "changed", "no"]
_WHY = {"changed": "it has changed since you agreed to it", "no": "nobody has agreed to it"}
_told: set[tuple[Path, str]] = set()


@dataclass(frozen=True, slots=True)
class Project:
    """The Jackfield settings in a project's file.

    Attributes:
        path: The file.
        table: Its `[tool.jackfield]`.
        content: The hash of the table and of its local files, to which agreement is bound.
        answer: Whether the user agreed to it; `changed` means that the user agreed to an earlier version.
        foreign: It belongs to another user, who is not the administrator.
        local: The local files that it names.
    """

    path: Path
    table: Mapping[str, object] = field(repr=False)
    content: str
    answer: Answer = "no"
    foreign: bool = False
    local: tuple[LocalFile, ...] = ()

    @property
    def narrowing(self) -> Mapping[str, Any]:
        """The settings that apply without asking; none from a file of another user."""
        return {} if self.foreign and self.answer != "yes" else self.denying

    @property
    def denying(self) -> Mapping[str, object]:
        """The settings that narrow, whoever wrote them."""
        return _part(self.table, NARROWING)

    @property
    def asking(self) -> Mapping[str, Any]:
        """The settings that apply after the user has agreed."""
        return _part(self.table, ASKING)

    @property
    def agreed(self) -> Mapping[str, object]:
        """The part of `asking` that applies."""
        return self.asking if self.answer == "yes" else {}

    @property
    def agreed_local(self) -> tuple[LocalFile, ...]:
        """The local files that may be run."""
        return self.local if self.answer == "yes" else ()

    @property
    def ignored(self) -> tuple[str, ...]:
        """The settings that do not apply."""
        if self.answer == "yes":
            return ()
        return tuple(self.table if self.foreign else self.asking)

    @property
    def remark(self) -> str:
        """What does not apply, why, and what to do about it, in one line safe for a terminal; '' if all applies."""
        if not self.ignored:
            return ""
        why = "the file belongs to another user" if self.foreign else _WHY[self.answer]
        line = f"{', '.join(self.ignored)} of {self.path}: ignored, because {why}. See it, and decide: jackfield trust"
        return "".join(char if char.isprintable() else "?" for char in line)

    def tell(self) -> None:
        """Log, once in a process, what does not apply."""
        if self.ignored and (self.path, self.content) not in _told:
            _told.add((self.path, self.content))
            import logging

            logging.getLogger("jackfield").warning("jackfield: %s", self.remark)


def find_file(start: Path) -> Path | None:
    """The project's file for a folder: the nearest one, up to the root of the repository the folder is in.

    Outside of a repository it is the folder's own, or none: what lies in a shared folder above, or in the home of
    somebody else, is nobody's project.
    """
    # os.path: it takes a folder that may not be looked into for one without the file.
    folder = os.path.realpath(start)
    folders = [folder]
    while (above := os.path.dirname(folders[-1])) != folders[-1]:  # noqa: PTH120
        folders.append(above)
    root = next((one for one in folders if os.path.lexists(f"{one}/.git")), folder)
    for one in folders[: folders.index(root) + 1]:
        if os.path.isfile(f"{one}/{FILE}"):  # noqa: PTH113
            return Path(one, FILE)
    return None


def read_file(path: Path) -> tuple[bytes, bool]:
    """The content of a project's file, and whether it is another user's.

    Raises:
        OSError: It cannot be read.
        ConfigError: It is larger than any project's file.
    """
    with path.open("rb") as file:
        owners = {os.fstat(file.fileno()).st_uid, path.lstat().st_uid}
        raw = file.read(_MAX_FILE_BYTES + 1)
    if len(raw) > _MAX_FILE_BYTES:
        raise ConfigError(f"{path} is larger than 4 MiB, too large for a project's file")
    return raw, hasattr(os, "geteuid") and not owners <= {0, os.geteuid()}


def content_of(table: Mapping[str, object], local: Sequence[LocalFile] = ()) -> str:
    """The hash of a table and its local files, whatever the order of its keys and the comments beside them."""
    import hashlib
    import json

    hashes = {"local": [[one.path, one.content, one.fault] for one in local]} if local else {}
    # TOML's dates have no form in JSON; repr keeps them apart from a text that looks like one.
    return hashlib.sha256(json.dumps({**table, **hashes}, sort_keys=True, default=repr).encode()).hexdigest()


def trust_file(folder: Path, path: Path) -> Path:
    """The file that records agreement to a project's file: one for each, so that two answers at once do not collide."""
    import hashlib

    return folder / f"{hashlib.sha256(os.fsencode(path)).hexdigest()}.json"


def answer_for(folder: Path, path: Path, content: str) -> Answer:
    """The user's answer about a project's file; `folder` is where answers are kept."""
    try:
        raw = trust_file(folder, path).read_bytes()
    except OSError:
        return "no"
    import json

    try:
        kept = json.loads(raw)
    except (ValueError, RecursionError):
        return "no"
    if not isinstance(kept, dict) or kept.get("path") != os.fspath(path):
        return "no"
    return "yes" if kept.get("content") == content else "changed"


def _part(table: Mapping[str, object], keys: tuple[str, ...]) -> dict[str, object]:
    return {key: table[key] for key in keys if key in table and (table[key] or key == "allow")}
