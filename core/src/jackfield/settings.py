"""Settings from the environment and configuration files. Only `load_settings` reads them.

Settings come from three files: `[tool.jackfield]` in the project's `pyproject.toml`, the user's `jackfield/config.toml`
(in `$XDG_CONFIG_HOME` or `~/.config`), and `choices.toml` in the same directory. The `projects` module finds the
project's file and determines which parts apply. Commands such as `jackfield plugins enable` write `choices.toml`. The
environment overrides the project, the project overrides the choices, and the choices override the user's file. A name
that any file or the environment blocks stays blocked. A project can only add restrictions unless the user has approved
more. Secrets come from the environment, the user's file or the keys stored by `jackfield keys`, but never from the
project's file, because others can read it.

This module imports only the standard library, because listing plugins must be cheap.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from jackfield._fitting import fits
from jackfield._folders import user_folder
from jackfield._localfiles import LocalFile, local_files
from jackfield.defaults import LOG_OBSERVER
from jackfield.errors import ConfigError
from jackfield.projects import TRUST_FOLDER, Project, answer_for, content_of, find_file, read_file
from jackfield.suggestions import suggest

if TYPE_CHECKING:
    from jackfield.storedkeys import StoredKeys

_Value = TypeVar("_Value")

ENABLED_KINDS = ("processor", "observer")
CONSIDERED_KINDS = ("parser", "sandbox")
"""Kinds whose best component may be selected. Components of third-party packages must be enabled for this."""
_CONFIGURED_KINDS = (*ENABLED_KINDS, "server", "store", "embedder", "parser")
"""Kinds that may have settings in a file, because their components act without being named in code or agent files."""
_ENVIRONMENT = "the environment"
_ALLOW_VARIABLE = "JACKFIELD_PLUGINS"
_LISTS = {"allow": _ALLOW_VARIABLE, "block": "JACKFIELD_PLUGINS_BLOCK", "enabled": "JACKFIELD_PLUGINS_ENABLED"}
_SWITCHES = {"safe": "JACKFIELD_SAFE", "strict": "JACKFIELD_PLUGINS_STRICT", "trace": "JACKFIELD_PLUGINS_TRACE"}
RECORD_VARIABLE = "JACKFIELD_RECORD"
LOG_VARIABLE = "JACKFIELD_LOG"
_VARIABLES = {**_LISTS, **_SWITCHES}
CONFIG_FILE = "config.toml"
CHOICES_FILE = "choices.toml"
KEYS_FILE = "keys.json"
MODELS_FILE = "models.txt"
_TRUE = ("1", "true", "yes", "on")
_FALSE = ("", "0", "false", "no", "off")
# All spellings of the table's name in TOML. Escapes may hide any of them.
_MAY_HAVE_OUR_TABLE = re.compile(rb"""tool["']?[ \t]*(?:\.[ \t]*["']?jackfield|[\]=])|\\[uU]""")


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings for one process.

    Attributes:
        allow: The normalised names of the only distributions whose plugins may load, or None for all distributions.
        block: Plugins that never load: distributions, `kind.name`, `distribution/name` or
            `kind.distribution/name`.
        enabled: Processors and observers that are active without being named in code: `processor.name` or
            `processor.distribution/name`. If there is an entry `tool.distribution/*`, names without a distribution also
            match the components that this distribution lists at run time.
        order: Names of processors, outermost first, for use if nothing else determines the order.
        prefer: Maps `kind.name` to the preferred distribution for names that several distributions provide.
        safe: True to load no plugins at all.
        strict: True to treat any problem with a plugin as an error.
        trace: True to print every loaded plugin and its load time to stderr.
        record: True to record runs and chats started on the command line if a store is installed. A table can also
            contain the store's settings and, if it is not the default store, its name.
        options: Settings for processors, observers, servers, stores, embedders and parsers, keyed by `kind.name` or
            `kind.distribution/name`.
        origins: The file or variable that sets each rule: `allow`, `safe`, `block:NAME`, `enabled:NAME`, `prefer:NAME`.
        project: The project's file, even if it does not apply, or None if there is no project file.
        unnarrowed: The rules without the project's restrictions, or None if the project has no restrictions.
            `unnarrowed` ensures that a project can neither choose between plugins by blocking one of them nor disable
            anything that the user has enabled.
        local: Files that serve as plugins without being installed.
    """

    allow: frozenset[str] | None = None
    block: frozenset[str] = frozenset()
    enabled: tuple[str, ...] = ()
    order: tuple[str, ...] = ()
    prefer: Mapping[str, str] = field(default_factory=dict)
    safe: bool = False
    strict: bool = False
    trace: bool = False
    record: bool | Mapping[str, object] = field(default=True, repr=False)
    options: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    origins: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)
    project: Project | None = field(default=None, repr=False, compare=False)
    unnarrowed: Settings | None = field(default=None, repr=False, compare=False)
    local: tuple[LocalFile, ...] = ()
    _only: frozenset[str] | None = field(default=None, repr=False, compare=False)
    _keys_file: Path | None = field(default=None, repr=False, compare=False)
    _secrets: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)

    def secret(self, variable: str) -> str | None:
        """Return the key or token in a variable, or None if it is not set.

        The environment, which is read on each call, overrides the user's file. The user's file overrides the keys
        stored by `jackfield keys`.

        Raises:
            ConfigError: The stored keys cannot be read.
        """
        if self._only is not None and variable not in self._only:
            return None
        value = os.environ.get(variable) or self._secrets.get(variable) or self._stored_key(variable)
        if value is not None:
            from jackfield.secrets import learn_secret  # listing plugins does not need secrets

            learn_secret(variable, value)
        return value

    def named_secrets(self) -> dict[str, str]:
        """Return the keys and tokens in the user's files by name, for hiding them in text."""
        named = dict(self._secrets)
        if stored := self._stored_keys():
            allowed = stored.in_file().items()
            named = {**{name: key for name, key in allowed if self._only is None or name in self._only}, **named}
        return {name: value for name, value in named.items() if value}

    def _stored_key(self, variable: str) -> str | None:
        stored = self._stored_keys()
        return stored.get(variable) if stored else None

    def _stored_keys(self) -> StoredKeys | None:
        """Return the stored keys, or None if the user has never stored a key. The check costs one disk access."""
        if self._keys_file is None or not self._keys_file.exists():
            return None
        from jackfield.storedkeys import StoredKeys

        return StoredKeys(self._keys_file)

    def with_secrets(self, variables: Iterable[str]) -> Settings:
        """Return a copy of the settings that can only access these keys and tokens."""
        only = frozenset(variables)
        kept = {name: value for name, value in self._secrets.items() if name in only}
        return replace(self, _only=only, _secrets=kept)

    def options_of(self, kind: str, address: str) -> Mapping[str, object]:
        """Return the settings of the component with this `distribution/name`."""
        by_address = self.options.get(f"{kind}.{address}")
        return by_address if by_address is not None else self.options.get(f"{kind}.{address.rpartition('/')[2]}", {})

    def __reduce__(self) -> tuple[object, ...]:
        # A pickle would contain the secrets in plain text. Other processes read them from their own files.
        shown = tuple(getattr(self, name.name) for name in fields(self) if name.name != "_secrets")
        return (_with_own_secrets, shown)

    def __copy__(self) -> Settings:
        return self

    def __deepcopy__(self, _memo: object) -> Settings:
        return self


def _with_own_secrets(*fields_shown: Any) -> Settings:
    settings = replace(Settings(*fields_shown), _secrets=load_settings()._secrets)
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
        environ: Environment variables to use instead of `os.environ`.
        project_dir: The directory where the search for `pyproject.toml` starts. Defaults to the working directory.
        user_file: A file to read instead of the user's `config.toml`.
        with_project: True to read the project's file as well.

    Raises:
        ConfigError: A file is not valid TOML or contains an unknown key. The message names the file and the key.
    """
    env = os.environ if environ is None else environ
    user_path = user_file or config_path(env)
    user = _check(_read_toml(user_path), str(user_path), _USERS_KEYS)
    choices_file = user_path.with_name(CHOICES_FILE)
    choices = read_choices(choices_file)
    project = load_project(project_dir, trusted=user_path.with_name(TRUST_FOLDER)) if with_project else None
    agreed = project or Project(Path(), {}, "")
    layers = {
        _ENVIRONMENT: _normalise_names(_from_environment(env)),
        str(agreed.path): _normalise_names(agreed.agreed),
        str(choices_file): _normalise_names(choices),
        str(user_path): _normalise_names(user),
    }
    local = local_files(user_path.parent, (*choices.get("local", ()), *user.get("local", ())), "user")
    settings = _merge(layers, secrets=user.get("secrets", {}), local=(*agreed.agreed_local, *local))
    settings = replace(settings, _keys_file=user_path.with_name(KEYS_FILE))
    return settings if project is None else _narrow(settings, project)


def load_project(project_dir: Path | None = None, *, trusted: Path | None = None) -> Project | None:
    """Read the project's file. Return None if the file has no Jackfield settings.

    Args:
        project_dir: The directory where the search starts. Defaults to the working directory.
        trusted: The directory that records trusted projects. Defaults to the user's directory.

    Raises:
        ConfigError: As for `load_settings`.
    """
    try:
        path = find_file(Path.cwd() if project_dir is None else project_dir)
        if path is None:
            return None
        raw, foreign = read_file(path)
    except OSError:  # the working directory is gone, or the file is not readable
        return None
    table = _project_table(path, raw)
    if not table:
        return None
    local = local_files(path.parent, table.get("local", ()), "project")
    content = content_of(table, local)
    return Project(path, table, content, answer_for(trusted or trust_path(), path, content), foreign, local)


def trust_path(environ: Mapping[str, str] | None = None) -> Path:
    """Return the directory that records trusted projects."""
    return user_folder(environ) / TRUST_FOLDER


def config_path(environ: Mapping[str, str] | None = None) -> Path:
    """Return the path of the user's settings file, which includes secrets."""
    return user_folder(environ) / CONFIG_FILE


def choices_path(environ: Mapping[str, str] | None = None) -> Path:
    """Return the path of the file that stores choices made with commands."""
    return user_folder(environ) / CHOICES_FILE


def keys_path(environ: Mapping[str, str] | None = None) -> Path:
    """Return the path of the file that lists the keys stored by `jackfield keys`."""
    return user_folder(environ) / KEYS_FILE


def models_path(environ: Mapping[str, str] | None = None) -> Path:
    """Return the path of the file with model names, one per line, that shells use to complete `--model`."""
    return user_folder(environ) / MODELS_FILE


def read_choices(path: Path) -> dict[str, Any]:
    """Read the choices file as a table. If there is no file, return an empty table.

    Raises:
        ConfigError: As for `load_settings`.
    """
    return _check(_read_toml(path), str(path))


def _normalise_names(table: Mapping[str, Any]) -> dict[str, Any]:
    """Return a table with all names normalised."""
    return {key: _SPELLINGS[key](value) if key in _SPELLINGS else value for key, value in table.items()}


def _merge(
    layers: Mapping[str, Mapping[str, Any]], *, secrets: Mapping[str, str], local: tuple[LocalFile, ...]
) -> Settings:
    """Merge layers of settings, highest priority first."""
    tables = list(layers.values())
    first: Mapping[str, Any] = _join(tables)
    origins = _join([_origins(layer, origin) for origin, layer in layers.items()])
    return Settings(
        allow=first.get("allow"),
        block=frozenset(_all("block", tables)),
        enabled=tuple(dict.fromkeys(_all("enabled", tables))),
        order=tuple(first.get("order", ())),
        prefer=_join([table.get("prefer", {}) for table in tables]),
        safe="safe" in origins,
        strict=bool(first.get("strict")),
        trace=bool(first.get("trace")),
        record=_merge_record([table["record"] for table in tables if "record" in table]),
        options=_join([table.get("settings", {}) for table in tables]),
        origins=origins,
        local=local,
        _secrets=secrets,
    )


def _merge_record(values: Sequence[bool | Mapping[str, object]]) -> bool | Mapping[str, object]:
    """Return the first value. If this value is True, a table from a lower-priority layer still applies."""
    if values and values[0] is True:
        return next((value for value in values if isinstance(value, Mapping)), True)
    return values[0] if values else True


def _all(key: str, tables: Iterable[Mapping[str, Iterable[str]]]) -> Iterable[str]:
    return chain.from_iterable(table.get(key, ()) for table in tables)


def _join(tables: Sequence[Mapping[str, _Value]]) -> dict[str, _Value]:
    """Merge tables. For each key, the first table that contains it wins."""
    joined: dict[str, _Value] = {}
    for table in reversed(tables):
        joined.update(table)
    return joined


def _origins(layer: Mapping[str, Any], origin: str) -> dict[str, str]:
    """Map the rules of a layer, named as in `Settings.origins`, to the layer's file or variable."""
    rules = [key for key in ("allow", "safe") if layer.get(key, False) is not False]
    rules += [f"{key}:{name}" for key in ("block", "enabled", "prefer") for name in layer.get(key, ())]
    if origin != _ENVIRONMENT:
        return dict.fromkeys(rules, origin)
    by_log = f"enabled:{LOG_OBSERVER}"
    return {rule: LOG_VARIABLE if rule == by_log else _VARIABLES[rule.partition(":")[0]] for rule in rules}


def _narrow(settings: Settings, project: Project) -> Settings:
    """Apply a project's restrictions."""
    rules = _normalise_names(project.narrowing)
    if not rules:
        return replace(settings, project=project)
    origin = str(project.path)
    origins = {**_origins(rules, origin), **settings.origins}
    allow = settings.allow
    # The project cannot revoke a rule for this process.
    if "allow" in rules and origins["allow"] != _ALLOW_VARIABLE:
        allow = rules["allow"] if allow is None else allow & rules["allow"]
        origins["allow"] = " and ".join(dict.fromkeys((origins["allow"], origin)))
    return replace(
        settings,
        allow=allow,
        block=settings.block.union(rules.get("block", ())),
        safe="safe" in origins,
        strict=settings.strict or bool(rules.get("strict")),
        origins=origins,
        project=project,
        unnarrowed=replace(settings, project=project),
    )


def normalise(distribution: str) -> str:
    """Normalise a distribution name: convert it to lower case and replace each run of `-_.` with `-`.

    Source: PEP 503.
    """
    return re.sub(r"[-_.]+", "-", distribution.strip()).lower()


def enabled_form(name: str) -> str:
    """Normalise an entry of `enabled`.

    Valid entries are `processor.name`, `processor.distribution/name`, `parser.distribution/name` and
    `tool.distribution/*`.

    Raises:
        ConfigError: The kind cannot be enabled.
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
            f"{name!r} cannot be enabled: use {', '.join(forms)} or {last}; plugins of other kinds must be named in "
            "code"
        )
    return f"{kind}.{normalise(distribution)}/{component}" if slash else f"{kind}.{component}"


def settings_form(name: str) -> str:
    """Normalise the name of a settings table: a processor, observer, server, store, embedder or parser.

    Raises:
        ConfigError: Components of this kind cannot be configured in files.
    """
    kind, _, address = name.strip().partition(".")
    distribution, slash, component = address.rpartition("/")
    if kind not in _CONFIGURED_KINDS or component in ("", "*"):
        *forms, last = (f"{one}.NAME" for one in _CONFIGURED_KINDS)
        raise ConfigError(
            f"{name!r} cannot be configured in a settings file: use {', '.join(forms)} or {last}; configure other "
            "kinds in code or in an agent file"
        )
    return f"{kind}.{normalise(distribution)}/{component}" if slash else f"{kind}.{component}"


def block_forms(names: Iterable[str]) -> list[str]:
    """Return all possible meanings of the names in `block`.

    `tool.search` may be a component or the distribution tool-search. `tool.acme/search` may be a tool of acme, or
    anything called search of tool-acme.
    """
    forms = []
    for name in names:
        distribution, slash, component = name.strip().partition("/")
        if not slash:
            forms += [distribution, normalise(distribution)]
            continue
        forms.append(f"{normalise(distribution)}/{component}")
        kind, dot, rest = distribution.partition(".")
        forms += [f"{kind}.{normalise(rest)}/{component}"] if dot else []
    return forms


_SPELLINGS: Mapping[str, Callable[[Any], Any]] = {
    "allow": lambda names: frozenset(normalise(name) for name in names),
    "block": block_forms,
    "enabled": lambda names: [enabled_form(name) for name in names],
    "settings": lambda tables: {settings_form(name): table for name, table in tables.items()},
}


def _from_environment(env: Mapping[str, str]) -> dict[str, object]:
    lists = {key: _names(env[variable]) for key, variable in _LISTS.items() if variable in env}
    switches = {key: _flag(env[variable], variable) for key, variable in _SWITCHES.items() if variable in env}
    if env.get(RECORD_VARIABLE):  # an empty variable does not count, because it must not disable recording
        switches["record"] = _flag(env[RECORD_VARIABLE], RECORD_VARIABLE)
    table: dict[str, object] = {**lists, **switches}
    if env.get(LOG_VARIABLE) and (log := _log_settings(env[LOG_VARIABLE])):
        table["enabled"] = [*lists.get("enabled", ()), LOG_OBSERVER]
        table["settings"] = {LOG_OBSERVER: log}
    return table


def _log_settings(text: str) -> dict[str, str]:
    """Parse `JACKFIELD_LOG` (a level, optionally followed by `,json`) into log settings. '' yields {}."""
    level, _, form = text.lower().replace(" ", "").partition(",")
    if level in _FALSE and not form:
        return {}
    if level not in ("info", "debug") or form not in ("", "text", "json"):
        raise ConfigError(
            f"{LOG_VARIABLE} must be info or debug, optionally followed by ,json for JSON lines, got {text!r}"
        )
    return {"level": level, "format": form or "text"}


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _flag(text: str, variable: str) -> bool:
    value = text.strip().lower()
    if value not in _TRUE + _FALSE:
        raise ConfigError(f"{variable} must be 1 or 0, got {text!r}")
    return value in _TRUE


def _project_table(path: Path, raw: bytes) -> dict[str, Any]:
    if b"jackfield" not in raw or not _MAY_HAVE_OUR_TABLE.search(raw):
        return {}  # most projects only depend on Jackfield, and need not be parsed
    tool = _parse_toml(raw, path).get("tool", {})
    if not isinstance(tool, dict):
        raise ConfigError(f"{path}: 'tool' must be a table")
    return _check(tool.get("jackfield", {}), f"{path} [tool.jackfield]")


def _read_toml(path: Path) -> dict[str, object]:
    try:
        raw = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        if isinstance(error, PermissionError) and not os.access(path.parent, os.X_OK):
            return {}  # another user's home, which contains no file of this user
        # Its rules may forbid plugins that would otherwise load.
        raise ConfigError(f"{path} cannot be read: {error.strerror or error}") from error
    return _parse_toml(raw, path)


def _parse_toml(raw: bytes, path: Path) -> dict[str, object]:
    import tomllib

    try:
        return tomllib.loads(raw.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not UTF-8 text (byte {error.start}): save it as UTF-8") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path} is not valid TOML: {error}") from error
    except RecursionError:
        raise ConfigError(f"{path} is nested too deeply") from None


_KEYS: Mapping[str, tuple[str, object]] = {
    **dict.fromkeys(("allow", "block", "enabled", "local", "order"), ("a list of names", list[str])),
    **dict.fromkeys(("safe", "strict"), ("true or false", bool)),
    "prefer": ("a table of strings", dict[str, str]),
    "settings": ("a table that contains one table per component", dict[str, dict[str, Any]]),
}
"""The types of the settings in a file, in words and as annotations."""
_USERS_KEYS = {**_KEYS, "secrets": _KEYS["prefer"], "record": ("true, false or a table", bool | dict[str, Any])}


def _check(table: object, where: str, keys: Mapping[str, tuple[str, object]] = _KEYS) -> dict[str, Any]:
    if not isinstance(table, dict):
        raise ConfigError(f"{where} must be a table")
    if "secrets" in table and "secrets" not in keys:
        raise ConfigError(
            f"{where} contains secrets, but project files can be read by others: move the secrets to your user-level "
            "config.toml"
        )
    for key, value in table.items():
        if key not in keys:
            remedy = "; put keys under [secrets]" if "secrets" in keys and key.isupper() else suggest(key, keys)
            raise ConfigError(f"{where}: unknown setting {key!r}{remedy}")
        wanted, hint = keys[key]
        if not fits(value, hint):
            raise ConfigError(f"{where}: {key!r} must be {wanted}")
    return table
