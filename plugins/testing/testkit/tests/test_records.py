"""The memory store of tests refuses the mistakes that every store refuses, and dies at the write that is named."""

from __future__ import annotations

import asyncio

import pytest

from jackfield.errors import RunBusyError, RunNotFoundError, StoreError
from jackfield.stores import StoredRun
from jackfield_testkit.records import KilledError, MemoryStore, interrupted


def test_an_id_is_given_once() -> None:
    store = MemoryStore()
    hold = asyncio.run(store.create(StoredRun(run_id="r"), ["first"]))
    with pytest.raises(StoreError, match="run r already exists"):
        asyncio.run(store.create(StoredRun(run_id="r"), ["another"]))
    asyncio.run(store.append("r", hold, ["second"]))
    assert asyncio.run(store.read("r"))[1] == ["first", "second"]


def test_only_a_run_that_exists_and_is_free_is_deleted() -> None:
    store = MemoryStore()
    with pytest.raises(RunNotFoundError):
        asyncio.run(store.delete("r"))
    hold = asyncio.run(store.create(StoredRun(run_id="r"), ["first"]))
    with pytest.raises(RunBusyError):
        asyncio.run(store.delete("r"))
    asyncio.run(store.append("r", hold, [], state="finished"))
    asyncio.run(store.delete("r"))
    assert asyncio.run(store.runs()) == []


def test_a_run_is_interrupted_after_and_before_each_of_its_writes() -> None:
    def write_twice(store: MemoryStore) -> None:
        hold = asyncio.run(store.create(StoredRun(run_id="r"), ["first"]))
        asyncio.run(store.append("r", hold, ["second"]))

    found = [[entry for kept in store.kept.values() for entry in kept.entries] for store in interrupted(write_twice)]
    assert found == [["first"], ["first", "second"], [], ["first"]]


def test_a_process_that_died_writes_nothing_more() -> None:
    store = MemoryStore()
    store.writes_left = 1
    for run_id in ("the last", "another", "a third"):
        with pytest.raises(KilledError):
            asyncio.run(store.create(StoredRun(run_id=run_id), ["first"]))
    assert [*store.kept] == ["the last"]
