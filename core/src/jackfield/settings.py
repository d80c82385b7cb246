"""What the environment and the configuration files say. Nothing is read before somebody calls `load_settings`.

Two files are looked at: `[tool.jackfield]` of the project's `pyproject.toml`, in the working directory or above it,
and the user's `jackfield/config.toml` (below `$XDG_CONFIG_HOME`, or `~/.config`). The environment wins over both, the
project over the user; what any of them blocks stays blocked. Secrets come from the environment or the user's file,
never from a project's, which others can read.

This module imports the standard library only: listing plugins must cost nothing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from jackfield.errors import ConfigError

_KNOWN_KEYS = ("allow", "block", "enabled", "prefer", "safe", "strict")
_TRUE = ("1", "true", "yes", "on")
_FALSE = ("", "0", "false", "no", "off")


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of one process.

    Attributes:
        allow: The only distributions whose plugins may load, names normalised; None for all.
        block: Distributions, `kind.name` or `distribution/name` that never load.
        enabled: Processors, observers and hooks that act without being named in code, as addresses.
        prefer: For a name that several distributions offer, which of them is meant: `kind.name` → distribution.
        safe: Load no plugin at all.
        strict: Any problem with a plugin is an error.
        trace: Print every plugin that is loaded, with its time, to stderr.
    """

    allow: frozenset[str] | None = None
    block: frozenset[str] = frozenset()
    enabled: tuple[str, ...] = ()
    prefer: Mapping[str, str] = field(default_factory=dict)
    safe: bool = False
    strict: bool = False
    trace: bool = False
    _secrets: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)

    def secret(self, variable: str) -> str | None:
        """The value of a key or token, or None; the environment, as it is now, wins over the user's file."""
        return os.environ.get(variable) or self._secrets.get(variable) or None

    def __reduce__(self) -> tuple[Any, ...]:
        # A pickle would carry the secrets in clear; another process reads its own.
        shown = tuple(getattr(self, name.name) for name in fields(self) if name.name != "_secrets")
        return (_with_own_secrets, shown)

    def __copy__(self) -> Settings:
        return self

    def __deepcopy__(self, _memo: object) -> Settings:
        return self


def _with_own_secrets(*shown: Any) -> Settings:
    return replace(Settings(*shown), _secrets=load_settings()._secrets)


def load_settings(
    environ: Mapping[str, str] | None = None,
    *,
    project_dir: Path | None = None,
    user_file: Path | None = None,
) -> Settings:
    """Read the settings.

    Args:
        environ: In place of `os.environ`.
        project_dir: Where to begin looking for `pyproject.toml`, instead of the working directory.
        user_file: In place of the user's file.

    Raises:
        ConfigError: A file is not TOML, or has a key that is not known; the message names file and key.
    """
    env = os.environ if environ is None else environ
    user_path = user_file or _user_file(env)
    user = _checked(_read_toml(user_path), str(user_path), more=("secrets",))
    project_path = _project_file(Path.cwd() if project_dir is None else project_dir)
    project: dict[str, Any] = {}
    if project_path:
        project = _project_table(project_path)
    layers = (_from_environment(env), project, user)
    first = {key: layer[key] for layer in reversed(layers) for key in layer}
    allow = first.get("allow")
    return Settings(
        allow=None if allow is None else frozenset(map(normalise, allow)),
        block=frozenset(form for layer in layers for name in layer.get("block", ()) for form in _forms(name)),
        enabled=tuple(first.get("enabled", ())),
        prefer={**user.get("prefer", {}), **project.get("prefer", {})},
        safe=any(layer.get("safe", False) for layer in layers),
        strict=bool(first.get("strict", False)),
        trace=bool(first.get("trace", False)),
        _secrets={str(k): str(v) for k, v in user.get("secrets", {}).items()},
    )


def normalise(distribution: str) -> str:
    """A distribution's name in its one spelling (lower case, runs of `-_.` as one `-`). Source: PEP 503."""
    return re.sub(r"[-_.]+", "-", distribution.strip()).lower()


def _forms(name: str) -> tuple[str, ...]:
    """All that a name may mean: `tool.search` is a component, and also a spelling of the distribution tool-search."""
    distribution, slash, component = name.strip().partition("/")
    if slash:
        return (f"{normalise(distribution)}/{component}",)
    return (name.strip(), normalise(name))


def _from_environment(env: Mapping[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if "JACKFIELD_PLUGINS" in env:
        found["allow"] = _names(env["JACKFIELD_PLUGINS"])
    if "JACKFIELD_PLUGINS_BLOCK" in env:
        found["block"] = _names(env["JACKFIELD_PLUGINS_BLOCK"])
    for key, variable in (
        ("safe", "JACKFIELD_SAFE"),
        ("strict", "JACKFIELD_PLUGINS_STRICT"),
        ("trace", "JACKFIELD_PLUGINS_TRACE"),
    ):
        if variable in env:
            found[key] = _flag(env[variable], variable)
    return found


def _names(text: str) -> list[str]:
    return [name for name in (part.strip() for part in text.split(",")) if name]


def _flag(text: str, variable: str) -> bool:
    value = text.strip().lower()
    if value not in _TRUE + _FALSE:
        raise ConfigError(f"{variable} is a switch: set it to 1 or 0, not {text!r}")
    return value in _TRUE


def _user_file(env: Mapping[str, str]) -> Path:
    base = env.get("XDG_CONFIG_HOME") or os.path.join(env.get("HOME") or os.path.expanduser("~"), ".config")  # noqa: PTH111, PTH118
    return Path(base) / "jackfield" / "config.toml"


def _project_file(start: Path) -> Path | None:
    for folder in (start, *start.parents):
        candidate = folder / "pyproject.toml"
        if candidate.is_file():
            return candidate
    return None


def _project_table(path: Path) -> dict[str, Any]:
    tool = _read_toml(path).get("tool", {})
    if not isinstance(tool, dict):
        raise ConfigError(f"{path}: 'tool' must be a table")
    return _checked(tool.get("jackfield", {}), f"{path} [tool.jackfield]")


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        raw = path.read_bytes()
    except OSError:
        return {}
    if b"jackfield" not in raw and path.name == "pyproject.toml":
        return {}  # most projects say nothing about Jackfield: spare them the parser
    import tomllib

    try:
        return tomllib.loads(raw.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not TOML: {error}") from error


def _checked(table: Any, where: str, more: tuple[str, ...] = ()) -> dict[str, Any]:
    if not isinstance(table, dict):
        raise ConfigError(f"{where} must be a table")
    if "secrets" in table and not more:
        raise ConfigError(f"{where} has secrets: others can read a project. Move them to the user's config.toml")
    for key, value in table.items():
        if key not in (*_KNOWN_KEYS, *more):
            raise ConfigError(f"{where}: unknown key {key!r}{closest(key, (*_KNOWN_KEYS, *more))}")
        _check_shape(key, value, where)
    return table


def _check_shape(key: str, value: Any, where: str) -> None:
    if key in ("allow", "block", "enabled"):
        fits = isinstance(value, list) and all(isinstance(name, str) for name in value)
        wanted = "a list of names"
    elif key in ("prefer", "secrets"):
        fits = isinstance(value, dict) and all(isinstance(v, str) for v in value.values())
        wanted = "a table of texts"
    else:
        fits, wanted = isinstance(value, bool), "true or false"
    if not fits:
        raise ConfigError(f"{where}: {key!r} must be {wanted}")


def closest(name: str, known: tuple[str, ...] | list[str]) -> str:
    """The rest of an error's sentence: what is close to `name`, else what there is."""
    import difflib

    close = difflib.get_close_matches(name, known, n=3, cutoff=0.6)
    if close:
        return f"; did you mean {' or '.join(map(repr, close))}?"
    return f"; known: {', '.join(sorted(known)) or 'nothing'}"
