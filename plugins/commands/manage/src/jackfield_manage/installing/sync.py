"""Restore a lock: plan the changes, apply them with an installer, then check the result."""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from pathlib import Path

from jackfield import __version__
from jackfield.defaults import MANAGER
from jackfield.errors import ConfigError, PluginError
from jackfield.plugins import scan
from jackfield.settings import Settings
from jackfield_manage.choices import lock_choices, write_choices
from jackfield_manage.distributions import CORE, Distribution, installed
from jackfield_manage.installing.installers import (
    Environment,
    Installer,
    Run,
    Sources,
    find_installer,
    refuse_tool_environment,
    run_visibly,
    write_constraints,
)
from jackfield_manage.installing.lock import Lock, LockedPlugin, Policy, canonical_version, policy_of
from jackfield_manage.record import changed_files, content_hash


@dataclass(frozen=True, slots=True)
class InstalledPlugin:
    """The state of the core or of an installed distribution with plugins.

    Attributes:
        content: The `content_hash` of the installed wheel, or '' if unknown.
        edited: The files changed after installation.
    """

    version: str
    content: str = ""
    editable: bool = False
    edited: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class State:
    """The state of an installation.

    Attributes:
        core: The core.
        plugins: The distributions with plugins, by name.
        versions: The versions of all distributions except the core.
        policy: The rules.
        origins: The files and variables from which the rules come; see `Settings`.
    """

    core: InstalledPlugin
    plugins: Mapping[str, InstalledPlugin]
    versions: Mapping[str, str]
    policy: Policy
    origins: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Plan:
    """The differences between a lock and an installation.

    Attributes:
        install: Missing plugins: name → version.
        change: Distributions with another version: name → (installed, locked).
        reinstall: Plugins with the right version but different content: name → version.
        missing: Missing requirements: name → version. The installer decides whether they are needed.
        remove: Plugins to remove because they are not in the lock.
        keep: Plugins to keep although they are not in the lock.
        settings: The rules that differ, as sentences.
        by_hand: Changes to editable directories, which the user must make: name → sentence.
    """

    install: dict[str, str] = field(default_factory=dict)
    change: dict[str, tuple[str, str]] = field(default_factory=dict)
    reinstall: dict[str, str] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    remove: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    by_hand: dict[str, str] = field(default_factory=dict)

    @property
    def needs_installer(self) -> bool:
        """True if packages must change."""
        return any((self.install, self.change, self.reinstall, self.missing, self.remove))

    @property
    def is_empty(self) -> bool:
        """True if the installation matches the lock."""
        return not any((self.needs_installer, self.settings, self.by_hand))

    def lines(self) -> list[str]:
        """Return the steps of the plan, one line each."""
        return [
            *(f"install    {name} {version}" for name, version in self.install.items()),
            *(f"change     {name} {before} → {after}" for name, (before, after) in self.change.items()),
            *(
                f"reinstall  {name} {version}: its content differs from the lock"
                for name, version in self.reinstall.items()
            ),
            *(f"install    {name} {version}, a requirement" for name, version in self.missing.items()),
            *(f"remove     {name}" for name in self.remove),
            *(f"keep       {name}, which is not in the lock (--exact removes it)" for name in self.keep),
            *(f"set        {sentence}" for sentence in self.settings),
            *(f"by hand    {sentence}" for sentence in self.by_hand.values()),
        ]

    def differences(self) -> list[str]:
        """Return the differences as sentences, except for differing content."""
        return [
            *(f"{name} {version} is not installed" for name, version in self.install.items()),
            *(f"{name} {version} is not installed" for name, version in self.missing.items()),
            *(f"{name} is {here}, but the lock has {locked}" for name, (here, locked) in self.change.items()),
            *(f"{name} is installed but not in the lock" for name in self.remove),
            *self.settings,
            *self.by_hand.values(),
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
    """Restore a lock in this process's environment.

    Args:
        lock: The lock.
        load: Loads the settings; called before and after the changes.
        exact: True to remove plugins that are not in the lock, except the manager.
        dry_run: True to print the plan without changing anything.
        sources: Package sources in addition to the index.
        run: Runs the installer.
        tell: Receives the plan, line by line.

    Returns:
        The remaining differences, as sentences.

    Raises:
        ConfigError: The lock is for another Python, nothing can be installed here, or the installer failed.
    """
    _check_python(lock)
    before = read_state(load())
    changes = plan(lock, before, exact=exact)
    for line in changes.lines():
        tell(line)
    if dry_run or changes.is_empty:
        return differences(lock, before, exact=exact)
    if changes.needs_installer:
        carry_out(changes, lock, sources=sources, run=run)
    if changes.settings:
        write_policy(lock.policy)
    return differences(lock, read_state(load()), exact=exact)


def read_state(settings: Settings, paths: Sequence[str] | None = None) -> State:
    """Read the packages installed on `paths` or `sys.path`, and the rules that apply, without loading anything."""
    installation = installed(paths)
    core = installation.pop(CORE, None)
    rows = {row.distribution: row for row in scan(paths).rows if row.distribution != CORE}
    return State(
        core=_read_plugin(core, __version__),
        plugins={name: _read_plugin(installation.get(name), row.version) for name, row in rows.items()},
        versions={name: _normalise_version(entry.version) for name, entry in installation.items()},
        policy=policy_of(settings),
        origins=settings.origins,
    )


def _read_plugin(distribution: Distribution | None, version: str) -> InstalledPlugin:
    if distribution is None:
        return InstalledPlugin(_normalise_version(version))
    plugin = InstalledPlugin(_normalise_version(distribution.version), editable=distribution.editable)
    if not plugin.editable:
        with suppress(PluginError):  # the content stays unknown, which `differences` reports
            edited = tuple(change.path for change in changed_files(distribution.location))
            return replace(plugin, content=content_hash(distribution.location), edited=edited)
    return plugin


def _normalise_version(version: str) -> str:
    return canonical_version(version) or version


def plan(lock: Lock, state: State, *, exact: bool = False) -> Plan:
    """Plan the changes that turn `state` into `lock`, without making them.

    Args:
        lock: The lock.
        state: The installation.
        exact: True to remove plugins that are not in the lock, except the manager, which restores locks.
    """
    wanted = {CORE: LockedPlugin(CORE, lock.core), **{plugin.name: plugin for plugin in lock.plugins}}
    extra = tuple(sorted(state.plugins.keys() - wanted.keys() - lock.requirements.keys() - {MANAGER}))
    changes = Plan(
        remove=extra if exact else (),
        keep=() if exact else extra,
        settings=tuple(_compare_rules(lock.policy, state.policy, state.origins)),
    )
    for name, plugin in wanted.items():
        _compare_plugin(plugin, state.core if name == CORE else state.plugins.get(name), changes)
    for name, version in lock.requirements.items():
        here = state.versions.get(name)
        if here is not None and here != version:
            changes.change[name] = (here, version)
        elif here is None and lock.platform == sys.platform:  # other platforms may have other requirements
            changes.missing[name] = version
    return changes


def _compare_plugin(wanted: LockedPlugin, here: InstalledPlugin | None, changes: Plan) -> None:
    """Add the change that the core or a plugin needs, if any."""
    if here is not None and _matches(wanted, here):
        return
    if wanted.editable or (here is not None and here.editable):
        changes.by_hand[wanted.name] = _describe_editable(wanted, here)
    elif here is None:
        changes.install[wanted.name] = wanted.version
    elif here.version != wanted.version:
        changes.change[wanted.name] = (here.version, wanted.version)
    else:
        changes.reinstall[wanted.name] = wanted.version


def _matches(wanted: LockedPlugin, here: InstalledPlugin) -> bool:
    if wanted.name == CORE or wanted.version != here.version:
        return wanted.version == here.version
    is_intact = here.content == wanted.content and not here.edited
    return wanted.editable == here.editable and (is_intact or not wanted.content)


def _describe_editable(wanted: LockedPlugin, here: InstalledPlugin | None) -> str:
    if here is None:
        state = "is not installed"
    elif wanted.editable:
        state = f"is {here.version}{' (editable)' if here.editable else ''}"
    else:
        uninstall = "" if wanted.name == CORE else f", or run jackfield plugins uninstall {wanted.name} and sync again"
        return (
            f"{wanted.name} is an editable installation here, but the lock has the release {wanted.version}: "
            f"check out that version in its folder{uninstall}"
        )
    return (
        f"{wanted.name} {state}, but the lock has an editable installation of {wanted.version}: "
        "install your own copy with pip install -e FOLDER"
    )


def _compare_rules(wanted: Policy, here: Policy, origins: Mapping[str, str]) -> Iterator[str]:
    for rule in fields(Policy):
        current, locked = getattr(here, rule.name), getattr(wanted, rule.name)
        if current != locked:
            extra = set(current or ()).difference(locked or ())
            keys = {rule.name, *(f"{rule.name}:{name}" for name in extra)}
            files = sorted({origins[key] for key in keys & origins.keys()})
            origin = f" (from {', '.join(files)})" if files else ""
            yield f"{rule.name} is {_format_rule(current)}{origin}, but the lock has {_format_rule(locked)}"


def _format_rule(value: object) -> str:
    if value is None:
        return "not set"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{name} = {distribution}" for name, distribution in value.items()) + "}"
    return f"[{', '.join(str(name) for name in value)}]" if isinstance(value, tuple) else str(value)


def carry_out(
    changes: Plan,
    lock: Lock,
    *,
    environment: Environment | None = None,
    sources: Sources | None = None,
    run: Run = run_visibly,
) -> None:
    """Install, change and remove packages as planned.

    Raises:
        ConfigError: Nothing can be installed here, or the installer failed. The message says what to do.
    """
    env = environment or Environment.current()
    plugins = {
        plugin.name: plugin.version
        for plugin in lock.plugins
        if not plugin.editable and plugin.name not in changes.by_hand
    }
    wanted = {**plugins, CORE: lock.core} if CORE in changes.change else plugins
    changed = {name: version for name, (_, version) in changes.change.items()}
    refuse_tool_environment(env, add=_pin({**wanted, **changed, **changes.missing}), remove=changes.remove)
    installer = find_installer(env)
    core = {} if CORE in changes.by_hand else {CORE: lock.core}
    # Requirements are only constraints, because installers record their arguments as requested by the user.
    constraints = write_constraints({**core, **plugins, **lock.requirements})
    try:
        for command in _commands(changes, wanted, installer, constraints, sources):
            code = run(command)
            if code:
                raise ConfigError(
                    f"{installer.name} exited with code {code}, so the lock was not restored; see its output"
                )
    finally:
        constraints.unlink(missing_ok=True)


def _commands(
    changes: Plan, wanted: Mapping[str, str], installer: Installer, constraints: Path, sources: Sources | None
) -> Iterator[list[str]]:
    if changes.remove:
        yield installer.uninstall(changes.remove)
    if changes.install or changes.change or changes.missing:
        yield installer.install(_pin(wanted), constraints=constraints, sources=sources)
    if changes.reinstall:
        yield installer.install(_pin(changes.reinstall), reinstall=True, sources=sources)


def _pin(versions: Mapping[str, str]) -> list[str]:
    return [f"{name}=={version}" for name, version in versions.items()]


def write_policy(policy: Policy) -> None:
    """Write a lock's rules to the user's `choices.toml`. Other files remain unchanged.

    Raises:
        ConfigError: The file cannot be read or written.
    """
    rules = {rule.name: getattr(policy, rule.name) for rule in fields(policy)}
    with lock_choices() as choices:
        write_choices(choices.with_changes(**rules))


def differences(lock: Lock, state: State, *, exact: bool = False) -> list[str]:
    """Return the differences between a lock and an installation, as sentences that name both sides."""
    changes = plan(lock, state, exact=exact)
    return [
        *changes.differences(),
        *(
            _describe_content(plugin, state.plugins[plugin.name])
            for plugin in lock.plugins
            if plugin.name in changes.reinstall
        ),
    ]


def _describe_content(wanted: LockedPlugin, here: InstalledPlugin) -> str:
    plugin = f"{wanted.name} {wanted.version}"
    if here.edited and here.content == wanted.content:
        return f"{plugin} was edited after it was installed: {', '.join(here.edited[:5])}"
    if not here.content:
        return f"{plugin} has no RECORD, so its content cannot be compared with that in the lock, {wanted.content}"
    return (
        f"{plugin} has the content {here.content}, but the lock has {wanted.content}: "
        "the package now published under this version is not the one that was locked"
    )


def _check_python(lock: Lock) -> None:
    from packaging.specifiers import SpecifierSet

    here = platform.python_version()
    if not SpecifierSet(lock.requires_python).contains(here, prereleases=True):
        raise ConfigError(
            f"the lock requires Python {lock.requires_python}, but this is {here}: use an environment with a matching "
            "version"
        )
