"""Read descriptors from the source code of light modules, without running it.

Most descriptors contain only literal values, so a plugin can be described before the user agrees to load it. Computed
values are reported as unknown, never guessed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.machinery import SourceFileLoader
from importlib.util import cache_from_source
from pathlib import Path
from typing import Any

from jackfield.plugins import Row, hook, specs_of_import

MAX_SOURCE_BYTES = 1 << 20
_KIND_OF_CLASS = {entry.spec_class.__name__: entry.kind for entry in hook.HOOKS.values()}
_CONTAINERS: Mapping[str, Any] = {"frozenset": frozenset, "set": set, "tuple": tuple, "list": list, "dict": dict}


class UnknownValueError(Exception):
    """The value cannot be determined without running the code."""


@dataclass(frozen=True, slots=True)
class Described:
    """A descriptor as written in the source code.

    Attributes:
        kind: The kind to which the descriptor's class belongs.
        values: Keyword arguments with literal values.
        unknown: The names of other keyword arguments; `**` for an unpacked mapping.
    """

    kind: str
    values: Mapping[str, Any]
    unknown: tuple[str, ...] = ()


def described_in_source(row: Row, paths: Sequence[str] | None = None) -> Described | None:
    """Read a component's descriptor from its light module's source; None if the module would have to be run.

    Args:
        row: The component.
        paths: The directories to search for modules. Defaults to `sys.path`.
    """
    path = source_file(row.module, paths)
    for described in descriptors_in(path) if path else ():
        if (described.kind, described.values.get("name")) == (row.kind, row.name):
            return described
    return None


def source_file(module: str, paths: Sequence[str] | None = None) -> Path | None:
    """Return the source file that Python would run for a module, without importing anything.

    Return None if Python would run something else: an extension module, or bytecode that is not checked against the
    source's modification time.
    """
    specs = specs_of_import(module, paths)
    spec = specs[-1] if specs else None
    if spec is None or spec.origin is None or not isinstance(spec.loader, SourceFileLoader):
        return None
    path = Path(spec.origin)
    return None if _runs_other_bytecode(path) else path


def _runs_other_bytecode(path: Path) -> bool:
    """Return True if a file has bytecode that Python validates by hash, or not at all."""
    try:
        with Path(cache_from_source(str(path))).open("rb") as file:
            flags = int.from_bytes(file.read(8)[4:], "little")
    except (OSError, ValueError, NotImplementedError):
        return False
    return flags != 0  # 0: validated by the source's time and size (PEP 552)


def descriptors_in(path: Path) -> list[Described]:
    """Return all descriptors that a file creates; empty if the file is not valid Python."""
    tree = _parse(path)
    constants = Constants(tree)
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and name_called(node) in _KIND_OF_CLASS]
    return [_describe(node, _KIND_OF_CLASS[name_called(node)], constants) for node in calls]


def _parse(path: Path) -> ast.Module:
    """Parse a file, or return an empty module if it is too large, unreadable or not valid Python."""
    with suppress(OSError, SyntaxError, ValueError, RecursionError, MemoryError, SystemError):
        raw = path.read_bytes()
        if len(raw) <= MAX_SOURCE_BYTES:
            return ast.parse(raw, filename=str(path))
    return ast.Module([], [])


def name_called(node: ast.Call) -> str:
    """Return the last part of the called name, or '' if the call has no name."""
    if isinstance(node.func, ast.Attribute):
        return node.func.attr
    return node.func.id if isinstance(node.func, ast.Name) else ""


def _describe(node: ast.Call, kind: str, constants: Constants) -> Described:
    values: dict[str, object] = {}
    unknown: list[str] = []
    for keyword in node.keywords:
        if keyword.arg is None:
            unknown.append("**")  # even if literal, so that its keywords are not overlooked
            continue
        try:
            values[keyword.arg] = constants.value_of(keyword.value)
        except (UnknownValueError, RecursionError):
            unknown.append(keyword.arg)
    return Described(kind, values, tuple(unknown))


class Constants:
    """The literal values of a module's top-level names."""

    def __init__(self, tree: ast.Module) -> None:
        self._assigned: dict[str, ast.expr | None] = {}
        for name, value in _assignments(tree):
            # A name assigned more than once is unknown.
            self._assigned[name] = None if name in self._assigned else value
        self._open: set[str] = set()

    def value_of(self, node: ast.expr) -> Any:
        """Evaluate an expression.

        Raises:
            UnknownValueError: The expression contains something other than literals and constants.
        """
        match node:
            case ast.Constant(value):
                return value
            case ast.Name(name):
                return self._constant(name)
            case ast.Tuple(entries):
                return tuple(self._entries(entries))
            case ast.List(entries):
                return list(self._entries(entries))
            case ast.Set(entries):
                return {self._hashable(entry) for entry in entries}
            case ast.Dict(keys, values):
                return self._dict(keys, values)
            case ast.JoinedStr(parts):
                return "".join(self._part(part) for part in parts)
        return self._computed(node)

    def _computed(self, node: ast.expr) -> object:
        match node:
            case ast.BinOp(left, ast.Add(), right):
                return self._sum(left, right)
            case ast.UnaryOp(ast.USub(), ast.Constant(int() | float() as number)):
                return -number
            case ast.Call(ast.Attribute(text, "split"), [], []) if isinstance(words := self.value_of(text), str):
                return words.split()
            case ast.Call(ast.Name(name), arguments, []) if name in _CONTAINERS and len(arguments) <= 1:
                return self._container(name, arguments)
        raise UnknownValueError

    def entries_of(self, node: ast.expr) -> Iterator[tuple[str, ast.expr]]:
        """Yield the keys and value expressions of a dict, which may be a literal or a constant.

        Raises:
            UnknownValueError: The dict is computed.
        """
        assigned = self._assigned.get(node.id) if isinstance(node, ast.Name) else node
        if not isinstance(assigned, ast.Dict):
            raise UnknownValueError
        for key, value in zip(assigned.keys, assigned.values, strict=True):
            if key is None:
                yield from self.entries_of(value)
            else:
                yield str(self.value_of(key)), value

    def _constant(self, name: str) -> object:
        value = self._assigned.get(name)
        if value is None or name in self._open:
            raise UnknownValueError
        self._open.add(name)
        try:
            return self.value_of(value)
        finally:
            self._open.discard(name)

    def _entries(self, nodes: Sequence[ast.expr]) -> Iterator[object]:
        for node in nodes:
            if isinstance(node, ast.Starred):
                entries = self.value_of(node.value)
                if not isinstance(entries, tuple | list):
                    raise UnknownValueError
                yield from entries
            else:
                yield self.value_of(node)

    def _dict(self, keys: Sequence[ast.expr | None], values: Sequence[ast.expr]) -> dict[Any, Any]:
        table: dict[Any, Any] = {}
        for key, node in zip(keys, values, strict=True):
            value = self.value_of(node)
            if key is not None:
                table[self._hashable(key)] = value
            elif isinstance(value, dict):
                table |= value
            else:
                raise UnknownValueError
        return table

    def _hashable(self, node: ast.expr) -> object:
        value = self.value_of(node)
        if not isinstance(value, str | bytes | int | float | bool | None):
            raise UnknownValueError
        return value

    def _sum(self, left: ast.expr, right: ast.expr) -> object:
        first, second = self.value_of(left), self.value_of(right)
        if type(first) is type(second) and type(first) in (str, list, tuple):
            return first + second
        raise UnknownValueError

    def _part(self, node: ast.expr) -> str:
        match node:
            case ast.Constant(str() as text):
                return text
            case ast.FormattedValue(expression, -1, None):
                value = self.value_of(expression)
                if isinstance(value, str | int):
                    return str(value)
        raise UnknownValueError

    def _container(self, name: str, arguments: Sequence[ast.expr]) -> object:
        try:
            return _CONTAINERS[name](*[self.value_of(argument) for argument in arguments])
        except (TypeError, ValueError):
            raise UnknownValueError from None


def _assignments(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    for node in tree.body:
        match node:
            case ast.Assign([ast.Name(name)], value):
                yield name, value
            case ast.AnnAssign(ast.Name(name), _, value) if value is not None:
                yield name, value
