"""The store that a service has without another one keeps the contract of stores."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import ClassVar

import pytest

from jackfield.stores import RUNNING, Store, StoredRun
from jackfield_serving import MemoryStore
from jackfield_testkit.suites import StoreSuite


class TestMemoryStore(StoreSuite):
    component = "memory"
    xfail: ClassVar[Mapping[str, str]] = {
        "test_a_store_that_is_closed_holds_nothing": "its records end with the object",
        "test_it_does_what_it_declares_and_nothing_else": "it is no plugin, and has no descriptor",
    }

    @pytest.fixture
    def make(self) -> Callable[..., Store]:
        store = MemoryStore()
        return lambda **_: store


@pytest.mark.parametrize("state", ["finished", "cancelled"])
def test_any_end_ends_the_hold_also_if_the_run_had_ended_so_before(state: str) -> None:
    async def main() -> None:
        store = MemoryStore()
        hold = await store.create(StoredRun(run_id="r"), ["first"])
        await store.append("r", hold, ["second"])
        assert (await store.read("r"))[0].is_held
        await store.append("r", hold, [], state="finished")
        ended, _ = await store.read("r")
        await store.append("r", await store.hold("r"), ["third"], state=state)
        run, entries = await store.read("r")
        assert (run.state, run.is_held, entries) == (state, False, ["first", "second", "third"])
        assert (run.changed == ended.changed) == (state == "finished")
        hold = await store.hold("r")
        await store.append("r", hold, [], state=RUNNING)
        assert ((await store.read("r"))[0].state, (await store.read("r"))[0].is_held) == (RUNNING, True)

    asyncio.run(main())


def test_the_entries_of_the_caller_stay_its_own_and_a_list_has_as_many_runs_as_asked_for() -> None:
    async def main() -> None:
        store, entries, hold = MemoryStore(), ["first"], 0
        for name in ("one", "two", "three"):
            hold = await store.create(StoredRun(run_id=name), entries)
        await store.append("three", hold, ["second"])
        assert entries == ["first"]
        assert [run.run_id for run in await store.runs(limit=2)] == ["three", "two"]
        assert (await store.read("one"))[1] == ["first"]
        [run] = await store.runs(limit=1)
        assert run.changed == run.began > 0

    asyncio.run(main())
