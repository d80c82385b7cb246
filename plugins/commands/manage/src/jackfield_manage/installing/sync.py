"""Make what is installed the same as a lock says: plan (pure), act through an installer, then look whether it is so."""

from __future__ import annotations

import importlib
import platform
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from itertools import filterfalse
from pathlib import Path

from jackfield import __version__
from jackfield.defaults import MANAGER
from jackfield.errors import ConfigError, PluginError
from jackfield.plugins import scan
from jackfield.settings import Settings
from jackfield_manage.choices import load_choices, write_choices
from jackfield_manage.distributions import CORE, Distribution, installed
from jackfield_manage.installing.lock import Lock, LockedPlugin, Policy, canonical_version, policy_of
from jackfield_manage.installing.packages import (
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

    install: dict[str, str] = field(default_factory=dict)
    change: dict[str, tuple[str, str]] = field(default_factory=dict)
    anew: dict[str, str] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    remove: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    by_hand: dict[str, str] = field(default_factory=dict)

    @property
    def needs_installer(self) -> bool:
        """Whether packages have to change."""
        return any((self.install, self.change, self.anew, self.missing, self.remove))

    @property
    def is_empty(self) -> bool:
        """Whether all is as the lock says."""
        return not any((self.needs_installer, self.settings, self.by_hand))

    def lines(self) -> list[str]:
        """The plan for people."""
        return list(self._written(_STEPS))

    def differences(self) -> list[str]:
        """What is not as the lock says, as sentences, but for contents."""
        return list(self._written(_DIFFERENCES))

    def _written(self, forms: Mapping[str, str]) -> Iterator[str]:
        for attribute, form in forms.items():
            facts = getattr(self, attribute)
            for fact in facts.items() if isinstance(facts, dict) else zip(facts, strict=True):
                yield form.format(*fact)


# How a line says each fact of a plan: its name, and what goes with it.
_STEPS = {
    "install": "install    {} {}",
    "change": "change     {0} {1[0]} → {1[1]}",
    "anew": "reinstall  {} {}: its content differs from the lock",
    "missing": "install    {} {}, a requirement",
    "remove": "remove     {}",
    "keep": "keep       {}, which the lock does not have (--exact removes it)",
    "settings": "set        {}",
    "by_hand": "by hand    {1}",
}
_DIFFERENCES = {
    "install": "{} {} is not installed",
    "missing": "{} {} is not installed",
    "change": "{0} is {1[0]}, but the lock has {1[1]}",
    "remove": "{} is installed, but is not in the lock",
    "settings": "{}",
    "by_hand": "{1}",
}


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


def read_state(settings: Settings, paths: Sequence[str] | None = None) -> State:
    """What is installed on `paths`, or `sys.path`, and the rules that hold. Nothing is loaded."""
    importlib.invalidate_caches()
    found = installed(paths)
    core = found.pop(CORE, None)
    rows = {row.distribution: row for row in scan(paths).rows if row.distribution != CORE}
    return State(
        core=_state_of(core, __version__),
        plugins={name: _state_of(found.get(name), row.version) for name, row in sorted(rows.items())},
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
    wanted = {CORE: LockedPlugin(CORE, lock.core), **{plugin.name: plugin for plugin in lock.plugins}}
    extra = tuple(sorted(state.plugins.keys() - wanted.keys() - lock.requirements.keys() - {MANAGER}))
    todo = Plan(
        remove=extra if exact else (),
        keep=() if exact else extra,
        settings=tuple(_setting_differences(lock.policy, state.policy, state.origins)),
    )
    here = {CORE: state.core, **state.plugins}
    for name, plugin in wanted.items():
        _compare(plugin, here.get(name, _NOT_HERE), todo)
    _compare_requirements(lock, state.versions, todo)
    return todo


_NOT_HERE = InstalledPlugin("")


def _compare(wanted: LockedPlugin, here: InstalledPlugin, todo: Plan) -> None:
    """Note what has to be done about the core or a plugin."""
    if _is_same(wanted, here):
        return
    if wanted.editable or here.editable:
        todo.by_hand[wanted.name] = _about_editable(wanted, here)
    elif here is _NOT_HERE:
        todo.install[wanted.name] = wanted.version
    elif here.version != wanted.version:
        todo.change[wanted.name] = (here.version, wanted.version)
    else:
        todo.anew[wanted.name] = wanted.version


def _compare_requirements(lock: Lock, here: Mapping[str, str], todo: Plan) -> None:
    for name, version in lock.requirements.items():
        if here.get(name, version) != version:
            todo.change[name] = (here[name], version)
    if lock.platform == sys.platform:  # elsewhere others may be the right ones
        todo.missing.update(
            (name, lock.requirements[name]) for name in filterfalse(here.__contains__, lock.requirements)
        )


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
    plugins = {one.name: one.version for one in lock.plugins if not (one.editable or one.name in todo.by_hand)}
    refuse_tool_environment(env, add=_pinned(plugins), remove=todo.remove)
    installer = find_installer(env)
    core = dict.fromkeys({CORE} - todo.by_hand.keys(), lock.core)
    # Requirements are constraints only: an installer notes whom somebody has asked for, and that was not them.
    constraints = write_constraints({**core, **plugins, **lock.requirements})
    wanted = {**plugins, **dict.fromkeys({CORE} & todo.change.keys(), lock.core)}
    try:
        _run_all(_commands(todo, wanted, installer, constraints, sources), installer, run)
    finally:
        constraints.unlink(missing_ok=True)


def _commands(
    todo: Plan, wanted: Mapping[str, str], installer: Installer, constraints: Path, sources: Sources | None
) -> Iterator[list[str]]:
    if todo.remove:
        yield installer.uninstall(todo.remove)
    if any((todo.install, todo.change, todo.missing)):
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
    others = [plugin for plugin in lock.plugins if plugin.name in still.anew]
    return [*still.differences(), *(_other_content(one, state.plugins[one.name]) for one in others)]


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


def _state_of(distribution: Distribution | None, version: str) -> InstalledPlugin:
    if distribution is None:
        return InstalledPlugin(_spelled(version))
    here = InstalledPlugin(_spelled(distribution.version), editable=distribution.editable)
    # Otherwise the difference to the lock's content says that it is not known.
    with suppress(PluginError):
        if not here.editable:
            edited = tuple(change.path for change in changed_files(distribution.location))
            return replace(here, content=content_hash(distribution.location), edited=edited)
    return here


def _spelled(version: str) -> str:
    return canonical_version(version) or version


def _is_same(wanted: LockedPlugin, here: InstalledPlugin) -> bool:
    if wanted.name == CORE or wanted.version != here.version:
        return wanted.version == here.version
    is_intact = (wanted.content, ()) == (here.content, here.edited)
    return wanted.editable == here.editable and (is_intact or not wanted.content)


def _other_content(wanted: LockedPlugin, here: InstalledPlugin) -> str:
    plugin = f"{wanted.name} {wanted.version}"
    if here.edited and here.content == wanted.content:
        return f"{plugin} was edited after it was installed: {', '.join(here.edited[:5])}"
    return (
        f"{plugin} has the content {here.content or 'that nobody can tell (no RECORD)'}, and the lock has "
        f"{wanted.content}: what is offered under this version is not what was frozen"
    )


def _about_editable(wanted: LockedPlugin, here: InstalledPlugin) -> str:
    if not wanted.editable:
        uninstall = "" if wanted.name == CORE else f", or: jackfield plugins uninstall {wanted.name}, and sync again"
        return (
            f"{wanted.name} is an editable folder here, and the lock has the release {wanted.version}: "
            f"bring the folder there{uninstall}"
        )
    has = "is not installed" if here is _NOT_HERE else f"is {here.version}{' (editable)' * here.editable}"
    return (
        f"{wanted.name} {has}, and the lock has an editable folder of {wanted.version}: "
        "install it from where you keep it, with pip install -e"
    )


def _setting_differences(wanted: Policy, here: Policy, origins: Mapping[str, str]) -> Iterator[str]:
    for rule in fields(Policy):
        has, should = getattr(here, rule.name), getattr(wanted, rule.name)
        if has != should:
            from_files = _origins_of(rule.name, has or (), should or (), origins)
            yield f"{rule.name} is {_shown(has)}{from_files}, and the lock has {_shown(should)}"


def _origins_of(rule: str, has: Iterable[str], should: Iterable[str], origins: Mapping[str, str]) -> str:
    """` (from FILE)` for the names that are too many here."""
    too_many = {rule, *(f"{rule}:{name}" for name in set(has).difference(should))}
    found = sorted({origins[key] for key in too_many & origins.keys()})
    return f" (from {', '.join(found)})" if found else ""


def _shown(value: object) -> str:
    if value is None:
        return "not set"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{name} = {chosen}" for name, chosen in value.items()) + "}"
    return f"[{', '.join(map(str, value))}]" if isinstance(value, tuple) else str(value)
