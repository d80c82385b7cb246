"""Find the project's settings, and determine which of them apply.

A project's authors write `[tool.jackfield]` in `pyproject.toml`. Without consent, this table may only restrict plugins.
Settings that enable, configure, prefer or order plugins apply only after the user has given consent
(`jackfield trust`). Consent is valid for the file's path, the table, and the content of the files that the table lists
as plugins. Any change to these revokes the consent.

This module imports only the standard library, like `settings`.
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
_WHY = {"changed": "the file changed after you trusted it", "no": "you have not trusted the file"}
_logged: set[tuple[Path, str]] = set()


@dataclass(frozen=True, slots=True)
class Project:
    """The Jackfield settings in a project's file.

    Attributes:
        path: The file.
        table: The file's `[tool.jackfield]` table.
        content: A hash of the table and its local files. Consent is valid for this hash only.
        answer: The user's answer. `changed` means that the user approved an earlier version.
        foreign: True if the file belongs to another user who is not the administrator.
        local: The local files that the table lists.
    """

    path: Path
    table: Mapping[str, object] = field(repr=False)
    content: str
    answer: Answer = "no"
    foreign: bool = False
    local: tuple[LocalFile, ...] = ()

    @property
    def narrowing(self) -> Mapping[str, Any]:
        """The settings that apply without consent. If the file belongs to another user, no settings apply."""
        return {} if self.foreign and self.answer != "yes" else self.denying

    @property
    def denying(self) -> Mapping[str, object]:
        """The settings that restrict plugins."""
        return _part(self.table, NARROWING)

    @property
    def asking(self) -> Mapping[str, Any]:
        """The settings that need consent."""
        return _part(self.table, ASKING)

    @property
    def agreed(self) -> Mapping[str, object]:
        """The settings that needed consent and were approved."""
        return self.asking if self.answer == "yes" else {}

    @property
    def agreed_local(self) -> tuple[LocalFile, ...]:
        """The local files that may run."""
        return self.local if self.answer == "yes" else ()

    @property
    def ignored(self) -> tuple[str, ...]:
        """The settings that do not apply."""
        if self.answer == "yes":
            return ()
        return tuple(self.table if self.foreign else self.asking)

    @property
    def remark(self) -> str:
        """A line for terminals with the settings that do not apply, the reason and the next step. '' if all apply."""
        if not self.ignored:
            return ""
        reason = "the file belongs to another user" if self.foreign else _WHY[self.answer]
        line = (
            f"ignored {', '.join(self.ignored)} in {self.path}, because {reason}. "
            "To review the settings, run: jackfield trust"
        )
        return "".join(char if char.isprintable() else "?" for char in line)

    def log_ignored(self) -> None:
        """Log the settings that do not apply, once per process."""
        if self.ignored and (self.path, self.content) not in _logged:
            _logged.add((self.path, self.content))
            import logging

            logging.getLogger("jackfield").warning("jackfield: %s", self.remark)


def find_file(start: Path) -> Path | None:
    """Return the nearest project file, searching from a directory up to the root of its repository.

    Outside a repository, only the directory itself is searched, because a file in a shared parent directory or another
    user's home directory does not belong to the project.
    """
    # Use os.path, because it treats unreadable directories like directories without the file.
    folder = os.path.realpath(start)
    candidates = [folder]
    while not os.path.lexists(f"{candidates[-1]}/.git"):
        parent = os.path.dirname(candidates[-1])  # noqa: PTH120
        if parent == candidates[-1]:  # no repository
            candidates = [folder]
            break
        candidates.append(parent)
    for candidate in candidates:
        if os.path.isfile(f"{candidate}/{FILE}"):  # noqa: PTH113
            return Path(candidate, FILE)
    return None


def read_file(path: Path) -> tuple[bytes, bool]:
    """Return the content of a project's file, and whether the file belongs to another user.

    Raises:
        OSError: The file cannot be read.
        ConfigError: The file is larger than 4 MiB.
    """
    with path.open("rb") as file:
        owners = {os.fstat(file.fileno()).st_uid, path.lstat().st_uid}
        raw = file.read(_MAX_FILE_BYTES + 1)
    if len(raw) > _MAX_FILE_BYTES:
        raise ConfigError(f"{path} exceeds the 4 MiB limit for project files")
    return raw, hasattr(os, "geteuid") and not owners <= {0, os.geteuid()}


def content_of(table: Mapping[str, object], local: Sequence[LocalFile] = ()) -> str:
    """Return a hash of a table and its local files. Comments and key order do not affect the hash."""
    import hashlib
    import json

    hashes = {"local": [[file.path, file.content, file.fault] for file in local]} if local else {}
    # JSON has no dates, and their repr differs from any text that looks like a date.
    return hashlib.sha256(json.dumps({**table, **hashes}, sort_keys=True, default=repr).encode()).hexdigest()


def trust_file(folder: Path, path: Path) -> Path:
    """Return the path of a consent record. Each project has its own record, so concurrent answers do not collide."""
    import hashlib

    return folder / f"{hashlib.sha256(os.fsencode(path)).hexdigest()}.json"


def answer_for(folder: Path, path: Path, content: str) -> Answer:
    """Return the user's recorded answer about a project's file. `folder` is the directory with the records."""
    try:
        raw = trust_file(folder, path).read_bytes()
    except OSError:
        return "no"
    import json

    try:
        record = json.loads(raw)
    except (ValueError, RecursionError):
        return "no"
    if not isinstance(record, dict) or record.get("path") != os.fspath(path):
        return "no"
    return "yes" if record.get("content") == content else "changed"


def _part(table: Mapping[str, object], keys: tuple[str, ...]) -> dict[str, object]:
    return {key: table[key] for key in keys if key in table and (table[key] or key == "allow")}
