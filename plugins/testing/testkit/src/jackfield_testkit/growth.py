"""Find the containers that objects hold, and detect which of them grow."""

from __future__ import annotations

import asyncio
import functools
import logging
import sys
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Sized
from dataclasses import dataclass
from types import BuiltinFunctionType, CellType, FunctionType, MappingProxyType, MethodType, ModuleType
from typing import Any, NamedTuple

_CONTAINERS = (dict, list, set, deque, bytearray)
_ELSEWHERE = (type, asyncio.AbstractEventLoop, logging.Logger, threading.Thread)
_ATOMS = (str, bytes, int, float, complex, bool, type(None), ModuleType, BuiltinFunctionType)


@dataclass(frozen=True, slots=True)
class _UnboundedCache:
    """The cached results of a function with `functools.cache`."""

    function: Any

    def __len__(self) -> int:
        return int(self.function.cache_info().currsize)


class _Held(NamedTuple):
    """A container and its initial size."""

    path: str
    container: Sized
    size: int


class Growth:
    """A snapshot of all containers reachable from some objects, with their sizes.

    Attributes, closures, bound methods and function caches are followed; event loops, tasks, threads, loggers and
    modules are not. Use this class in the thread that changes the objects.

    Args:
        roots: The objects, by name.
        beyond: Types whose instances are not searched.
    """

    def __init__(self, roots: dict[str, object], *, beyond: tuple[type, ...] = ()) -> None:
        self._held = [_Held(path, one, len(one)) for path, one in _containers_in(roots, beyond)]

    def __len__(self) -> int:
        return len(self._held)

    def grown(self, *, by: int) -> list[str]:
        """List the containers that have grown by at least `by` elements, with their paths and sizes."""
        return [
            f"{path}: grew from {size} to {len(container)} elements"
            for path, container, size in self._held
            if len(container) - size >= by
        ]


def globals_of(package: str) -> dict[str, object]:
    """Return the global objects of a package's modules, and the attributes of their classes, by name."""
    found: dict[str, object] = {}
    for name, module in list(sys.modules.items()):
        if name != package and not name.startswith(f"{package}."):
            continue
        for key, value in list(vars(module).items()):
            is_imported = isinstance(value, type | FunctionType) and value.__module__ != name
            if is_imported or key.startswith("__"):
                continue
            if isinstance(value, type):
                found |= {f"{name}.{key}.{inner}": one for inner, one in vars(value).items() if inner[:2] != "__"}
            else:
                found[f"{name}.{key}"] = value
    return found


def _containers_in(roots: dict[str, object], beyond: tuple[type, ...]) -> Iterator[tuple[str, Sized]]:
    seen: set[int] = set()
    rest: deque[tuple[str, object]] = deque(_followed(roots.items()))
    while rest:
        path, one = rest.popleft()
        if id(one) in seen or isinstance(one, beyond):
            continue
        seen.add(id(one))
        if isinstance(one, _CONTAINERS):
            yield path, one
        elif isinstance(one, functools._lru_cache_wrapper) and one.cache_parameters()["maxsize"] is None:
            yield path, _UnboundedCache(one)
        rest += [(f"{path}{step}", inner) for step, inner in _followed(_parts_of(one))]


def _followed(parts: Iterable[tuple[str, object]]) -> Iterator[tuple[str, object]]:
    """Yield the parts that are containers or may hold one, without modules, which lead to every object in the tests."""
    return (part for part in parts if not isinstance(part[1], _ATOMS))


def _parts_of(one: object) -> Iterable[tuple[str, object]]:
    """Return the objects that an object holds directly, each with the step that leads to it."""
    match one:
        case _ if isinstance(one, _ELSEWHERE):
            return []
        case dict() | MappingProxyType():
            pairs = list(one.items())
            return [*((f"[{key!r:.40}]", value) for key, value in pairs), *((".keys()", key) for key, _ in pairs)]
        case list() | tuple() | set() | frozenset() | deque():
            return [("[…]", value) for value in list(one)]
        case FunctionType():
            cells = zip(one.__code__.co_freevars, one.__closure__ or (), strict=True)
            contents = [(f".{name}", _content_of(cell)) for name, cell in cells]
            defaults = [("()", one.__defaults__), *_pairs_of(one.__kwdefaults__)]
            return [*contents, *defaults, *_pairs_of(vars(one))]
        case MethodType():
            return [("", one.__self__), ("", one.__func__)]
        case classmethod() | staticmethod():
            return [("", one.__func__)]
        case functools.partial():
            return [("", one.func), ("", one.args), ("", one.keywords)]
    return [*_pairs_of(getattr(one, "__dict__", {})), *_slots_of(one)]


def _pairs_of(attributes: object) -> list[tuple[str, object]]:
    return [(f".{name}", value) for name, value in list(dict(attributes).items())] if attributes else []  # type: ignore[call-overload]


def _slots_of(one: object) -> Iterator[tuple[str, object]]:
    for base in type(one).__mro__:
        slots = base.__dict__.get("__slots__", ())
        for name in [slots] if isinstance(slots, str) else slots:
            mangled = f"_{base.__name__.lstrip('_')}{name}" if name.startswith("__") and name[-2:] != "__" else name
            if mangled not in ("__dict__", "__weakref__"):
                yield f".{name}", getattr(one, mangled, None)


def _content_of(cell: CellType) -> object:
    try:
        return cell.cell_contents
    except ValueError:  # the cell is not set yet
        return None
