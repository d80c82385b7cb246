"""The distributions we publish: what to install for a name, and what `plugins search` looks through.

The list is a part of the core, so that a missing plugin is named without asking anybody over the network.
"""

from __future__ import annotations

import json
import pkgutil
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from functools import cache
from types import MappingProxyType
from typing import NamedTuple

from jackfield.descriptors import RequiredBy, required_by


class Known(NamedTuple):
    """A component that a published distribution offers.

    Attributes:
        distribution: What to install.
        summary: One line for people.
        requires, required_by: The components it asks the core for by name, as in `ComponentSpec`.
        extensions: Of a parser, those of the files it reads.
        keys: Of a backend or a set of tools, the settings that mean it, as in `LLMSpec`.
        names: Of a backend, the names of models that mean it.
    """

    distribution: str
    summary: str
    requires: tuple[str, ...] = ()
    extensions: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    required_by: RequiredBy = MappingProxyType({})

    @classmethod
    def of(cls, distribution: str, values: Mapping[str, object]) -> Known:
        """What a distribution says of a component. What does not fit is left out, since anybody may have written it."""
        table = values.get("required_by")
        lists = {name: values.get(name) for name in ("requires", "extensions", "keys", "names")}
        return cls(
            distribution,
            str(values.get("summary", "")),
            required_by=table if isinstance(table, Mapping) else {},
            **{name: tuple(given) for name, given in lists.items() if isinstance(given, list | tuple)},
        )

    def asks_for(self, settings: Mapping[str, object]) -> list[str]:
        """The components that it asks for with these settings, as `kind.name`."""
        return [*self.requires, *required_by(self.required_by, {**settings, "": True})]


@cache
def known_components() -> Mapping[str, Known]:
    """Every component we publish, by `kind.name`, sorted."""
    # Written by `make known`, from the plugins in the repository; a test holds them together.
    raw = pkgutil.get_data(__name__.rpartition(".")[0], "known.json")
    assert raw is not None  # noqa: S101 - it is a part of this package
    return {component: Known.of(entry["distribution"], entry) for component, entry in json.loads(raw).items()}


def known_distribution(kind: str, name: str) -> str | None:
    """The distribution that offers a component, if it is one of ours."""
    found = known_components().get(f"{kind}.{name}")
    return found.distribution if found else None


def install_hint(kind: str, name: str) -> str:
    """`. Install it: pip install …` for a component that a known distribution offers, else ''."""
    distribution = known_distribution(kind, name)
    return f". Install it: pip install {distribution}" if distribution else ""


def parser_of_extension(extension: str) -> str | None:
    """The name of a known parser for files with an extension, which is lower case and without its dot."""
    return next((name for name, known in _known("parser") if extension in known.extensions), None)


def known_with_key(kind: str, keys: Iterable[str]) -> str | None:
    """The known component of a kind that alone has one of these settings."""
    wanted = frozenset(keys)
    return next((name for name, known in _known(kind) if not wanted.isdisjoint(known.keys)), None)


def backend_of_model(model: str) -> str | None:
    """The known backend whose models are named like this; of several, the one that says it most exactly."""
    name = model.lower()
    fitting = {
        pattern: backend for backend, known in _known("llm") for pattern in known.names if fnmatchcase(name, pattern)
    }
    return fitting[max(fitting, key=len)] if fitting else None


def _known(kind: str) -> Iterator[tuple[str, Known]]:
    for component, known in known_components().items():
        if component.startswith(f"{kind}."):
            yield component.partition(".")[2], known
