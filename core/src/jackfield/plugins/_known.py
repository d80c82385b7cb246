"""The components that Jackfield publishes, and their packages.

The core includes this list so that error messages can name missing packages without network access.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from jackfield.suggestions import close_names

if TYPE_CHECKING:  # descriptors define sixteen classes, which a list of plugins does not need
    from jackfield.descriptors import RequiredBy


class Known(NamedTuple):
    """A component in a published distribution.

    Attributes:
        distribution: The distribution to install.
        summary: A one-line summary for people.
        requires, required_by: See `ComponentSpec`.
        extensions: The file extensions that a parser reads.
        keys: The settings that only this backend or toolset has; see `LLMSpec`.
        names: Patterns for a backend's model names.
        actions: A command's subcommands.
    """

    distribution: str
    summary: str
    requires: tuple[str, ...] = ()
    extensions: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    required_by: RequiredBy = MappingProxyType({})
    actions: tuple[str, ...] = ()

    @classmethod
    def of(cls, distribution: str, values: Mapping[str, object]) -> Known:
        """Create an entry from a distribution's own description. Invalid values are dropped."""
        table = values.get("required_by")
        lists = {name: values.get(name) for name in ("requires", "extensions", "keys", "names", "actions")}
        return cls(
            distribution,
            str(values.get("summary", "")),
            required_by=table if isinstance(table, Mapping) else {},
            **{name: tuple(value) for name, value in lists.items() if isinstance(value, list | tuple)},
        )

    def asks_for(self, settings: Mapping[str, object]) -> list[str]:
        """Return the components that a component with these settings requires, as `kind.name`."""
        from jackfield.descriptors import required_by

        return [*self.requires, *required_by(self.required_by, {**settings, "": True})]


@cache
def known_components() -> Mapping[str, Known]:
    """Map the `kind.name` of every component that Jackfield publishes to its entry, in sorted order."""
    return {component: Known.of(entry["distribution"], entry) for component, entry in _entries().items()}


@cache
def _entries() -> Mapping[str, dict[str, Any]]:
    # `make known` writes the file from the plugins in the repository; a test compares them.
    import pkgutil

    raw = pkgutil.get_data(__name__.rpartition(".")[0], "known.json")
    assert raw is not None  # noqa: S101 - the file is part of this package
    entries: dict[str, dict[str, Any]] = json.loads(raw)
    return entries


def known_distribution(kind: str, name: str) -> str | None:
    """Return the Jackfield distribution that provides a component, or None."""
    entry = _entries().get(f"{kind}.{name}")
    return entry["distribution"] if entry else None


def install_hint(kind: str, name: str) -> str:
    """Return `. To install it, run: pip install …` for a component that Jackfield publishes, or ''."""
    distribution = known_distribution(kind, name)
    return f". To install it, run: pip install {distribution}" if distribution else ""


def spelling_hint(kind: str, name: str) -> str:
    """Return `. Did you mean '…'?` and an `install_hint` for a misspelt Jackfield component, or ''."""
    for close in close_names(name, [known for known, _ in _known(kind)])[:1]:
        return f". Did you mean {close!r}?{install_hint(kind, close).removeprefix('.')}"
    return ""


def parser_of_extension(extension: str) -> str | None:
    """Return the name of Jackfield's parser for a file extension (lower case, without the dot), or None."""
    for name, known in _known("parser"):
        if extension in known.extensions:
            return name
    return None


def known_with_key(kind: str, keys: Iterable[str]) -> str | None:
    """Return the name of Jackfield's component of this kind that has one of these settings, or None."""
    settings = frozenset(keys)
    for name, known in _known(kind):
        if not settings.isdisjoint(known.keys):
            return name
    return None


def backend_of_model(model: str) -> str | None:
    """Return Jackfield's backend for a model name, or None if no pattern matches. The longest matching pattern wins."""
    name = model.lower()
    matches = {
        pattern: backend for backend, known in _known("llm") for pattern in known.names if fnmatchcase(name, pattern)
    }
    return matches[max(matches, key=len)] if matches else None


def known_commands() -> dict[str, list[str]]:
    """Map each command and subcommand that Jackfield publishes, as typed by users, to its full commands."""
    typed: dict[str, list[str]] = {name: [name] for name, _ in _known("command")}
    for name, known in _known("command"):
        for action in known.actions:
            typed.setdefault(action, []).append(f"{name} {action}")
    return typed


def _known(kind: str) -> Iterator[tuple[str, Known]]:
    for component, known in known_components().items():
        if component.startswith(f"{kind}."):
            yield component.partition(".")[2], known
