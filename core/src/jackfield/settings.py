"""What the environment and the configuration files say. Nothing is read before somebody calls `load_settings`.

Three files are looked at: `[tool.jackfield]` of the project's `pyproject.toml` (`projects` says where that is, and what
of it counts); the user's `jackfield/config.toml` (below `$XDG_CONFIG_HOME`, or `~/.config`); and `choices.toml` beside
it, which `jackfield plugins enable` and its kin write. The environment wins over the project, the project over the
choices, these over the user's file; what any of them blocks stays blocked. A project only narrows, unless somebody has
agreed to more. Secrets come from the environment or the user's file, never from a project's, which others can read.

This module imports the standard library only: listing plugins must cost nothing.
"""

from __future__ import annotations

import os
import re
from collections import ChainMap
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

from jackfield._fitting import fits
from jackfield._localfiles import LocalFile, local_files
from jackfield.errors import ConfigError
from jackfield.errors import closest as closest  # noqa: PLC0414 - public here before
from jackfield.errors import near as near  # noqa: PLC0414
from jackfield.errors import some_of as some_of  # noqa: PLC0414
from jackfield.projects import TRUST_FOLDER, Project, answer_for, content_of, find_file, read_file

_Value = TypeVar("_Value")

ENABLED_KINDS = ("processor", "observer")
CONSIDERED_KINDS = ("parser", "sandbox")
"""Kinds of which the best component is picked; one of a foreign package is only considered if it is enabled."""
_ENVIRONMENT = "the environment"
_ALLOW_VARIABLE = "JACKFIELD_PLUGINS"
_LISTS = {"allow": _ALLOW_VARIABLE, "block": "JACKFIELD_PLUGINS_BLOCK", "enabled": "JACKFIELD_PLUGINS_ENABLED"}
_SWITCHES = {"safe": "JACKFIELD_SAFE", "strict": "JACKFIELD_PLUGINS_STRICT", "trace": "JACKFIELD_PLUGINS_TRACE"}
_VARIABLES = {**_LISTS, **_SWITCHES}
CHOICES_FILE = "choices.toml"
_TRUE = ("1", "true", "yes", "on")
_FALSE = ("", "0", "false", "no", "off")
# In whichever way TOML can spell a table's name; an escape may hide any.
_MAY_HAVE_OUR_TABLE = re.compile(rb"""tool["']?[ \t]*(?:\.[ \t]*["']?jackfield|[\]=])|\\[uU]""")


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of one process.

    Attributes:
        allow: The only distributions whose plugins may load, names normalised; None for all.
        block: Distributions, `kind.name` or `distribution/name` that never load.
        enabled: Processors and observers that act without being named in code: `processor.name` or
            `processor.distribution/name`. And `tool.distribution/*`: what the distribution offers when it is asked is
            found by its name alone.
        order: Names of processors, outermost first, where their own wishes do not say what is wanted.
        prefer: For a name that several distributions offer, which of them is meant: `kind.name` → distribution.
        safe: Load no plugin at all.
        strict: Any problem with a plugin is an error.
        trace: Print every plugin that is loaded, with its time, to stderr.
        options: The settings of what is enabled, by the name it is enabled with.
        origins: Where a rule comes from: `allow`, `safe`, `block:NAME`, `enabled:NAME` or `prefer:NAME` → a file or
            variable.
        project: What the project's file says, counted or not; None if there is none.
        unnarrowed: The same rules without what the project takes away; None if it takes nothing away. A project can
            neither choose between plugins by blocking one, nor switch off what the user has enabled: this is what
            tells.
        local: Files that are plugins, though nobody installed them.
    """

    allow: frozenset[str] | None = None
    block: frozenset[str] = frozenset()
    enabled: tuple[str, ...] = ()
    order: tuple[str, ...] = ()
    prefer: Mapping[str, str] = field(default_factory=dict)
    safe: bool = False
    strict: bool = False
    trace: bool = False
    options: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    origins: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)
    project: Project | None = field(default=None, repr=False, compare=False)
    unnarrowed: Settings | None = field(default=None, repr=False, compare=False)
    local: tuple[LocalFile, ...] = ()
    _only: frozenset[str] | None = field(default=None, repr=False, compare=False)
    _secrets: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)

    def secret(self, variable: str) -> str | None:
        """The value of a key or token, or None; the environment, as it is now, wins over the user's file."""
        if self._only is not None and variable not in self._only:
            return None
        value = os.environ.get(variable) or self._secrets.get(variable) or None
        if value is not None:
            from jackfield.secrets import learn_secret  # listing plugins needs none

            learn_secret(variable, value)
        return value

    def named_secrets(self) -> dict[str, str]:
        """Return the keys and tokens of the user's file by their names, for hiding them in texts."""
        return {name: value for name, value in self._secrets.items() if value}

    def with_secrets(self, variables: Iterable[str]) -> Settings:
        """These settings, which tell no other keys and tokens than these."""
        only = frozenset(variables)
        kept = {name: value for name, value in self._secrets.items() if name in only}
        return replace(self, _only=only, _secrets=kept)

    def options_of(self, kind: str, address: str) -> Mapping[str, object]:
        """The settings of an enabled component, by its `distribution/name`."""
        by_address = self.options.get(f"{kind}.{address}")
        return by_address if by_address is not None else self.options.get(f"{kind}.{address.rpartition('/')[2]}", {})

    def __reduce__(self) -> tuple[object, ...]:
        # A pickle would carry the secrets in clear; another process reads its own.
        shown = tuple(getattr(self, name.name) for name in fields(self) if name.name != "_secrets")
        return (_with_own_secrets, shown)

    def __copy__(self) -> Settings:
        return self

    def __deepcopy__(self, _memo: object) -> Settings:
        return self


def _with_own_secrets(*shown: Any) -> Settings:
    settings = replace(Settings(*shown), _secrets=load_settings()._secrets)
    return settings if settings._only is None else settings.with_secrets(settings._only)


def load_settings(
    environ: Mapping[str, str] | None = None,
    *,
    project_dir: Path | None = None,
    user_file: Path | None = None,
    with_project: bool = True,
) -> Settings:
    """Read the settings.

    Args:
        environ: In place of `os.environ`.
        project_dir: Where to begin looking for `pyproject.toml`, instead of the working directory.
        user_file: In place of the user's file.
        with_project: Also what the project's file says.

    Raises:
        ConfigError: A file is not TOML, or has a key that is not known; the message names file and key.
    """
    env = os.environ if environ is None else environ
    user_path = user_file or _user_folder(env) / "config.toml"
    user = _checked(_read_toml(user_path), str(user_path), _USERS_KEYS)
    choices_file = user_path.with_name(CHOICES_FILE)
    choices = read_choices(choices_file)
    project = load_project(project_dir, trusted=user_path.with_name(TRUST_FOLDER)) if with_project else None
    said = project or Project(Path(), {}, "")
    layers = {
        _ENVIRONMENT: _spelt(_from_environment(env)),
        str(said.path): _spelt(said.agreed),
        str(choices_file): _spelt(choices),
        str(user_path): _spelt(user),
    }
    local = local_files(user_path.parent, (*choices.get("local", ()), *user.get("local", ())), "user")
    settings = _merged(layers, secrets=user.get("secrets", {}), local=(*said.agreed_local, *local))
    return settings if project is None else _narrowed(settings, project)


def load_project(project_dir: Path | None = None, *, trusted: Path | None = None) -> Project | None:
    """The project's file, if there is one that says something of Jackfield.

    Args:
        project_dir: Where to begin looking, instead of the working directory.
        trusted: The folder in which it is kept to which projects somebody agreed.

    Raises:
        ConfigError: As `load_settings`.
    """
    try:
        path = find_file(Path.cwd() if project_dir is None else project_dir)
        if path is None:
            return None
        raw, foreign = read_file(path)
    except OSError:  # the working directory has gone, or the file may not be read
        return None
    table = _project_table(path, raw)
    if not table:
        return None
    local = local_files(path.parent, table.get("local", ()), "project")
    content = content_of(table, local)
    return Project(path, table, content, answer_for(trusted or trust_path(), path, content), foreign, local)


def trust_path(environ: Mapping[str, str] | None = None) -> Path:
    """The folder in which it is kept to which projects somebody agreed."""
    return _user_folder(environ) / TRUST_FOLDER


def choices_path(environ: Mapping[str, str] | None = None) -> Path:
    """The file that commands write choices into."""
    return _user_folder(environ) / CHOICES_FILE


def read_choices(path: Path) -> dict[str, Any]:
    """The table in the file of choices, empty if there is none.

    Raises:
        ConfigError: As `load_settings`.
    """
    return _checked(_read_toml(path), str(path))


def _spelt(table: Mapping[str, Any]) -> dict[str, Any]:
    """What a file or the environment says, each name in its one spelling."""
    return {key: _SPELLINGS[key](value) if key in _SPELLINGS else value for key, value in table.items()}


def _merged(
    layers: Mapping[str, Mapping[str, Any]], *, secrets: Mapping[str, str], local: tuple[LocalFile, ...]
) -> Settings:
    """One whole out of layers by origin, the strongest first."""
    tables = [*layers.values()]
    first: Mapping[str, Any] = ChainMap(*map(dict, tables))
    origins = _joined(_origins(layer, origin) for origin, layer in layers.items())
    return Settings(
        allow=first.get("allow"),
        block=frozenset(_all("block", tables)),
        enabled=tuple(dict.fromkeys(_all("enabled", tables))),
        order=tuple(first.get("order", ())),
        prefer=_joined(table.get("prefer", {}) for table in tables),
        safe="safe" in origins,
        strict=bool(first.get("strict")),
        trace=bool(first.get("trace")),
        options=_joined(table.get("settings", {}) for table in tables),
        origins=origins,
        local=local,
        _secrets=secrets,
    )


def _all(key: str, tables: Iterable[Mapping[str, Iterable[str]]]) -> Iterable[str]:
    return chain.from_iterable(table.get(key, ()) for table in tables)


def _joined(tables: Iterable[Mapping[str, _Value]]) -> dict[str, _Value]:
    """All entries of tables; what several have is that of the first."""
    return dict(ChainMap(*map(dict, tables)))


def _origins(layer: Mapping[str, Any], origin: str) -> dict[str, str]:
    """What a layer says, as `Settings.origins` calls it, with where that is said."""
    said = [key for key in ("allow", "safe") if layer.get(key, False) is not False]
    said += [f"{key}:{name}" for key in ("block", "enabled", "prefer") for name in layer.get(key, ())]
    return {one: _VARIABLES[one.partition(":")[0]] if origin == _ENVIRONMENT else origin for one in said}


def _narrowed(settings: Settings, project: Project) -> Settings:
    """The rules without what a project takes away."""
    by = _spelt(project.narrowing)
    if not by:
        return replace(settings, project=project)
    origin = str(project.path)
    origins = {**_origins(by, origin), **settings.origins}
    allow = settings.allow
    # What is said for this one process is not the project's to take back.
    if "allow" in by and origins["allow"] != _ALLOW_VARIABLE:
        allow = by["allow"] if allow is None else allow & by["allow"]
        origins["allow"] = " and ".join(dict.fromkeys((origins["allow"], origin)))
    return replace(
        settings,
        allow=allow,
        block=settings.block.union(by.get("block", ())),
        safe="safe" in origins,
        strict=settings.strict or bool(by.get("strict")),
        origins=origins,
        project=project,
        unnarrowed=replace(settings, project=project),
    )


def normalise(distribution: str) -> str:
    """A distribution's name in its one spelling (lower case, runs of `-_.` as one `-`). Source: PEP 503."""
    return re.sub(r"[-_.]+", "-", distribution.strip()).lower()


def enabled_form(name: str) -> str:
    """Give what is enabled in its one spelling.

    That is `processor.name` or `processor.distribution/name`, `parser.distribution/name` or `tool.distribution/*`.

    Raises:
        ConfigError: It does not begin with a kind that can be enabled.
    """
    kind, _, address = name.strip().partition(".")
    distribution, slash, component = address.rpartition("/")
    acts = kind in ENABLED_KINDS and component not in ("", "*")
    considered = kind in CONSIDERED_KINDS and distribution and component not in ("", "*")
    asks = kind not in ENABLED_KINDS and component == "*" and distribution and kind.isidentifier()
    if not (acts or considered or asks):
        actors = [f"{kind}.NAME" for kind in ENABLED_KINDS]
        *forms, last = actors + [f"{kind}.PACKAGE/NAME" for kind in CONSIDERED_KINDS]
        raise ConfigError(
            f"{name!r} cannot be enabled: write {', '.join(forms)} or {last}; name other kinds in code to use them"
        )
    return f"{kind}.{normalise(distribution)}/{component}" if slash else f"{kind}.{component}"


def _forms(names: Iterable[str]) -> list[str]:
    """All that blocked names may mean: `tool.search` is a component, and also a spelling of the distribution
    tool-search."""
    forms = []
    for name in map(str.strip, names):
        distribution, slash, component = name.partition("/")
        forms += [f"{normalise(distribution)}/{component}"] if slash else [name, normalise(name)]
    return forms


_SPELLINGS: Mapping[str, Callable[[Any], Any]] = {
    "allow": lambda names: frozenset(map(normalise, names)),
    "block": _forms,
    "enabled": lambda names: [*map(enabled_form, names)],
    "settings": lambda given: {enabled_form(name): one for name, one in given.items()},
}


def _from_environment(env: Mapping[str, str]) -> dict[str, object]:
    lists = {key: _names(env[variable]) for key, variable in _LISTS.items() if variable in env}
    switches = {key: _flag(env[variable], variable) for key, variable in _SWITCHES.items() if variable in env}
    return {**lists, **switches}


def _names(text: str) -> list[str]:
    return [*filter(None, map(str.strip, text.split(",")))]


def _flag(text: str, variable: str) -> bool:
    value = text.strip().lower()
    if value not in _TRUE + _FALSE:
        raise ConfigError(f"{variable} is a switch: set it to 1 or 0, not {text!r}")
    return value in _TRUE


def _user_folder(environ: Mapping[str, str] | None) -> Path:
    env = os.environ if environ is None else environ
    base = env.get("XDG_CONFIG_HOME") or os.path.join(env.get("HOME") or os.path.expanduser("~"), ".config")  # noqa: PTH111, PTH118
    return Path(base) / "jackfield"


def _project_table(path: Path, raw: bytes) -> dict[str, Any]:
    if b"jackfield" not in raw or not _MAY_HAVE_OUR_TABLE.search(raw):
        return {}  # most projects at most depend on Jackfield: spare them the parser
    tool = _parsed(raw, path).get("tool", {})
    if not isinstance(tool, dict):
        raise ConfigError(f"{path}: 'tool' must be a table")
    return _checked(tool.get("jackfield", {}), f"{path} [tool.jackfield]")


def _read_toml(path: Path) -> dict[str, object]:
    try:
        raw = path.read_bytes()
    except OSError:
        return {}
    return _parsed(raw, path)


def _parsed(raw: bytes, path: Path) -> dict[str, object]:
    import tomllib

    try:
        return tomllib.loads(raw.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not TOML: {error}") from error
    except RecursionError:
        raise ConfigError(f"{path} is nested too deeply to be read") from None


_KEYS: Mapping[str, tuple[str, object]] = {
    **dict.fromkeys(("allow", "block", "enabled", "local", "order"), ("a list of names", list[str])),
    **dict.fromkeys(("safe", "strict"), ("true or false", bool)),
    "prefer": ("a table of texts", dict[str, str]),
    "settings": ("a table with a table for each component", dict[str, dict[str, Any]]),
}
"""What the value of each setting in a file must be, in words and as a type."""
_USERS_KEYS = {**_KEYS, "secrets": _KEYS["prefer"]}


def _checked(table: object, where: str, keys: Mapping[str, tuple[str, object]] = _KEYS) -> dict[str, Any]:
    if not isinstance(table, dict):
        raise ConfigError(f"{where} must be a table")
    if "secrets" in table and "secrets" not in keys:
        raise ConfigError(f"{where} has secrets, but others can read a project: move them to the user's config.toml")
    for key, value in table.items():
        if key not in keys:
            raise ConfigError(f"{where}: unknown setting {key!r}{closest(key, keys)}")
        wanted, hint = keys[key]
        if not fits(value, hint):
            raise ConfigError(f"{where}: {key!r} must be {wanted}")
    return table
