"""A service keeps nothing of a run that has ended, beyond its limits."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator

import pytest

from jackfield import FnCallAgent, tool
from jackfield.errors import RunNotFoundError
from jackfield.request import ChatRequest
from jackfield.stores import StoredRun
from jackfield.streams import closing
from jackfield.testing import ScriptedModel, Step, answer, calls
from jackfield_serving import MemoryStore, Serving, ServingLimits
from jackfield_testkit.streams import work_of

ENDS = ("finish", "fail", "pay", "leave", "delete", "cancel")


@tool(needs_approval=True)
def pay(amount: int) -> str:
    """Pay a sum."""
    return f"paid {amount}"


def script(request: ChatRequest) -> Step:
    last = request.messages[-1]
    if last.role == "user" and last.content == "fail":
        return [ValueError("broken model")]
    if last.role == "user" and last.content in ("pay", "cancel"):
        return calls(("pay", {"amount": 3}))
    return answer("Done.")


def sizes_of(root: object) -> dict[str, int]:
    """Return the sizes of all collections that a service and its parts hold."""

    def walk(one: object, path: str) -> Iterator[tuple[str, int]]:
        for name, value in vars(one).items():
            if isinstance(value, dict | set | deque | list):
                yield f"{path}.{name}", len(value)
            elif type(value).__module__.startswith("jackfield_serving.") and hasattr(value, "__dict__"):
                yield from walk(value, f"{path}.{name}")

    return dict(walk(root, "serving"))


async def run_once(serving: Serving, end: str, number: int) -> None:
    run_id = await serving.start("a", end, owner="ada", session=f"s{number}")
    async with closing(serving.attach(run_id, owner="ada")) as events:
        async for _ in events:
            if end == "leave":
                break
    if end == "pay":
        waiting = (await serving.run(run_id, owner="ada")).waiting
        await serving.answer(run_id, {one.call_id: True for one in waiting}, owner="ada")
    elif end == "cancel":
        await serving.cancel(run_id, owner="ada")
    async for _ in serving.attach(run_id, owner="ada"):
        pass
    if end == "delete":
        await serving.delete(run_id, owner="ada")


def test_nothing_grows_with_the_number_of_runs() -> None:
    async def main() -> None:
        agent = FnCallAgent([pay], ScriptedModel(script), name="a")
        async with Serving({"a": agent}, limits=ServingLimits(kept_runs=10)) as serving:
            for number in range(48):  # a service keeps the events of the latest 32 runs
                await run_once(serving, ENDS[number % len(ENDS)], number)
            before = sizes_of(serving)
            for number in range(48, 96):
                await run_once(serving, ENDS[number % len(ENDS)], number)
            after = sizes_of(serving)
            assert {
                "serving._owners",
                "serving._starting",
                "serving._driver.live",
                "serving._store._held",
            } <= after.keys()
            # Owners of 10,000 runs: see below.
            growing = {name for name, size in after.items() if size > before[name] and name != "serving._owners"}
            assert growing == set()
            assert 10 <= len(serving._driver.live) <= 32
            assert serving.active == 0

    asyncio.run(main())


@pytest.mark.parametrize("end", ["finish", "pay"])
def test_a_run_costs_the_same_however_many_are_kept(end: str) -> None:
    def work_beside(kept: int) -> int:
        store = MemoryStore(max_runs=kept)
        serving = Serving({"a": FnCallAgent([pay], ScriptedModel(script), name="a")}, store=store)

        async def fill() -> None:
            for number in range(kept):
                for state in ("finished", "approval_needed"):
                    run_id = f"{number} {state}"
                    hold = await store.create(StoredRun(run_id=run_id, agent="a"), ["{}"])
                    await store.append(run_id, hold, [], state=state)
            await run_once(serving, end, 0)

        with asyncio.Runner() as runner:
            runner.run(fill())
            return work_of(lambda: runner.run(run_once(serving, end, 0)), [0])

    assert work_beside(1_000) < 1.1 * work_beside(100)


def test_the_oldest_owners_are_forgotten_and_read_again() -> None:
    async def main() -> None:
        agent = FnCallAgent([pay], ScriptedModel(script), name="a")
        async with Serving({"a": agent}) as serving:
            run_id = await serving.start("a", "finish", owner="ada")
            for number in range(10_050):
                serving._remember_owner(f"run-{number}", "bob")
            assert len(serving._owners) == 10_000
            assert run_id not in serving._owners
            assert (await serving.run(run_id, owner="ada")).owner == "ada"
            with pytest.raises(RunNotFoundError):
                await serving.run(run_id, owner="bob")

    asyncio.run(main())
