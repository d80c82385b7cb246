"""Read and write `jackfield-plugins.lock`: a lock as sorted TOML with one entry per line, for readable diffs.

Reading is strict, because users edit the file. Errors name each invalid entry, and no accepted value can be mistaken
for an installer option.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

from jackfield.errors import ConfigError
from jackfield.suggestions import suggest
from jackfield_manage.choices import replace_file, toml_facts, toml_value
from jackfield_manage.distributions import CORE
from jackfield_manage.installing.lock import Lock, LockedPlugin, Policy, canonical_version

_FORMAT = 1
_MAX_LOCK_BYTES = 4 << 20
_HEADING = "# Written by `jackfield plugins freeze`; `jackfield plugins sync` restores it.\n"
_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_RULE = re.compile(r"\w[\w.-]*(?:/(?:[\w.-]+|\*)|\.\*)?", re.ASCII)
_COMPONENT = re.compile(r"[\w-]+\.[\w.-]+", re.ASCII)
_OFFER = re.compile(rf"{_COMPONENT.pattern}|[\w-]+\.\*", re.ASCII)
_CONTENT = re.compile(r"sha256:[0-9a-f]{64}")
_PLATFORM = re.compile(r"[\w.-]*", re.ASCII)


def as_toml(lock: Lock) -> str:
    """Format a lock as TOML."""
    head = {"format": _FORMAT, "core": lock.core, "requires-python": lock.requires_python, "platform": lock.platform}
    text = _HEADING + toml_facts(head)
    for plugin in sorted(lock.plugins, key=lambda plugin: plugin.name):
        facts = {
            "name": plugin.name,
            "version": plugin.version,
            "content": plugin.content or None,
            "editable": plugin.editable or None,
            "offers": sorted(plugin.ids),
        }
        text += f"\n[[plugin]]\n{toml_facts(facts)}"
    policy = {rule: getattr(lock.policy, rule) for rule in ("allow", "block", "enabled", "order")}
    prefer = {toml_value(name): distribution for name, distribution in sorted(lock.policy.prefer.items())}
    text += f"\n[requirements]\n{toml_facts(dict(sorted(lock.requirements.items())))}"
    text += f"\n[policy]\n{toml_facts(policy)}"
    text += f"\n[policy.prefer]\n{toml_facts(prefer)}"
    return text


def write_lock(lock: Lock, path: Path) -> None:
    """Write a lock atomically.

    Raises:
        ConfigError: The file cannot be written, or a rule in the settings is invalid.
    """
    text = as_toml(lock)
    parse_lock(text, "the lock for this installation")
    try:
        replace_file(path, text)
        path.chmod(0o644)  # it is meant to be shared
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror or error}") from error


def read_lock(path: Path) -> Lock:
    """Read a lock, which a user may have edited.

    Raises:
        ConfigError: The file is missing or invalid. The message names each invalid entry.
    """
    try:
        with path.open("rb") as file:
            raw = file.read(_MAX_LOCK_BYTES + 1)
    except OSError as error:
        raise ConfigError(
            f"{path} cannot be read: {error.strerror or error}; to create a lock file, run: jackfield plugins freeze"
        ) from error
    if len(raw) > _MAX_LOCK_BYTES:
        raise ConfigError(f"{path} is larger than 4 MiB, which is too large for a lock file")
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not valid UTF-8: {error}") from error
    return parse_lock(text, str(path))


def parse_lock(text: str, where: str) -> Lock:
    """Parse a lock. `where` names the file in errors.

    Raises:
        ConfigError: See `read_lock`.
    """
    import tomllib

    try:
        table = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigError(f"{where} is not valid TOML: {error}") from error
    _check_format(table, where)
    faults: list[str] = []
    lock = _read_table(table, faults)
    if faults:
        raise ConfigError(f"{where} is invalid:\n  " + "\n  ".join(faults))
    return lock


def _check_format(table: Mapping[str, object], where: str) -> None:
    wanted = table.get("format")
    if wanted != _FORMAT or isinstance(wanted, bool):
        found = f"found {wanted!r}" if "format" in table else "but 'format' is missing"
        raise ConfigError(
            f"{where}: expected lock format {_FORMAT}, {found}: run pip install --upgrade jackfield, or create the "
            "lock again with jackfield plugins freeze"
        )


# --- reading ---


def _read_table(table: Mapping[str, object], faults: list[str]) -> Lock:
    read = _Reader(table, "", faults)
    read.only("format", "core", "requires-python", "platform", "plugin", "requirements", "policy")
    plugins: dict[str, LockedPlugin] = {}
    for number, entry in enumerate(read.tables("plugin"), start=1):
        plugin = _read_plugin(entry, number, faults)
        if plugin.name in plugins:
            faults.append(f"plugin {number}: {plugin.name!r} is listed twice")
        plugins[plugin.name] = plugin
    requirements = _Reader(read.table("requirements"), "requirements", faults).pins()
    faults += [
        f"requirements: {name!r} must be omitted, because it has its own entry in the lock"
        for name in sorted({CORE, *plugins} & requirements.keys())
    ]
    return Lock(
        core=read.text("core", _is_version, "a version"),
        requires_python=read.text("requires-python", _is_specifier, "a range of Python versions, such as '>=3.11'"),
        platform=read.text("platform", _PLATFORM.fullmatch, "a platform, such as 'linux'"),
        plugins=tuple(plugins[name] for name in sorted(plugins)),
        requirements=requirements,
        policy=_read_policy(read.table("policy"), faults),
    )


def _read_plugin(entry: Mapping[str, object], number: int, faults: list[str]) -> LockedPlugin:
    name = entry.get("name")
    read = _Reader(entry, f"plugin {number} ({name!r:.80})" if isinstance(name, str) else f"plugin {number}", faults)
    read.only("name", "version", "content", "editable", "offers")
    plugin = LockedPlugin(
        name=read.text("name", _NAME.fullmatch, "a normalised package name (a-z, 0-9 and single '-')"),
        version=read.text("version", _is_version, "a version"),
        content=read.text("content", _CONTENT.fullmatch, "'sha256:' followed by 64 hexadecimal digits", needed=False),
        ids=read.names("offers", _OFFER, "kind.name or kind.*"),
        editable=read.switch("editable"),
    )
    if plugin.editable and plugin.content:
        read.fault("content", "is not allowed for an editable plugin: remove 'content' or 'editable'")
    if plugin.name == CORE:
        read.fault("name", "must not be the core, which has its own entry")
    return plugin


def _read_policy(table: Mapping[str, object], faults: list[str]) -> Policy:
    read = _Reader(table, "policy", faults)
    read.only("allow", "block", "enabled", "order", "prefer")
    return Policy(
        allow=read.names("allow", _NAME, "a normalised package name") if "allow" in table else None,
        block=read.names("block", _RULE, "a package, kind.name or package/name"),
        enabled=read.names("enabled", _RULE, "kind.name or kind.distribution/name"),
        order=read.names("order", _RULE, "a name"),
        prefer=_Reader(read.table("prefer"), "policy.prefer", faults).preferences(),
    )


def _is_version(text: str) -> bool:
    return text != "" and canonical_version(text) == text


def _is_specifier(text: str) -> bool:
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    try:
        SpecifierSet(text)
    except InvalidSpecifier:
        return False
    return True


class _Reader:
    """Reads the values of a table, and collects a fault for each invalid one."""

    def __init__(self, table: Mapping[str, object], where: str, faults: list[str]) -> None:
        self._table = table
        self._where = where
        self._faults = faults

    def fault(self, key: str, text: str) -> None:
        prefix = f"{self._where}: " if self._where else ""
        self._faults.append(f"{prefix}{key!r:.80} {text}")

    def only(self, *keys: str) -> None:
        for key in self._table:
            if key not in keys:
                self.fault(key, f"is not a valid key{suggest(key, keys)}")

    def text(self, key: str, fits: Callable[[str], object], wanted: str, *, needed: bool = True) -> str:
        value = self._table.get(key)
        if value is None:
            if needed:
                self.fault(key, f"is missing; expected {wanted}")
            return ""
        if not isinstance(value, str) or not fits(value):
            self.fault(key, f"must be {wanted}, got {value!r:.120}")
            return ""
        return value

    def switch(self, key: str) -> bool:
        value = self._table.get(key, False)
        if not isinstance(value, bool):
            self.fault(key, f"must be true or false, got {value!r:.120}")
        return value is True

    def names(self, key: str, pattern: re.Pattern[str], wanted: str) -> tuple[str, ...]:
        value = self._table.get(key, [])
        if not isinstance(value, list):
            self.fault(key, f"must be a list, got {value!r:.120}")
            return ()
        names: list[str] = []
        for number, name in enumerate(value, start=1):
            if isinstance(name, str) and pattern.fullmatch(name):
                names.append(name)
            else:
                self.fault(key, f"item {number} must be {wanted}, got {name!r:.120}")
        return tuple(names)

    def table(self, key: str) -> Mapping[str, object]:
        value = self._table.get(key, {})
        if not isinstance(value, dict):
            self.fault(key, f"must be a table, got {value!r:.120}")
            return {}
        return value

    def tables(self, key: str) -> list[Mapping[str, object]]:
        value = self._table.get(key, [])
        if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
            self.fault(key, f"must be a list of tables, each starting with [[{key}]]")
            return []
        return list(value)

    def pins(self) -> dict[str, str]:
        """Return the table as distribution → version."""
        for name in self._table:
            if not _NAME.fullmatch(name):
                self.fault(name, "is not a normalised package name (a-z, 0-9 and single '-')")
        return {name: self.text(name, _is_version, "a version") for name in self._table}

    def preferences(self) -> dict[str, str]:
        """Return the table as `kind.name` → distribution."""
        for name in self._table:
            if not _COMPONENT.fullmatch(name):
                self.fault(name, "must have the form kind.name")
        return {name: self.text(name, _NAME.fullmatch, "a normalised package name") for name in self._table}
