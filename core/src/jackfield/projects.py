"""The project's file: where it is found, and what of it counts.

`[tool.jackfield]` of a `pyproject.toml` comes from whoever wrote the project, so it may only narrow what plugins may
do. What it would switch on, set, prefer or order counts after a yes (`jackfield trust`) that is bound to the file's
place, to what the table says and to what is in the files that it names as plugins; any change of these takes the yes
back.

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
_told: set[tuple[Path, str]] = set()


@dataclass(frozen=True, slots=True)
class Project:
    """What a project's file says of Jackfield.

    Attributes:
        path: The file.
        table: Its `[tool.jackfield]`.
        content: The hash of the table and of its local files that a yes is bound to.
        answer: Whether somebody said yes to it; `changed` is a yes to something else that stood there.
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
        """What counts without being asked about; nothing of what another user wrote."""
        return {} if self.foreign and self.answer != "yes" else self.denying

    @property
    def denying(self) -> Mapping[str, object]:
        """What narrows, whoever wrote it."""
        return _part(self.table, NARROWING)

    @property
    def asking(self) -> Mapping[str, Any]:
        """What counts after a yes."""
        return _part(self.table, ASKING)

    @property
    def agreed(self) -> Mapping[str, object]:
        """What of `asking` counts."""
        return self.asking if self.answer == "yes" else {}

    @property
    def ignored(self) -> tuple[str, ...]:
        """The keys that do not count."""
        if self.answer == "yes":
            return ()
        return tuple(self.table if self.foreign else self.asking)

    @property
    def remark(self) -> str:
        """What does not count, why, and what to do about it, in one line that a terminal can show; '' if all counts."""
        if not self.ignored:
            return ""
        keys = ", ".join(self.ignored)
        are, they, them = ("is", "it has", "it") if len(self.ignored) == 1 else ("are", "they have", "them")
        if self.foreign:
            why = f"{keys} of {self.path} {are} ignored: the file belongs to another user"
        elif self.answer == "changed":
            why = f"{keys} of {self.path} {are} ignored: {they} changed since you agreed to {them}"
        else:
            why = f"{keys} of {self.path} {are} ignored: nobody has agreed to {them}"
        return "".join(
            char if char.isprintable() else "?" for char in f"{why}. See {them}, and decide: jackfield trust"
        )

    def tell(self) -> None:
        """Log, once in a process, what does not count."""
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
        raise ConfigError(f"{path} is larger than 4 MiB, so it is no project's file")
    return raw, hasattr(os, "geteuid") and not owners <= {0, os.geteuid()}


def content_of(table: Mapping[str, object], local: Sequence[LocalFile] = ()) -> str:
    """The hash of a table and its local files, whatever the order of its keys and the comments beside them."""
    import hashlib
    import json

    hashes = {"local": [[one.path, one.content, one.fault] for one in local]} if local else {}
    # TOML's dates have no form in JSON; repr keeps them apart from a text that looks like one.
    return hashlib.sha256(json.dumps({**table, **hashes}, sort_keys=True, default=repr).encode()).hexdigest()


def trust_file(folder: Path, path: Path) -> Path:
    """Where a yes for a project's file is kept: a file for each, so that two who answer at once do not meet."""
    import hashlib

    return folder / f"{hashlib.sha256(os.fsencode(path)).hexdigest()}.json"


def answer_for(folder: Path, path: Path, content: str) -> Answer:
    """What somebody said to a project's file; `folder` is where that is kept."""
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
