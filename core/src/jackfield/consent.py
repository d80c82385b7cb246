"""Consent to the effects of a file: each file that configures something says what it can cause, and one gate decides.

A reader turns a file into a `Request`: the file, what it can cause, and the content that consent is bound to. The gate
lets a request pass if it has no effect, if it lies in the user's own configuration folder, or if the user has agreed to
exactly this content in this place. Otherwise it raises `ConsentNeededError`, which lists every effect and says how to
allow them.

This module imports the standard library only, as `settings` does.
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
    """A program is started on this machine."""

    command: str

    def __str__(self) -> str:
        return f"starts a program: {self.command}"


@dataclass(frozen=True, slots=True)
class SendsVariable:
    """The value of an environment variable, or of a secret of the user's file, leaves this process."""

    variable: str
    receiver: str

    def __str__(self) -> str:
        return f"sends the variable {self.variable} to {self.receiver}"


@dataclass(frozen=True, slots=True)
class Contacts:
    """A server that is not a model provider's own receives what an agent sends."""

    address: str

    def __str__(self) -> str:
        return f"sends data to the server {self.address}"


@dataclass(frozen=True, slots=True)
class ReachesOutside:
    """A file or folder outside of the folder of the file that names it is read or written."""

    setting: str
    path: str

    def __str__(self) -> str:
        return f"uses a file outside of its folder: {self.path} ({self.setting})"


@dataclass(frozen=True, slots=True)
class Loosens:
    """A protection is weaker than it is by default."""

    setting: str
    value: str

    def __str__(self) -> str:
        return f"loosens a protection: {self.setting} = {self.value}"


@dataclass(frozen=True, slots=True)
class RunsCode:
    """Python code runs in this process."""

    source: str

    def __str__(self) -> str:
        return f"runs code with all your rights: {self.source}"


@dataclass(frozen=True, slots=True)
class UsesPackage:
    """A component of a package is loaded that is not ours, and that the user has neither enabled nor allowed."""

    component: str
    distribution: str

    def __str__(self) -> str:
        return f"loads {self.component} of the package {self.distribution}, which is not one of ours"


@dataclass(frozen=True, slots=True)
class MakesCall:
    """A call of a tool is made that no model of this run has asked for."""

    name: str
    arguments: str

    def __str__(self) -> str:
        return f"calls the tool {self.name} with {self.arguments}"


Effect: TypeAlias = (
    StartsProcess | SendsVariable | Contacts | ReachesOutside | Loosens | RunsCode | UsesPackage | MakesCall
)
"""An effect of a file that may harm its reader; its text completes a sentence about the file."""


@dataclass(frozen=True, slots=True)
class Request:
    """The effects of one file.

    Attributes:
        path: The file.
        effects: What needs consent, in the order of the file, each once.
        content: The hash of the file and of every file that it refers to.
        by_command: `jackfield trust` can read the file; otherwise consent is given at a terminal, or by `--trust`.
    """

    path: Path
    effects: tuple[Effect, ...] = ()
    content: str = field(default="", repr=False)
    by_command: bool = True

    @property
    def lines(self) -> list[str]:
        """One line for each effect, safe for a terminal."""
        return [_shown(str(effect)) for effect in self.effects]


def content_hash(parts: Mapping[str, bytes]) -> str:
    """Hash files by their names and contents, so that a byte cannot move from one to another."""
    digests = {name: hashlib.sha256(raw).hexdigest() for name, raw in parts.items()}
    return hashlib.sha256(json.dumps(digests, sort_keys=True).encode()).hexdigest()


def is_agreed(request: Request, *, folder: Path | None = None) -> bool:
    """True if nothing in the file needs consent, or the user has given it.

    Args:
        request: What the file can cause.
        folder: The folder that records consent, instead of the user's.
    """
    if not request.effects:
        return True
    trusted = folder or trust_path()
    path = place_of(request.path)
    return _is_own(path, trusted.parent) or answer_for(trusted, path, request.content) == "yes"


def require_consent(request: Request, *, trust: bool = False, folder: Path | None = None) -> None:
    """Let a file pass, or say what it would cause.

    Args:
        request: What the file can cause.
        trust: The caller vouches for the file, as `--trust` does; nothing is recorded.
        folder: The folder that records consent, instead of the user's.

    Raises:
        ConsentNeededError: The file has effects that the user has not agreed to.
    """
    if not (trust or is_agreed(request, folder=folder)):
        raise ConsentNeededError(request.path, request.lines, request, by_command=request.by_command)


def record_consent(request: Request, *, folder: Path | None = None) -> Path:
    """Record that the user agrees to a file in this place with this content; return the file that records it.

    Raises:
        ConfigError: It cannot be written.
    """
    trusted, path = folder or trust_path(), place_of(request.path)
    target = trust_file(trusted, path)
    try:
        trusted.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor, staging = tempfile.mkstemp(dir=trusted, prefix=".")
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump({"path": os.fspath(path), "content": request.content}, file, indent=1)
        Path(staging).replace(target)
    except OSError as error:
        raise ConfigError(f"{target} cannot be written: {error.strerror or error}") from error
    return target


def place_of(path: Path) -> Path:
    """Give the place that consent is bound to: the file's real folder, and its own name, which may be a link's."""
    folder = os.path.realpath(path.parent)
    return Path(folder, path.name)


def unique(effects: Iterable[Effect]) -> tuple[Effect, ...]:
    """Keep each effect once, in order."""
    return tuple(dict.fromkeys(effects))


def _is_own(path: Path, folder: Path) -> bool:
    """True if a file lies in the user's configuration folder, no link leads to it, and only the user can write it."""
    real = Path(os.path.realpath(path))
    if real != path or Path(os.path.realpath(folder)) not in real.parents:
        return False
    try:
        facts = real.stat()
    except OSError:
        return False
    return not hasattr(os, "geteuid") or (facts.st_uid == os.geteuid() and not facts.st_mode & 0o022)


def _shown(text: str) -> str:
    # Nothing is shortened: what stands behind a thousand spaces is run as well.
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in text)
