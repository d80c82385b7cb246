"""Find the plugins used by agents in a Python file. The file is not run, because plugins may be missing."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jackfield.errors import ConfigError
from jackfield_agent_files.files import text_of
from jackfield_manage.judging.source import Constants, UnknownValueError, name_called

# Positional arguments of the functions and classes that take parts of an agent.
_POSITIONS: Mapping[str, tuple[str, ...]] = {"create_agent": ("agent",), "get_chat_model": ("llm",)}
_CLASS_POSITIONS = ("function_list", "llm", "system_message")
# Placeholders for computed values in a model's configuration, and keys that need their real value.
_SUBSTITUTES = {"model": "computed", **dict.fromkeys(("api_base", "base_url", "model_server"), "http://computed")}
_REQUIRED = ("model_type", "processors", "generate_cfg")
_PARTS = frozenset(("agent", "llm", "function_list", "files", "rag_cfg", "extra_generate_cfg", "observers"))


@dataclass(frozen=True, slots=True)
class PythonUses:
    """The plugins that a Python file uses, as far as its source shows.

    Attributes:
        parts: The arguments of each call that creates an agent or a model.
        packages: The plugin packages that the file itself imports.
        unknown: A line for each computed argument.
    """

    parts: tuple[Mapping[str, Any], ...] = ()
    packages: tuple[str, ...] = ()
    unknown: tuple[str, ...] = field(default=())


def read_python_uses(path: str | Path) -> PythonUses:
    """Determine which plugins a Python file uses, without running it.

    Raises:
        ConfigError: The file cannot be read, or is not valid Python.
    """
    file = Path(path)
    try:
        tree = ast.parse(text_of(file), filename=str(file))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ConfigError(f"{file} is not valid Python: {error}") from error
    constants = Constants(tree)
    parts: list[Mapping[str, object]] = []
    unknown: list[str] = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        values: dict[str, object] = {}
        for name, argument in _agent_arguments(node).items():
            try:
                values[name] = _value_of(name, argument, constants)
            except UnknownValueError:
                unknown.append(f"{file}:{node.lineno}: {name} is computed at run time")
        if values:
            parts.append(values)
    return PythonUses(tuple(parts), tuple(sorted(_plugin_packages(tree))), tuple(unknown))


def _agent_arguments(call: ast.Call) -> dict[str, ast.expr]:
    """Return a call's arguments that define parts of an agent; empty if it creates neither an agent nor a model."""
    function = name_called(call)
    keywords = {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg in _PARTS}
    positions = _POSITIONS.get(function, _CLASS_POSITIONS if function[:1].isupper() and keywords else ())
    arguments = {**dict(zip(positions, call.args, strict=False)), **keywords}
    return {name: argument for name, argument in arguments.items() if name in _PARTS}


def _value_of(name: str, node: ast.expr, constants: Constants) -> object:
    match name, node:
        case "function_list" | "observers", ast.List(parts) | ast.Tuple(parts):
            return [entry for part in parts for entry in _entries(part, constants)]
        case "llm", ast.Dict() | ast.Name():
            return _model_config(node, constants)
    return constants.value_of(node)


def _model_config(node: ast.expr, constants: Constants) -> object:
    """Evaluate a model's configuration, with placeholders for computed values that do not determine the backend."""
    with suppress(UnknownValueError):
        return constants.value_of(node)
    config: dict[str, object] = dict(_SUBSTITUTES)
    written = dict(constants.entries_of(node))
    for key, value in written.items():
        try:
            config[key] = constants.value_of(value)
        except UnknownValueError:
            if key in _REQUIRED:
                raise
    return {key: value for key, value in config.items() if key in written}


def _entries(node: ast.expr, constants: Constants) -> Iterator[object]:
    """Yield the names and dicts in a list; any other entry is an object from this file and needs no plugin."""
    if isinstance(node, ast.Constant | ast.Dict | ast.JoinedStr):
        yield constants.value_of(node)
        return
    try:
        value = constants.value_of(node)
    except UnknownValueError:
        return
    if isinstance(value, str | dict):
        yield value


def _plugin_packages(tree: ast.Module) -> set[str]:
    modules: list[str] = []
    for node in ast.walk(tree):
        match node:
            case ast.Import(names):
                modules += [alias.name for alias in names]
            case ast.ImportFrom(str(module), _, 0):
                modules.append(module)
    return {module.partition(".")[0] for module in modules if module.startswith("jackfield_")}
