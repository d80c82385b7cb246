"""The memory store of tests refuses the mistakes that every store refuses."""

from __future__ import annotations

import asyncio

import pytest

from jackfield.errors import RunBusyError, RunNotFoundError, StoreError
from jackfield.stores import StoredRun
from jackfield_testkit.records import MemoryStore


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
