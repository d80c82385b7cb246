"""Make what is installed the same as a lock says: plan (pure), act through an installer, then look whether it is so."""

from __future__ import annotations

import importlib
import platform
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path

from jackfield import __version__
from jackfield.defaults import MANAGER
from jackfield.errors import ConfigError, PluginError
from jackfield.plugins import scan
from jackfield.settings import Settings
from jackfield_manage.choices import load_choices, write_choices
from jackfield_manage.distributions import CORE, Distribution, installed
from jackfield_manage.lock import Lock, LockedPlugin, Policy, canonical_version, policy_of
from jackfield_manage.packages import (
    Environment,
    Installer,
    Run,
    Sources,
    find_installer,
    refuse_tool_environment,
    run_visibly,
    write_constraints,
)
from jackfield_manage.record import changed_files, content_hash


@dataclass(frozen=True, slots=True)
class InstalledPlugin:
    """A distribution with plugins as it is here.

    Attributes:
        content: As it was installed; '' where that cannot be told.
        edited: The files that are not as they were installed.
    """

    version: str
    content: str = ""
    editable: bool = False
    edited: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class State:
    """What is here: the core and the plugins by name, the version of every other distribution, and the rules.

    `origins` says where a rule comes from, as in `Settings`.
    """

    core: InstalledPlugin
    plugins: Mapping[str, InstalledPlugin]
    versions: Mapping[str, str]
    policy: Policy
    origins: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Plan:
    """In what a lock and what is here differ.

    Attributes:
        install: Plugins that are missing, as name → version.
        change: Distributions in another version, as name → (here, wanted).
        anew: Plugins of the right version with other content, as name → version.
        missing: Requirements that are not here, as name → version; the installer finds out whether they are needed.
        remove: Plugins that the lock does not have, and that are to go.
        keep: Such plugins that stay.
        settings: The rules that differ, as sentences.
        by_hand: What no installer should do, because a folder somebody works in is concerned: name → sentence.
    """

    install: Mapping[str, str]
    change: Mapping[str, tuple[str, str]]
    anew: Mapping[str, str]
    missing: Mapping[str, str]
    remove: tuple[str, ...]
    keep: tuple[str, ...]
    settings: tuple[str, ...]
    by_hand: Mapping[str, str]

    @property
    def needs_installer(self) -> bool:
        """Whether packages have to change."""
        return bool(self.install or self.change or self.anew or self.missing or self.remove)

    @property
    def is_empty(self) -> bool:
        """Whether all is as the lock says."""
        return not (self.needs_installer or self.settings or self.by_hand)

    def lines(self) -> list[str]:
        """The plan for people."""
        return [
            *(f"install    {name} {version}" for name, version in self.install.items()),
            *(f"change     {name} {here} → {wanted}" for name, (here, wanted) in self.change.items()),
            *(f"reinstall  {name} {version}: its content differs from the lock" for name, version in self.anew.items()),
            *(f"install    {name} {version}, a requirement" for name, version in self.missing.items()),
            *(f"remove     {name}" for name in self.remove),
            *(f"keep       {name}, which the lock does not have (--exact removes it)" for name in self.keep),
            *(f"set        {sentence}" for sentence in self.settings),
            *(f"by hand    {sentence}" for sentence in self.by_hand.values()),
        ]


def sync(
    lock: Lock,
    load: Callable[[], Settings],
    *,
    exact: bool = False,
    dry_run: bool = False,
    sources: Sources | None = None,
    run: Run = run_visibly,
    tell: Callable[[str], None] = print,
) -> list[str]:
    """Make the environment of this process what a lock says.

    Args:
        lock: What is wanted.
        load: Reads the settings, before and after.
        exact: Remove plugins that the lock does not have, but for the manager.
        dry_run: Say what would be done, and do nothing.
        sources: Where to look besides the index.
        run: Runs the installer.
        tell: Takes the plan, line by line.

    Returns:
        What is not as the lock says afterwards, as sentences; none if all is.

    Raises:
        ConfigError: The lock is for another Python, nothing can be installed here, or the installer failed.
    """
    _check_python(lock)
    before = read_state(load())
    todo = plan(lock, before, exact=exact)
    for line in todo.lines():
        tell(line)
    if dry_run or todo.is_empty:
        return differences(lock, before, exact=exact)
    if todo.needs_installer:
        carry_out(todo, lock, sources=sources, run=run)
    if todo.settings:
        write_policy(lock.policy)
    return differences(lock, read_state(load()), exact=exact)


def read_state(settings: Settings, paths: Iterable[str] | None = None) -> State:
    """What is installed on `paths`, or `sys.path`, and the rules that hold. Nothing is loaded."""
    importlib.invalidate_caches()
    where = None if paths is None else tuple(paths)
    found = installed(where)
    core = found.pop(CORE, None)
    rows = {row.distribution: row for row in scan(where).rows if row.distribution != CORE}
    return State(
        core=_state_of(core, __version__, core.location if core else ""),
        plugins={name: _state_of(found.get(name), row.version, row.location) for name, row in sorted(rows.items())},
        versions={name: _spelled(one.version) for name, one in found.items()},
        policy=policy_of(settings),
        origins=settings.origins,
    )


def plan(lock: Lock, state: State, *, exact: bool = False) -> Plan:
    """What has to be done so that `state` becomes what `lock` says; nothing is done.

    Args:
        lock: What is wanted.
        state: What is here.
        exact: Plugins that the lock does not have are to go; but not the manager, which restores locks.
    """
    todo = _of_plugins(lock, state)
    for name, version in lock.requirements.items():
        has = state.versions.get(name)
        if has is not None and has != version:
            todo.change[name] = (has, version)
        elif has is None and lock.platform == sys.platform:  # elsewhere others may be the right ones
            todo.missing[name] = version
    known = {*(plugin.name for plugin in lock.plugins), *lock.requirements, MANAGER}
    extra = tuple(sorted(set(state.plugins) - known))
    return Plan(
        todo.install,
        todo.change,
        todo.anew,
        todo.missing,
        remove=extra if exact else (),
        keep=() if exact else extra,
        settings=tuple(_setting_differences(lock.policy, state.policy, state.origins)),
        by_hand=todo.by_hand,
    )


@dataclass(frozen=True, slots=True)
class _Todo:
    """A plan while it is made."""

    install: dict[str, str] = field(default_factory=dict)
    change: dict[str, tuple[str, str]] = field(default_factory=dict)
    anew: dict[str, str] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    by_hand: dict[str, str] = field(default_factory=dict)


def _of_plugins(lock: Lock, state: State) -> _Todo:
    """What has to be done about the core and the plugins that a lock has."""
    todo = _Todo()
    for wanted in (LockedPlugin(CORE, lock.core), *lock.plugins):
        here = state.core if wanted.name == CORE else state.plugins.get(wanted.name)
        if here is not None and _is_same(wanted, here):
            continue
        if wanted.editable or (here is not None and here.editable):
            todo.by_hand[wanted.name] = _about_editable(wanted, here)
        elif here is None:
            todo.install[wanted.name] = wanted.version
        elif here.version != wanted.version:
            todo.change[wanted.name] = (here.version, wanted.version)
        else:
            todo.anew[wanted.name] = wanted.version
    return todo


def carry_out(
    todo: Plan,
    lock: Lock,
    *,
    environment: Environment | None = None,
    sources: Sources | None = None,
    run: Run = run_visibly,
) -> None:
    """Do what a plan asks of packages.

    Raises:
        ConfigError: Nothing can be installed here, or the installer failed; the message says what to do.
    """
    env = environment or Environment.current()
    plugins = {one.name: one.version for one in lock.plugins if not one.editable and one.name not in todo.by_hand}
    refuse_tool_environment(env, add=_pinned(plugins), remove=todo.remove)
    installer = find_installer(env)
    core = {} if CORE in todo.by_hand else {CORE: lock.core}
    # Requirements are constraints only: an installer notes whom somebody has asked for, and that was not them.
    constraints = write_constraints({**core, **plugins, **lock.requirements})
    wanted = {**plugins, CORE: lock.core} if CORE in todo.change else plugins
    try:
        _run_all(_commands(todo, wanted, installer, constraints, sources), installer, run)
    finally:
        constraints.unlink(missing_ok=True)


def _commands(
    todo: Plan, wanted: Mapping[str, str], installer: Installer, constraints: Path, sources: Sources | None
) -> Iterator[list[str]]:
    if todo.remove:
        yield installer.uninstall(todo.remove)
    if todo.install or todo.change or todo.missing:
        yield installer.install(_pinned(wanted), constraints=constraints, sources=sources)
    if todo.anew:
        yield installer.install(_pinned(todo.anew), anew=True, sources=sources)


def _pinned(versions: Mapping[str, str]) -> list[str]:
    return [f"{name}=={version}" for name, version in versions.items()]


def _run_all(commands: Iterable[Sequence[str]], installer: Installer, run: Run) -> None:
    for command in commands:
        code = run(command)
        if code:
            raise ConfigError(f"{installer.name} ended with code {code}, so the lock is not restored; see its output")


def differences(lock: Lock, state: State, *, exact: bool = False) -> list[str]:
    """What is not as the lock says, as sentences that name both sides."""
    still = plan(lock, state, exact=exact)
    contents = {plugin.name: plugin.content for plugin in lock.plugins}
    told = [f"{name} {version} is not installed" for name, version in {**still.install, **still.missing}.items()]
    told += [f"{name} is {here}, but the lock has {wanted}" for name, (here, wanted) in still.change.items()]
    told += [_other_content(name, version, state.plugins[name], contents[name]) for name, version in still.anew.items()]
    told += [f"{name} is installed, but is not in the lock" for name in still.remove]
    return [*told, *still.settings, *still.by_hand.values()]


def write_policy(policy: Policy) -> None:
    """Write the rules of a lock into the file of the user's choices; what other files say remains.

    Raises:
        ConfigError: The file cannot be read or written.
    """
    rules = {rule.name: getattr(policy, rule.name) for rule in fields(policy)}
    write_choices(load_choices().with_changes(**rules))


def _check_python(lock: Lock) -> None:
    from packaging.specifiers import SpecifierSet

    here = platform.python_version()
    if not SpecifierSet(lock.requires_python).contains(here, prereleases=True):
        raise ConfigError(f"the lock is for Python {lock.requires_python}, and this is {here}: use another environment")


def _state_of(distribution: Distribution | None, version: str, location: str) -> InstalledPlugin:
    if distribution is None:
        return InstalledPlugin(_spelled(version))
    if distribution.editable:
        return InstalledPlugin(_spelled(distribution.version), editable=True)
    try:
        content, changes = content_hash(location), changed_files(location)
    except PluginError:
        content, changes = "", []  # the difference to the lock's content says that it is not known
    edited = tuple(change.path for change in changes)
    return InstalledPlugin(_spelled(distribution.version), content, edited=edited)


def _spelled(version: str) -> str:
    return canonical_version(version) or version


def _is_same(wanted: LockedPlugin, here: InstalledPlugin) -> bool:
    if wanted.version != here.version:
        return False
    if wanted.name == CORE:
        return True
    if wanted.content and (here.edited or wanted.content != here.content):
        return False
    return wanted.editable == here.editable


def _other_content(name: str, version: str, here: InstalledPlugin, wanted: str) -> str:
    if here.edited and here.content == wanted:
        return f"{name} {version} was edited after it was installed: {', '.join(here.edited[:5])}"
    return (
        f"{name} {version} has the content {here.content or 'that nobody can tell (no RECORD)'}, and the lock has "
        f"{wanted}: what is offered under this version is not what was frozen"
    )


def _about_editable(wanted: LockedPlugin, here: InstalledPlugin | None) -> str:
    if not wanted.editable:
        uninstall = "" if wanted.name == CORE else f", or: jackfield plugins uninstall {wanted.name}, and sync again"
        return (
            f"{wanted.name} is an editable folder here, and the lock has the release {wanted.version}: "
            f"bring the folder there{uninstall}"
        )
    has = "is not installed" if here is None else f"is {here.version}{' (editable)' if here.editable else ''}"
    return (
        f"{wanted.name} {has}, and the lock has an editable folder of {wanted.version}: "
        "install it from where you keep it, with pip install -e"
    )


def _setting_differences(wanted: Policy, here: Policy, origins: Mapping[str, str]) -> list[str]:
    told = []
    for rule in fields(Policy):
        has, should = getattr(here, rule.name), getattr(wanted, rule.name)
        if has == should:
            continue
        from_files = _origins_of(rule.name, has or (), should or (), origins)
        told.append(f"{rule.name} is {_shown(has)}{from_files}, and the lock has {_shown(should)}")
    return told


def _origins_of(rule: str, has: Iterable[str], should: Iterable[str], origins: Mapping[str, str]) -> str:
    """` (from FILE)` for the names that are too many here."""
    too_many = [rule, *(f"{rule}:{name}" for name in has if name not in set(should))]
    found = sorted({origins[key] for key in too_many if key in origins})
    return f" (from {', '.join(found)})" if found else ""


def _shown(value: object) -> str:
    if value is None:
        return "not set"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{name} = {chosen}" for name, chosen in value.items()) + "}"
    return f"[{', '.join(map(str, value))}]" if isinstance(value, tuple) else str(value)
