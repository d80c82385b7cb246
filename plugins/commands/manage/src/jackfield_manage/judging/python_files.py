"""What a Python file that makes agents needs. The file is read and never run: what it needs must be known before."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import filterfalse
from pathlib import Path
from typing import Any

from jackfield.errors import ConfigError
from jackfield_agent_files.files import text_of
from jackfield_manage.judging.source import Constants, UnknownValueError, name_called

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


def python_uses(path: str | Path) -> PythonUses:
    """Find out what a Python file needs, without running it.

    Raises:
        ConfigError: It cannot be read, or is not valid Python.
    """
    file = Path(path)
    tree = _parsed(file)
    constants = Constants(tree)
    parts: list[Mapping[str, object]] = []
    unknown: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            given, unreadable = _given_to(node, constants)
            parts.append(given)
            unknown += [f"{file}:{node.lineno}: {name} is computed" for name in unreadable]
    return PythonUses(tuple(filter(None, parts)), tuple(sorted(set(_plugin_packages(tree)))), tuple(unknown))


def _parsed(file: Path) -> ast.Module:
    try:
        return ast.parse(text_of(file), filename=str(file))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ConfigError(f"{file} is not valid Python: {error}") from error


def _given_to(call: ast.Call, constants: Constants) -> tuple[dict[str, Any], list[str]]:
    """The parts of an agent that a call is given, and the names of those that cannot be told."""
    arguments = _arguments_of(call)
    given: dict[str, object] = {}
    for name, node in arguments.items():
        with suppress(UnknownValueError):
            given[name] = _readable(name, node, constants)
    return given, list(filterfalse(given.__contains__, arguments))


def _arguments_of(call: ast.Call) -> dict[str, ast.expr]:
    """The expressions that a call gives for parts of an agent, if it is one that takes them."""
    called = name_called(call)
    keywords = {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg in _PARTS}
    positions = _POSITIONS.get(called, _CLASS_POSITIONS if called[:1].isupper() and keywords else ())
    arguments = {**dict(zip(positions, call.args, strict=False)), **keywords}
    return {name: arguments[name] for name in filter(_PARTS.__contains__, arguments)}


def _readable(name: str, node: ast.expr, constants: Constants) -> object:
    match name, node:
        case "function_list" | "observers", ast.List(parts) | ast.Tuple(parts):
            return [entry for part in parts for entry in _entries(part, constants)]
        case "llm", ast.Dict() | ast.Name():
            return _model_config(node, constants)
    return constants.value_of(node)


def _model_config(node: ast.expr, constants: Constants) -> object:
    """What a model's configuration says of its backend; keys and addresses are often computed, and do not matter."""
    with suppress(UnknownValueError):
        return constants.value_of(node)
    config: dict[str, object] = dict(_STAND_INS)
    written = dict(constants.entries_of(node))
    for key, value in written.items():
        try:
            config[key] = constants.value_of(value)
        except UnknownValueError:
            if key in _DECISIVE:
                raise
    return {key: value for key, value in config.items() if key in written}


def _entries(node: ast.expr, constants: Constants) -> Iterator[object]:
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
        for name in _modules_of(node):
            if name.startswith("jackfield_"):
                yield name.partition(".")[0]


def _modules_of(node: ast.AST) -> list[str]:
    """The modules that a statement imports by their whole names."""
    match node:
        case ast.Import(names):
            return [alias.name for alias in names]
        case ast.ImportFrom(str(module), _, 0):
            return [module]
    return []
