"""What a light module says, read from its source: nothing of it runs.

Descriptors are usually written with literal values, so what a plugin is and would do can be told before anybody has
agreed to load it. Computed values stay unknown; this is reported, and never guessed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.machinery import SourceFileLoader
from importlib.util import cache_from_source
from itertools import filterfalse
from pathlib import Path
from typing import Any

from jackfield.plugins import Row, hook, specs_of_import

MAX_SOURCE_BYTES = 1 << 20
_KIND_OF_CLASS = {one.spec_class.__name__: one.kind for one in hook.HOOKS.values()}
_CONTAINERS: Mapping[str, Any] = {"frozenset": frozenset, "set": set, "tuple": tuple, "list": list, "dict": dict}


class UnknownValueError(Exception):
    """A value that only running the code would tell."""


@dataclass(frozen=True, slots=True)
class Described:
    """A descriptor as it stands in the source.

    Attributes:
        kind: Of the descriptor's class.
        values: The keywords whose values are literal.
        unknown: The names of the others.
    """

    kind: str
    values: Mapping[str, Any]
    unknown: tuple[str, ...] = ()


def described_in_source(row: Row, paths: Sequence[str] | None = None) -> Described | None:
    """The descriptor of a component, from the source of its light module; None if it cannot be told without running it.

    Args:
        row: The component.
        paths: Where modules are looked for, in place of `sys.path`.
    """
    path = source_file(row.module, paths)
    if path is None:
        return None
    return next(
        (one for one in descriptors_in(path) if (one.kind, one.values.get("name")) == (row.kind, row.name)), None
    )


def source_file(module: str, paths: Sequence[str] | None = None) -> Path | None:
    """The file that Python would run for a module, if that is source; found without importing anything.

    None, too, where something else than this source would run: an extension module, or bytecode that Python takes
    without comparing it with the time of the source.
    """
    spec = next(reversed(specs_of_import(module, paths)), None)
    if spec is None or spec.origin is None or not isinstance(spec.loader, SourceFileLoader):
        return None
    path = Path(spec.origin)
    return None if _runs_other_bytecode(path) else path


def _runs_other_bytecode(path: Path) -> bool:
    """Whether Python keeps bytecode for a file that it takes for the source's because of a hash in it, or unasked."""
    try:
        with Path(cache_from_source(str(path))).open("rb") as file:
            flags = int.from_bytes(file.read(8)[4:], "little")
    except (OSError, ValueError, NotImplementedError):
        return False
    return flags != 0  # 0: it is compared with the source's time and size (PEP 552)


def descriptors_in(path: Path) -> list[Described]:
    """All descriptors that a file makes; none if it is not valid Python."""
    tree = _parsed(path)
    constants = Constants(tree)
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and name_called(node) in _KIND_OF_CLASS]
    return [_described(node, _KIND_OF_CLASS[name_called(node)], constants) for node in calls]


def _parsed(path: Path) -> ast.Module:
    """What stands in a file; nothing, if it is no Python that can be read."""
    with suppress(OSError, SyntaxError, ValueError, RecursionError, MemoryError, SystemError):
        raw = path.read_bytes()
        if len(raw) <= MAX_SOURCE_BYTES:
            return ast.parse(raw, filename=str(path))
    return ast.Module([], [])


def name_called(node: ast.Call) -> str:
    """The last part of the name of what is called, '' if it has none."""
    if isinstance(node.func, ast.Attribute):
        return node.func.attr
    return node.func.id if isinstance(node.func, ast.Name) else ""


def _described(node: ast.Call, kind: str, constants: Constants) -> Described:
    values: dict[str, object] = {}
    for keyword in node.keywords:
        with suppress(UnknownValueError, RecursionError):
            # What `**` brings is not told, however it is written: its keywords would be overlooked.
            values |= {keyword.arg: constants.value_of(keyword.value)} if keyword.arg else {}
    written = [keyword.arg or "**" for keyword in node.keywords]
    return Described(kind, values, tuple(filterfalse(values.__contains__, written)))


class Constants:
    """The values that names have in a module, where they are literal."""

    def __init__(self, tree: ast.Module) -> None:
        self._assigned: dict[str, ast.expr | None] = {}
        for name, value in _assignments(tree):
            # Assigned twice: only running it tells which of them counts.
            self._assigned[name] = None if name in self._assigned else value
        self._open: set[str] = set()

    def value_of(self, node: ast.expr) -> Any:
        """The value of an expression.

        Raises:
            UnknownValueError: It is not a literal, nor made of literals and constants.
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
                return set(map(self._hashable, entries))
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
        """The keys of a table and the expressions of their values, where it is written down, here or as a constant.

        Raises:
            UnknownValueError: It is computed.
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
                several = self.value_of(node.value)
                if not isinstance(several, tuple | list):
                    raise UnknownValueError
                yield from several
            else:
                yield self.value_of(node)

    def _dict(self, keys: Sequence[ast.expr | None], values: Sequence[ast.expr]) -> dict[Any, Any]:
        made: dict[Any, Any] = {}
        for key, value in zip(keys, values, strict=True):
            found = self.value_of(value)
            if key is not None:
                made[self._hashable(key)] = found
            elif isinstance(found, dict):
                made |= found
            else:
                raise UnknownValueError
        return made

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
            case ast.FormattedValue(value, -1, None):
                found = self.value_of(value)
                if isinstance(found, str | int):
                    return str(found)
        raise UnknownValueError

    def _container(self, name: str, arguments: Sequence[ast.expr]) -> object:
        try:
            return _CONTAINERS[name](*map(self.value_of, arguments))
        except (TypeError, ValueError):
            raise UnknownValueError from None


def _assignments(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    for node in tree.body:
        match node:
            case ast.Assign([ast.Name(name)], value):
                yield name, value
            case ast.AnnAssign(ast.Name(name), _, value) if value is not None:
                yield name, value
