"""Runs recorded in SQLite, compared to unrecorded runs and the raw client, and resuming a long run."""

from __future__ import annotations

import asyncio
import statistics
import tempfile
from pathlib import Path

from benchmarks.calls import ASK, add, our_agent, raw_client, raw_loop, repeat
from benchmarks.many import RUNS
from benchmarks.measure import Row, in_turns, wall_ms
from benchmarks.server import Servers
from jackfield import FnCallAgent
from jackfield.testing import ScriptedModel, answer, calls

STEPS = 500


def recorded(servers: Servers) -> list[Row]:
    """Measure one call, a turn with a tool call, and 200 concurrent runs, all recorded."""
    with tempfile.TemporaryDirectory() as folder, raw_client(servers.chat) as (loop, client):
        store = {"name": "sqlite", "path": str(Path(folder) / "runs.sqlite")}
        rows = []
        for label, model, tools, times in (
            ("run, one call", "short", (), 50),
            ("run of 20 turns", "tools-20", (add,), 1),
        ):
            without = our_agent(servers, model, *tools)
            kept = our_agent(servers, model, *tools, store=store)
            cpu = in_turns(
                {
                    "without": repeat(loop, lambda agent=without: agent.arun(ASK), times),  # type: ignore[misc]
                    "kept": repeat(loop, lambda agent=kept: agent.arun(ASK), times),  # type: ignore[misc]
                },
                rounds=15,
            )
            mine, plain = cpu["kept"] / times, cpu["without"] / times
            rows.append(Row(f"a recorded {label}", f"{mine:.2f} ms", f"without {plain:.2f} ms", mine / plain, "1.25"))
        agent = our_agent(servers, "tools-3-50", add, store=store)

        async def theirs() -> None:
            await asyncio.gather(*(raw_loop(client, "tools-3-50") for _ in range(RUNS)))

        async def ours() -> None:
            await asyncio.gather(*(agent.arun(ASK) for _ in range(RUNS)))

        wall = in_turns(
            {"raw": lambda: loop.run_until_complete(theirs()), "ours": lambda: loop.run_until_complete(ours())},
            rounds=5,
            clock=wall_ms,
        )
        loop.run_until_complete(agent.store.aclose() if agent.store else asyncio.sleep(0))
    raw_rate, our_rate = RUNS / wall["raw"] * 1000, RUNS / wall["ours"] * 1000
    beside = f"raw openai {raw_rate:.0f}/s"
    return [
        *rows,
        Row("200 recorded runs at once, runs/s", f"{our_rate:.0f}/s", beside, wall["raw"] / wall["ours"], "2 or more"),
    ]


def resuming() -> list[Row]:
    """Resume a run of 500 steps that was interrupted before its answer: reading its record, and one more turn."""
    turns = STEPS // 2  # an answer and a result each
    with tempfile.TemporaryDirectory() as folder:
        store = {"name": "sqlite", "path": str(Path(folder) / "runs.sqlite")}
        script = [calls(("add", {"a": number, "b": 1})) for number in range(turns)]
        limits = {"turns": turns}
        took = []
        for _ in range(7):
            ended = FnCallAgent([add], ScriptedModel(script), store=store, limits=limits).ask("Count.")
            again = FnCallAgent([add], ScriptedModel([answer("Counted.")]), store=store, limits={"turns": turns + 1})
            took.append(wall_ms(lambda agent=again, run_id=ended.run_id: agent.resume(run_id)))  # type: ignore[misc]
    return [Row(f"resume of a run of {STEPS} steps", f"{statistics.median(took):.0f} ms", "", None, "100 ms")]
