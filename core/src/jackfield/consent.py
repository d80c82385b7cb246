"""Consent to the effects of configuration files. A single gate checks all files.

A reader describes a file as a `Request`: the path, the effects, and the content for which consent is valid. The gate
accepts requests without effects, files in the user's own configuration directory, and files whose path and content the
user has approved. Otherwise, it raises `ConsentNeededError`, which lists the effects and says how to allow them.

This module imports only the standard library, like `settings`.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from jackfield.errors import ConfigError, ConsentNeededError
from jackfield.projects import answer_for, trust_file
from jackfield.settings import trust_path


@dataclass(frozen=True, slots=True)
class StartsProcess:
    """Starts a program on this machine."""

    command: str

    def __str__(self) -> str:
        return f"starts a program: {self.command}"


@dataclass(frozen=True, slots=True)
class SendsVariable:
    """Sends an environment variable, or a secret from the user's file, out of this process."""

    variable: str
    receiver: str

    def __str__(self) -> str:
        return f"sends the variable {self.variable} to {self.receiver}"


@dataclass(frozen=True, slots=True)
class Contacts:
    """Sends an agent's data to a server that is not a model provider's own."""

    address: str

    def __str__(self) -> str:
        return f"sends data to the server {self.address}"


@dataclass(frozen=True, slots=True)
class ReachesOutside:
    """Reads or writes a path outside the configuration file's directory."""

    setting: str
    path: str

    def __str__(self) -> str:
        return f"uses a file outside its folder: {self.path} ({self.setting})"


@dataclass(frozen=True, slots=True)
class Loosens:
    """Weakens a protection below its default."""

    setting: str
    value: str

    def __str__(self) -> str:
        return f"weakens a protection: {self.setting} = {self.value}"


@dataclass(frozen=True, slots=True)
class RunsCode:
    """Runs Python code in this process."""

    source: str

    def __str__(self) -> str:
        return f"runs code with your full permissions: {self.source}"


@dataclass(frozen=True, slots=True)
class UsesPackage:
    """Loads a component of a third-party package that the user has neither enabled nor allowed."""

    component: str
    distribution: str

    def __str__(self) -> str:
        return f"loads {self.component} from package {self.distribution}, which is a third-party package"


@dataclass(frozen=True, slots=True)
class MakesCall:
    """Makes a tool call that no model requested in this run."""

    name: str
    arguments: str

    def __str__(self) -> str:
        return f"calls the tool {self.name} with {self.arguments}"


Effect: TypeAlias = (
    StartsProcess | SendsVariable | Contacts | ReachesOutside | Loosens | RunsCode | UsesPackage | MakesCall
)
"""An effect of a file that may harm its user. `str` completes a sentence about the file."""


@dataclass(frozen=True, slots=True)
class Request:
    """The effects of one file.

    Attributes:
        path: The file.
        effects: The effects that need consent, in file order and without duplicates.
        content: A hash of the file and all files that it refers to.
        by_command: True if `jackfield trust` supports the file. Otherwise, users give consent in a terminal or with
            `--trust`.
    """

    path: Path
    effects: tuple[Effect, ...] = ()
    content: str = field(default="", repr=False)
    by_command: bool = True

    @property
    def lines(self) -> list[str]:
        """One line per effect, safe for a terminal."""
        return [_escape(str(effect)) for effect in self.effects]


def content_hash(parts: Mapping[str, bytes]) -> str:
    """Hash files by name and content. Moving bytes from one file to another changes the hash."""
    digests = {name: hashlib.sha256(raw).hexdigest() for name, raw in parts.items()}
    return hashlib.sha256(json.dumps(digests, sort_keys=True).encode()).hexdigest()


def is_agreed(request: Request, *, folder: Path | None = None) -> bool:
    """Return True if nothing in the file needs consent, or if the user has given consent.

    Args:
        request: The file's effects.
        folder: The directory that records consent. Defaults to the user's directory.
    """
    if not request.effects:
        return True
    trusted = folder or trust_path()
    path = consent_path(request.path)
    return _is_own(path, trusted.parent) or answer_for(trusted, path, request.content) == "yes"


def require_consent(request: Request, *, trust: bool = False, folder: Path | None = None) -> None:
    """Check that a file may be used.

    Args:
        request: The file's effects.
        trust: True if the caller vouches for the file, as `--trust` does. Nothing is recorded.
        folder: The directory that records consent. Defaults to the user's directory.

    Raises:
        ConsentNeededError: The user has not approved the file's effects. The error lists them.
    """
    if not (trust or is_agreed(request, folder=folder)):
        raise ConsentNeededError(request.path, request.lines, request, by_command=request.by_command)


def record_consent(request: Request, *, folder: Path | None = None) -> Path:
    """Record the user's consent to a file with this path and content, and return the path of the record.

    Raises:
        ConfigError: The record cannot be written.
    """
    trusted, path = folder or trust_path(), consent_path(request.path)
    target = trust_file(trusted, path)
    try:
        trusted.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor, staging = tempfile.mkstemp(dir=trusted, prefix=".")
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump({"path": os.fspath(path), "content": request.content}, file, indent=1)
        Path(staging).replace(target)
    except OSError as error:
        raise ConfigError(f"cannot write {target}: {error.strerror or error}") from error
    return target


def consent_path(path: Path) -> Path:
    """Return the path for which consent is valid: the resolved directory plus the file name, which may be a link."""
    folder = os.path.realpath(path.parent)
    return Path(folder, path.name)


def unique(effects: Iterable[Effect]) -> tuple[Effect, ...]:
    """Return the effects without duplicates, in order."""
    return tuple(dict.fromkeys(effects))


def _is_own(path: Path, folder: Path) -> bool:
    """Return True if a file is in the configuration directory, not via a link, and only the user can write to it."""
    real = Path(os.path.realpath(path))
    if real != path or Path(os.path.realpath(folder)) not in real.parents:
        return False
    try:
        facts = real.stat()
    except OSError:
        return False
    return not hasattr(os, "geteuid") or (facts.st_uid == os.geteuid() and not facts.st_mode & 0o022)


def _escape(text: str) -> str:
    # Do not shorten the text: anything after a thousand spaces would run as well.
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in text)
