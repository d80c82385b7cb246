"""Several services share one store: each follows, answers, cancels and continues the runs of the others."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from jackfield import FnCallAgent, tool
from jackfield.errors import RunNotFoundError
from jackfield.events import RunFinished
from jackfield.testing import ScriptedModel, answer, calls
from jackfield_serving import DrainingError, NotWaitingError, Numbered, Serving
from tests.support.postgresql import running_postgresql
from tests.support.serving_processes import ANSWER, CALLS, kill_servers, letters, make_agent


@pytest.fixture(scope="module")
def dsn() -> Iterator[str]:
    with running_postgresql() as dsn:
        yield dsn


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Mapping[str, Any]:
    if request.param == "sqlite":
        return {"name": "sqlite", "path": str(tmp_path / "runs.sqlite")}
    schema = f"t{abs(hash(tmp_path))}"
    return {"name": "postgres", "dsn": request.getfixturevalue("dsn"), "db_schema": schema, "connections": 3}


async def read(serving: Serving, run_id: str, after: int = 0) -> list[Numbered]:
    async with asyncio.timeout(60):
        return [one async for one in serving.attach(run_id, after=after)]


def serve(agent: FnCallAgent, store: Mapping[str, Any], **options: Any) -> Serving:
    return Serving({"clerk": agent}, store=dict(store), **{"recover_every_s": None, **options})


def test_no_run_is_lost_and_no_step_comes_twice_when_servers_are_killed(
    store: Mapping[str, Any], tmp_path: Path
) -> None:
    assert asyncio.run(kill_servers(tmp_path, store, rounds=2, servers=2)) == []


def test_of_two_answers_to_one_approval_one_counts(store: Mapping[str, Any], tmp_path: Path) -> None:
    def agent() -> FnCallAgent:
        return make_agent(tmp_path, needs_approval=True)

    async def main() -> None:
        async with serve(agent(), store) as one, serve(agent(), store) as two:
            run_id = await one.start("clerk", "Send the letters.")
            await read(one, run_id)
            for number in range(CALLS):
                [waiting] = (await two.run(run_id)).waiting
                outcomes = await asyncio.gather(
                    *(serving.answer(run_id, {waiting.call_id: True}) for serving in (one, two, one, two)),
                    return_exceptions=True,
                )
                assert outcomes.count(None) == 1
                assert [type(outcome) for outcome in outcomes if outcome is not None] == [NotWaitingError] * 3
                await read((one, two)[number % 2], run_id)
            assert (await one.run(run_id)).text == ANSWER
        assert set(letters(tmp_path).values()) == {1}

    asyncio.run(main())


def test_a_run_of_another_process_is_followed_and_cancelled(store: Mapping[str, Any], tmp_path: Path) -> None:
    async def main() -> None:
        slow = make_agent(tmp_path, pause_s=3600)
        async with serve(slow, store) as one, serve(make_agent(tmp_path), store) as two:
            run_id = await one.start("clerk", "Send the letters.")
            following = asyncio.create_task(read(two, run_id))
            while not (await two.run(run_id)).response:
                await asyncio.sleep(0.01)
            await two.cancel(run_id)
            events = await following
            assert isinstance(events[-1].event.event, RunFinished)
            assert events[-1].event.event.stop_reason == "cancelled"
            assert (await two.run(run_id)).stop_reason == "cancelled"

    asyncio.run(main())


def test_a_drained_service_leaves_its_runs_to_the_others(store: Mapping[str, Any], tmp_path: Path) -> None:
    async def main() -> None:
        async with serve(make_agent(tmp_path, pause_s=0.2), store) as one, serve(make_agent(tmp_path), store) as two:
            ids = [await one.start("clerk", "Send the letters.") for _ in range(5)]
            await asyncio.sleep(0.05)
            await one.drain(0)
            with pytest.raises(DrainingError):
                await one.start("clerk", "Send more.")
            followers = [asyncio.create_task(read(serving, run_id)) for run_id in ids for serving in (one, two)]
            await two.recover()
            for events in await asyncio.gather(*followers):
                assert isinstance(events[-1].event.event, RunFinished)
            for run_id in ids:  # calls that were under way may have been made: a person decides
                while (run := await two.run(run_id)).phase == "waiting":
                    assert [waiting.in_doubt for waiting in run.waiting] == [True]
                    made = letters(tmp_path)[f"{run_id} {sum(m.role == 'function' for m in run.response)}"]
                    await two.answer(run_id, {run.waiting[0].call_id: not made})
                    await read(two, run_id)
                assert run.text == ANSWER
        assert set(letters(tmp_path).values()) == {1}

    asyncio.run(main())


def test_a_run_waits_for_a_store_that_goes_away_and_returns(tmp_path: Path) -> None:
    path = tmp_path / "runs.sqlite"

    async def main() -> None:
        store = {"name": "sqlite", "path": str(path), "timeout_s": 0.05}
        async with serve(make_agent(tmp_path), store) as serving:
            run_id = await serving.start("clerk", "Send the letters.")
            with closing(sqlite3.connect(path, isolation_level=None)) as other:
                other.execute("BEGIN IMMEDIATE")
                following = asyncio.create_task(read(serving, run_id))
                await asyncio.sleep(0.3)
                assert not following.done()
                other.execute("ROLLBACK")
            events = await following
            assert events[-1].event.event.stop_reason == "finished"  # type: ignore[union-attr]
        assert set(letters(tmp_path).values()) == {1}

    asyncio.run(main())


def test_answers_of_a_process_that_ends_at_once_are_used_by_the_next(tmp_path: Path) -> None:
    """They are recorded before the run continues."""
    paid: list[str] = []

    @tool(needs_approval=True)
    def pay(to: str) -> str:
        """Pay."""
        paid.append(to)
        return "paid"

    def agent() -> FnCallAgent:
        return FnCallAgent(
            [pay], ScriptedModel([calls(("pay", {"to": "Ada"})), answer("Done.")][len(paid) :]), name="a"
        )

    store = {"name": "sqlite", "path": str(tmp_path / "runs.sqlite")}

    async def main() -> None:
        async with serve(agent(), store) as one:
            run_id = await one.start("clerk", "Pay.")
            await read(one, run_id)
            [waiting] = (await one.run(run_id)).waiting
            await one.answer(run_id, {waiting.call_id: True})
            await one.drain(0)  # before the agent has begun
        model = ScriptedModel([answer("Done.")])
        async with serve(FnCallAgent([pay], model, name="a"), store) as two:
            assert paid == []
            assert await two.recover() == [run_id]
            await read(two, run_id)
            assert (await two.run(run_id)).text == "Done."
        assert paid == ["Ada"]

    asyncio.run(main())


def test_ids_of_other_owners_are_unknown_in_every_process(store: Mapping[str, Any], tmp_path: Path) -> None:
    async def main() -> None:
        async with serve(make_agent(tmp_path), store) as one, serve(make_agent(tmp_path), store) as two:
            run_id = await one.start("clerk", "Send the letters.", owner="ada")
            for owner in ("", "bob"):
                with pytest.raises(RunNotFoundError):
                    await two.run(run_id, owner=owner)
                assert await two.runs(owner=owner) == []
            assert [run.run_id for run in await two.runs(owner="ada")] == [run_id]

    asyncio.run(main())


def test_a_reader_follows_a_run_past_a_pause_after_which_another_process_continued_it(
    store: Mapping[str, Any], tmp_path: Path
) -> None:
    """The process of the reader still has the events of its own part of the run."""

    async def main() -> None:
        agents = [make_agent(tmp_path, needs_approval=True) for _ in range(2)]
        async with serve(agents[0], store) as one, serve(agents[1], store) as two:
            run_id = await one.start("clerk", "Send the letters.")
            for number in range(CALLS):
                pause = (await read(one, run_id))[-1].number
                [waiting] = (await one.run(run_id)).waiting
                await (two, one)[number % 2].answer(run_id, {waiting.call_id: True})
                for after in (0, pause):
                    assert (await read(one, run_id, after))[-1].number > pause
            assert (await one.run(run_id)).text == ANSWER

    asyncio.run(main())
