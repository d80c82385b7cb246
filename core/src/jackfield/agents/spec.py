"""Agents as data: files that say what an agent is, in YAML, TOML or JSON, or a Python file that makes one.

A Python file is read and never run: what it needs must be known before it can run.
"""

from __future__ import annotations

import ast
import json
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jackfield.config import AgentConfig
from jackfield.errors import ConfigError
from jackfield.plugins.source import Constants, UnknownValueError, name_called
from jackfield.tracebacks import LocalsForgotten

MAX_FILE_BYTES = 1 << 20
# What stands in a call by position, of the functions and classes that take the parts of an agent.
_POSITIONS: Mapping[str, tuple[str, ...]] = {"create_agent": ("agent",), "get_chat_model": ("llm",)}
_CLASS_POSITIONS = ("function_list", "llm", "system_message")
# Of a model's configuration: what a computed value stands for, and where it cannot be done without.
_STAND_INS = {"model": "computed", **dict.fromkeys(("api_base", "base_url", "model_server"), "http://computed")}
_DECISIVE = ("model_type", "processors", "generate_cfg")
_PARTS = frozenset(("agent", "llm", "function_list", "files", "rag_cfg", "extra_generate_cfg", "observers"))


@dataclass(frozen=True, slots=True)
class PythonUses:
    """What a Python file makes of Jackfield, as far as it can be told without running it.

    Attributes:
        parts: For each call that makes an agent or a model, what it is given.
        packages: The packages of plugins that it imports itself.
        unknown: What only running it would tell, one line each.
    """

    parts: tuple[Mapping[str, Any], ...] = ()
    packages: tuple[str, ...] = ()
    unknown: tuple[str, ...] = field(default=())


def load_agent_config(path: str | Path) -> AgentConfig:
    """Read an agent from a YAML, TOML or JSON file. The files that it names are beside it.

    Raises:
        ConfigError: The file cannot be read, or a key of it does not fit.
    """
    with LocalsForgotten():  # a key may be among them
        return _config_of(Path(path))


def _config_of(file: Path) -> AgentConfig:
    text = _text_of(file)
    try:
        table = _parsed(file, text)
    except json.JSONDecodeError as error:
        # Without the cause, which carries all of the text.
        raise ConfigError(f"{file} cannot be read: it is not JSON: {error}") from None
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{file} cannot be read: {error}") from error
    if not isinstance(table, dict):
        raise ConfigError(f"{file} must be a table, with keys such as llm and function_list")
    config = AgentConfig.parse(table, what=str(file))
    if not config.files:
        return config
    # What a file names is beside it, wherever it is read from.
    return config.model_copy(update={"files": tuple(_beside(file, name) for name in config.files)})


def _beside(file: Path, name: str) -> str:
    return name if "://" in name else str(file.parent / Path(name).expanduser())


def _parsed(file: Path, text: str) -> Any:
    match file.suffix.lower():
        case ".yaml" | ".yml":
            import yaml

            try:
                return yaml.safe_load(text)
            except yaml.YAMLError as error:
                # Without the cause and its words, which quote the line: a key may be on it.
                raise ConfigError(f"{file} is not YAML: {_place_of(error)}") from None
        case ".toml":
            return tomllib.loads(text)
        case ".json":
            return json.loads(text)
    raise ConfigError(f"{file}: an agent is a .yaml, .toml or .json file (or .py, where it is only read)")


def _place_of(error: Any) -> str:
    mark, problem = getattr(error, "problem_mark", None), getattr(error, "problem", None) or "it cannot be read"
    return f"{problem}, line {mark.line + 1}, column {mark.column + 1}" if mark else str(problem)


def _text_of(file: Path) -> str:
    try:
        text = file.read_text(encoding="utf-8") if file.stat().st_size <= MAX_FILE_BYTES else None
    except OSError as error:
        raise ConfigError(f"{file} cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        # Without the cause, which carries all of the text: a key may be in it.
        raise ConfigError(f"{file} is no UTF-8 text: {error.reason}, at byte {error.start}") from None
    except ValueError as error:  # a name with a NUL, or with half of a surrogate pair
        raise ConfigError(f"{str(file)!r} is not the name of a file") from error
    if text is None:
        raise ConfigError(f"{file} is larger than 1 MiB: that is no agent")
    return text


def python_uses(path: str | Path) -> PythonUses:
    """Find out what a Python file needs, without running it.

    Raises:
        ConfigError: It cannot be read, or is no Python.
    """
    file = Path(path)
    try:
        tree = ast.parse(_text_of(file), filename=str(file))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ConfigError(f"{file} is no Python: {error}") from error
    constants = Constants(tree)
    parts: list[Mapping[str, Any]] = []
    unknown: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            given, unreadable = _given_to(node, constants)
            parts += [given] if given else []
            unknown += [f"{file}:{node.lineno}: {name} is computed" for name in unreadable]
    return PythonUses(tuple(parts), tuple(sorted(set(_plugin_packages(tree)))), tuple(unknown))


def _given_to(call: ast.Call, constants: Constants) -> tuple[dict[str, Any], list[str]]:
    """The parts of an agent that a call is given, and the names of those that cannot be told."""
    called = name_called(call)
    keywords = {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg in _PARTS}
    positions = _POSITIONS.get(called, _CLASS_POSITIONS if called[:1].isupper() and keywords else ())
    arguments = {**dict(zip(positions, call.args, strict=False)), **keywords}
    given: dict[str, Any] = {}
    unreadable: list[str] = []
    for name, node in arguments.items():
        if name not in _PARTS:
            continue
        try:
            given[name] = _readable(name, node, constants)
        except UnknownValueError:
            unreadable.append(name)
    return given, unreadable


def _readable(name: str, node: ast.expr, constants: Constants) -> Any:
    if name in ("function_list", "observers") and isinstance(node, ast.List | ast.Tuple):
        return [entry for part in node.elts for entry in _entries(part, constants)]
    if name == "llm" and isinstance(node, ast.Dict | ast.Name):
        return _model_config(node, constants)
    return constants.value_of(node)


def _model_config(node: ast.expr, constants: Constants) -> Any:
    """What a model's configuration says of its backend; keys and addresses are often computed, and do not matter."""
    try:
        return constants.value_of(node)
    except UnknownValueError:
        pass
    config: dict[str, Any] = {}
    for key, value in constants.entries_of(node):
        try:
            config[key] = constants.value_of(value)
        except UnknownValueError:
            if key not in _STAND_INS:
                if key in _DECISIVE:
                    raise
                continue
            config[key] = _STAND_INS[key]
    return config


def _entries(node: ast.expr, constants: Constants) -> Iterator[Any]:
    """A tool that is a function or an object of this file needs no plugin; a name or a dict says which it needs."""
    if isinstance(node, ast.Constant | ast.Dict | ast.JoinedStr):
        yield constants.value_of(node)
        return
    try:
        value = constants.value_of(node)
    except UnknownValueError:
        return
    if isinstance(value, str | dict):
        yield value


def _plugin_packages(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [node.module]
        yield from (name.partition(".")[0] for name in names if name.startswith("jackfield_"))
