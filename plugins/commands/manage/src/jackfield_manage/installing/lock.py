"""What a lock says: which plugins are installed, at which versions and with which content, and what may load.

No path of the machine, no address of a server and no secret gets into it. Freezing reads metadata only: no plugin is
loaded.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import filterfalse

from jackfield import __version__
from jackfield.errors import PluginError
from jackfield.plugins import Catalog, Row, scan
from jackfield.settings import Settings, normalise
from jackfield_manage.distributions import CORE, Distribution, installed, requirements_of
from jackfield_manage.names import by_distribution
from jackfield_manage.record import changed_files, content_hash

COMPONENT = re.compile(r"[\w-]+\.[\w.-]+", re.ASCII)
"""`kind.name`."""


@dataclass(frozen=True, slots=True)
class LockedPlugin:
    """One distribution with plugins.

    Attributes:
        content: As `content_hash` gives it; '' for one that is editable or has no RECORD.
        ids: What it offers, as `kind.name`, sorted.
    """

    name: str
    version: str
    content: str = ""
    ids: tuple[str, ...] = ()
    editable: bool = False


@dataclass(frozen=True, slots=True)
class Policy:
    """What may load and what acts, as in `Settings`."""

    allow: tuple[str, ...] | None = None
    block: tuple[str, ...] = ()
    enabled: tuple[str, ...] = ()
    order: tuple[str, ...] = ()
    prefer: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Lock:
    """All that a lock says.

    Attributes:
        core: The version of the core.
        requires_python: The Pythons that the core and the plugins run on, '' for any.
        platform: `sys.platform` of where it was made: elsewhere other requirements may be the right ones.
        plugins: Sorted by name.
        requirements: What they and the core require, directly or not: name → version.
    """

    core: str
    requires_python: str
    platform: str
    plugins: tuple[LockedPlugin, ...] = ()
    requirements: Mapping[str, str] = field(default_factory=dict)
    policy: Policy = field(default_factory=Policy)


@dataclass(frozen=True, slots=True)
class Frozen:
    """A lock, and what a reader of it should know that it cannot say."""

    lock: Lock
    notes: tuple[str, ...]


def freeze(settings: Settings, paths: Sequence[str] | None = None) -> Frozen:
    """What is installed on `paths`, or `sys.path`, with the rules of `settings`. Nothing is loaded."""
    catalog, found = scan(paths), installed(paths)
    notes: list[str] = [f"{problem.distribution} {problem.text}" for problem in catalog.problems]
    plugins = tuple(_locked_plugins(catalog, found, notes))
    roots = [name for name in (CORE, *(plugin.name for plugin in plugins)) if name in found]
    lock = Lock(
        core=found.get(CORE, Distribution(CORE, __version__, "")).version,
        requires_python=_common_python(found[name] for name in roots),
        platform=sys.platform,
        plugins=plugins,
        requirements=_closure(roots, found, notes),
        policy=policy_of(settings),
    )
    return Frozen(lock, tuple(notes))


def policy_of(settings: Settings) -> Policy:
    """The rules of settings, in the form of a lock."""
    # Settings keep `tool.search` also as a spelling of a distribution; one of the two says it.
    spelled = {normalise(name) for name in settings.block if normalise(name) != name}
    return Policy(
        allow=None if settings.allow is None else tuple(sorted(settings.allow)),
        block=tuple(sorted(settings.block - spelled)),
        enabled=settings.enabled,
        order=settings.order,
        prefer={name: normalise(chosen) for name, chosen in sorted(settings.prefer.items())},
    )


def canonical_version(text: str) -> str:
    """A version in its one spelling, '' if it is not valid."""
    from packaging.version import InvalidVersion, Version

    try:
        return str(Version(text))
    except InvalidVersion:
        return ""


def _locked_plugins(catalog: Catalog, found: Mapping[str, Distribution], notes: list[str]) -> Iterator[LockedPlugin]:
    for name, rows in by_distribution(catalog.rows).items():
        if name != CORE:
            as_in_catalog = Distribution(name, rows[0].version, rows[0].location)
            yield from _locked(found.get(name, as_in_catalog), rows, notes)


def _locked(known: Distribution, rows: Sequence[Row], notes: list[str]) -> Iterator[LockedPlugin]:
    """What a lock has of one distribution; nothing if nobody could restore it."""
    version = canonical_version(known.version)
    if not version:
        notes.append(f"{known.name} is left out: {rows[0].version!r} is not a valid version")
        return
    content = _content_of(known, rows[0].location, notes)
    yield LockedPlugin(known.name, version, content, _names_in(rows, notes), known.editable)


def _content_of(known: Distribution, location: str, notes: list[str]) -> str:
    if known.editable:
        notes.append(f"{known.name} is an editable folder: the lock cannot record its content")
        return ""
    content = _recorded_content(known.name, location, notes)
    if known.direct:
        notes.append(f"{known.name} was not installed from an index: to restore the lock, you need its files")
    return content


def _names_in(rows: Sequence[Row], notes: list[str]) -> tuple[str, ...]:
    offers = sorted({row.id for row in rows})
    strange = filterfalse(COMPONENT.fullmatch, offers)
    notes += [f"{rows[0].distribution} offers {text!r:.80}, which is not a valid name" for text in strange]
    return tuple(filter(COMPONENT.fullmatch, offers))


def _recorded_content(name: str, location: str, notes: list[str]) -> str:
    try:
        content = content_hash(location)
        changes = changed_files(location)
    except PluginError as error:
        notes.append(f"the content of {name} is not in the lock: {error}")
        return ""
    if changes:
        listed = ", ".join(f"{change.path} ({change.state})" for change in changes[:5])
        notes.append(f"{name} was edited after it was installed, and the lock has it as installed: {listed}")
    return content


def _closure(roots: Sequence[str], found: Mapping[str, Distribution], notes: list[str]) -> dict[str, str]:
    """All that the roots require, and what that requires, but not the roots: name → version."""
    names = sorted({name for name, _ in _reached(roots, found, notes)}.difference(roots))
    versions = {name: canonical_version(found[name].version) for name in names}
    return {name: version for name, version in versions.items() if version}


def _reached(roots: Sequence[str], found: Mapping[str, Distribution], notes: list[str]) -> Collection[tuple[str, str]]:
    """The roots and all that they require, with each extra for which it is required."""
    seen = dict.fromkeys((name, "") for name in roots)
    waiting = list(seen)
    for name, extra in waiting:  # it grows while it is walked
        for wanted in requirements_of(found[name], extra):
            needed = normalise(wanted.name)
            if needed not in found:
                notes.append(f"{name} requires {wanted}, which is not installed")
                continue
            parts = dict.fromkeys((needed, normalise(part)) for part in ("", *sorted(wanted.extras)))
            waiting += filterfalse(seen.__contains__, parts)
            seen |= parts
    return seen


def _common_python(distributions: Iterable[Distribution]) -> str:
    """What all of them say of Python: of several lower bounds the highest, everything else as it is."""
    from packaging.specifiers import InvalidSpecifier, SpecifierSet
    from packaging.version import Version

    all_of_them = SpecifierSet()
    for distribution in distributions:
        with suppress(InvalidSpecifier):
            all_of_them &= SpecifierSet(distribution.requires_python)
    bounds = [one for one in all_of_them if one.operator == ">="]
    highest = max(bounds, key=lambda one: Version(one.version), default="")
    return ",".join(map(str, filter(None, [highest, *sorted(map(str, set(all_of_them).difference(bounds)))])))
