"""Containers that grow are found wherever an object holds them, and others are not."""

from __future__ import annotations

import asyncio
import functools
import logging
import re
import threading
from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, ClassVar

import pytest

from jackfield_testkit.growth import Growth, globals_of

COUNTS: Counter[int] = Counter()


@functools.cache
def squared(number: int) -> int:
    return number * number


@functools.lru_cache(maxsize=4)
def halved(number: int) -> float:
    return number / 2


class Slotted:
    __slots__ = ("__rows",)

    def __init__(self) -> None:
        self.__rows: list[int] = []

    def add(self, number: int) -> None:
        self.__rows.append(number)


@dataclass
class Table:
    rows: dict[Any, Any] = field(default_factory=dict)
    limit: int = 1_000_000

    shared: ClassVar[deque[int]] = deque()

    def add(self, number: int) -> None:
        self.rows[number] = str(number)
        if len(self.rows) > self.limit:
            del self.rows[next(iter(self.rows))]

    def share(self, number: int) -> None:
        self.shared.append(number)


def adder() -> Callable[[int], None]:
    inner: set[int] = set()

    def add(number: int) -> None:
        inner.add(number)

    return add


async def held_by(table: Table) -> None:
    table.add(1)


def deep(table: Table) -> dict[str, object]:
    return {"a": [({"key": functools.partial(print, then=table.add)}, frozenset({1}))]}


class Made:
    rows: ClassVar[list[int]] = []

    @staticmethod
    def add(number: int, *, to: list[int] = rows) -> None:
        to.append(number)


def not_set_yet() -> Callable[[], int]:
    def later() -> int:
        return number

    kept = later
    if not kept:
        number = 1
    return kept


def cases() -> dict[str, tuple[object, Callable[[int], object], str]]:
    table, slotted, add, listed, ordered = Table(), Slotted(), adder(), [1], OrderedDict[int, int]()
    queue: asyncio.Queue[int] = asyncio.Queue()
    buffer = bytearray()
    return {
        "attribute": (table, table.add, "root.rows"),
        "slot": (slotted, slotted.add, "root.__rows"),
        "closure": (add, add, "root.inner"),
        "bound method": (table.add, table.add, "root.rows"),
        "deep": (deep(table), table.add, "root['a'][…][…]['key']['then'].rows"),
        "key": ({slotted: 1}, slotted.add, "root.keys().__rows"),
        "queue": (queue, queue.put_nowait, "root._queue"),
        "static method": (vars(Made)["add"], Made.add, "root.to"),
        "list": (listed, listed.append, "root"),
        "buffer": ([buffer], buffer.append, "root[…]"),
        "subclass of dict": (ordered, lambda number: ordered.setdefault(number, 1), "root"),
        "cache": (squared, squared, "root"),
    }


@pytest.mark.parametrize("name", list(cases()))
def test_a_container_that_grows_is_found(name: str) -> None:
    root, add, path = cases()[name]
    add(1)
    growth = Growth({"root": root})
    for number in range(100, 109):
        add(number)
    assert growth.grown(by=10) == []
    add(109)
    [line] = growth.grown(by=10)
    assert line.startswith(f"{path}: ")
    before, now = re.search(r": grew from (\d+) to (\d+) elements$", line).groups()  # type: ignore[union-attr]
    assert int(now) == int(before) + 10


def test_a_table_with_a_limit_and_a_bounded_cache_do_not_grow_beyond_them() -> None:
    table = Table(limit=5)
    growth = Growth({"table": table, "cache": halved})
    for number in range(100):
        table.add(number)
        halved(number)
    assert growth.grown(by=6) == []


def test_objects_beyond_the_border_are_not_looked_into() -> None:
    table = Table()
    growth = Growth({"root": {"table": table}}, beyond=(Table,))
    for number in range(20):
        table.add(number)
    assert growth.grown(by=1) == []
    assert len(growth) == 1


def test_loops_futures_loggers_and_threads_are_not_looked_into() -> None:
    table, loop = Table(), asyncio.new_event_loop()
    others: list[Any] = [loop, loop.create_future(), logging.getLogger("jackfield.growth"), threading.Thread()]
    others[1] = loop.create_task(held_by(table))
    for one in (others[0], *others[2:]):
        one.table = table
    growth = Growth({"others": tuple(others)})
    loop.run_until_complete(others[1])
    loop.close()
    assert growth.grown(by=1) == []
    assert len(growth) == 0


def test_a_module_is_not_looked_into_wherever_it_is_named() -> None:
    module = ModuleType("acme")
    vars(module)["table"] = Table()
    assert len(Growth({"module": module})) == 0
    assert len(Growth({"root": {"module": module}})) == 1  # the dict around it


def test_a_name_of_a_closure_that_is_not_set_yet_is_left_out() -> None:
    assert len(Growth({"root": not_set_yet()})) == 0


def test_an_object_that_holds_itself_is_looked_at_once() -> None:
    table = Table()
    table.rows["self"] = table
    assert len(Growth({"a": table, "b": table})) == 1


def test_globals_of_a_package_and_attributes_of_its_classes_are_roots() -> None:
    roots = globals_of(__name__)
    growth = Growth(dict(roots))
    COUNTS.update(range(50))
    Table().share(7)
    assert growth.grown(by=50) == [f"{__name__}.COUNTS: grew from 0 to 50 elements"]
    assert growth.grown(by=1)[-1].startswith(f"{__name__}.Table.shared: ")
    assert not {f"{__name__}.globals_of", f"{__name__}.Growth", f"{__name__}.Growth.grown"} & roots.keys()
