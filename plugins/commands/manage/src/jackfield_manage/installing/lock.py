"""Record an installation in a lock: plugins with their versions and content, and the rules about what may load.

A lock contains no local paths, server addresses or secrets. Freezing reads only metadata and loads no plugin.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from jackfield import __version__
from jackfield.errors import PluginError
from jackfield.plugins import Row, scan
from jackfield.settings import Settings, block_forms, normalise
from jackfield_manage.distributions import CORE, Distribution, installed, requirements_of
from jackfield_manage.names import group_by_distribution
from jackfield_manage.record import changed_files, content_hash


@dataclass(frozen=True, slots=True)
class LockedPlugin:
    """A locked distribution with plugins.

    Attributes:
        content: The distribution's `content_hash`, or '' if it is editable or has no RECORD.
        ids: The components offered, as `kind.name`, and the component sources, as `kind.*`, sorted.
    """

    name: str
    version: str
    content: str = ""
    ids: tuple[str, ...] = ()
    editable: bool = False


@dataclass(frozen=True, slots=True)
class Policy:
    """The rules that decide which plugins may load and act; see `Settings`."""

    allow: tuple[str, ...] | None = None
    block: tuple[str, ...] = ()
    enabled: tuple[str, ...] = ()
    order: tuple[str, ...] = ()
    prefer: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Lock:
    """The contents of a lock.

    Attributes:
        core: The core's version.
        requires_python: The Python versions that the core and all plugins support, or '' for any.
        platform: `sys.platform` where the lock was made; requirements may differ elsewhere.
        plugins: The plugins, sorted by name.
        requirements: Direct and indirect requirements of the core and the plugins: name → version.
    """

    core: str
    requires_python: str
    platform: str
    plugins: tuple[LockedPlugin, ...] = ()
    requirements: Mapping[str, str] = field(default_factory=dict)
    policy: Policy = field(default_factory=Policy)


@dataclass(frozen=True, slots=True)
class Frozen:
    """A lock, and notes about anything it cannot record."""

    lock: Lock
    notes: tuple[str, ...]


def freeze(settings: Settings, paths: Sequence[str] | None = None) -> Frozen:
    """Lock everything on `paths` or `sys.path`, with the rules in `settings`, without loading anything."""
    catalog, installation = scan(paths), installed(paths)
    notes = [f"{problem.distribution} {problem.text}" for problem in catalog.problems]
    plugins: list[LockedPlugin] = []
    for name, rows in group_by_distribution(catalog.rows).items():
        if name != CORE:
            distribution = installation.get(name) or Distribution(name, rows[0].version, rows[0].location)
            plugin = _lock_plugin(distribution, rows, notes)
            if plugin is not None:
                plugins.append(plugin)
    roots = [name for name in (CORE, *(plugin.name for plugin in plugins)) if name in installation]
    lock = Lock(
        core=canonical_version(installation[CORE].version) if CORE in installation else __version__,
        requires_python=_common_python(installation[name] for name in roots),
        platform=sys.platform,
        plugins=tuple(plugins),
        requirements=_requirements(roots, installation, notes),
        policy=policy_of(settings),
    )
    return Frozen(lock, tuple(notes))


def policy_of(settings: Settings) -> Policy:
    """Convert the rules in settings to those of a lock."""
    # Settings also contain the normalised spelling of `tool.search`, as if it were a distribution. Keep only one.
    duplicates = {form for name in settings.block for form in block_forms([name]) if form != name}
    return Policy(
        allow=None if settings.allow is None else tuple(sorted(settings.allow)),
        block=tuple(sorted(settings.block - duplicates)),
        enabled=settings.enabled,
        order=settings.order,
        prefer={name: normalise(distribution) for name, distribution in settings.prefer.items()},
    )


def canonical_version(text: str) -> str:
    """Return a version's canonical form, or '' if it is invalid."""
    from packaging.version import InvalidVersion, Version

    try:
        return str(Version(text))
    except InvalidVersion:
        return ""


def _lock_plugin(distribution: Distribution, rows: Sequence[Row], notes: list[str]) -> LockedPlugin | None:
    """Lock a distribution; None if it has no version that could be restored."""
    version = canonical_version(distribution.version)
    if not version:
        notes.append(f"{distribution.name} is omitted: {rows[0].version!r} is not a valid version")
        return None
    content = ""
    if distribution.editable:
        notes.append(f"{distribution.name} is an editable installation, so the lock cannot record its content")
    else:
        content = _read_content(distribution.name, rows[0].location, notes)
        if distribution.direct:
            notes.append(
                f"{distribution.name} was not installed from an index, so restoring the lock requires its files"
            )
    ids = tuple(sorted({row.id for row in rows}))
    return LockedPlugin(distribution.name, version, content, ids, distribution.editable)


def _read_content(name: str, location: str, notes: list[str]) -> str:
    try:
        content = content_hash(location)
        changes = changed_files(location)
    except PluginError as error:
        notes.append(f"the lock does not record the content of {name}: {error}")
        return ""
    if changes:
        listed = ", ".join(f"{change.path} ({change.state})" for change in changes[:5])
        notes.append(f"{name} was edited after it was installed; the lock records the original: {listed}")
    return content


def _requirements(roots: Sequence[str], installation: Mapping[str, Distribution], notes: list[str]) -> dict[str, str]:
    """Return all direct and indirect requirements of the roots, excluding the roots: name → version."""
    pending = [(name, "") for name in roots]
    reached = set(pending)
    for name, extra in pending:  # grows during the loop
        for requirement in requirements_of(installation[name], extra):
            required = normalise(requirement.name)
            if required not in installation:
                notes.append(f"{name} requires {requirement}, which is not installed")
                continue
            for part in ("", *(normalise(part) for part in sorted(requirement.extras))):
                if (required, part) not in reached:
                    reached.add((required, part))
                    pending.append((required, part))
    names = sorted({name for name, _ in reached}.difference(roots))
    versions = {name: canonical_version(installation[name].version) for name in names}
    return {name: version for name, version in versions.items() if version}


def _common_python(distributions: Iterable[Distribution]) -> str:
    """Combine the supported Python versions: the highest lower bound and every other clause."""
    from packaging.specifiers import InvalidSpecifier, SpecifierSet
    from packaging.version import Version

    combined = SpecifierSet()
    for distribution in distributions:
        with suppress(InvalidSpecifier):
            combined &= SpecifierSet(distribution.requires_python)
    lower_bounds = [clause for clause in combined if clause.operator == ">="]
    clauses = sorted(str(clause) for clause in combined if clause.operator != ">=")
    if lower_bounds:
        clauses.insert(0, str(max(lower_bounds, key=lambda clause: Version(clause.version))))
    return ",".join(clauses)
