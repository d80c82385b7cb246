"""Rows 6 and 7: concurrent tools and concurrent runs."""

from __future__ import annotations

import asyncio
import time
import tracemalloc
from typing import Any

from benchmarks.calls import ASK, _qwen, add, our_agent, raw_client, raw_loop
from benchmarks.measure import Row, in_turns, wall_ms
from benchmarks.server import Servers
from jackfield import tool

RUNS = 200


@tool(name="wait")
def wait_blocking() -> str:
    """Wait a tenth of a second."""
    time.sleep(0.1)
    return "done"


@tool(name="wait")
async def wait_async() -> str:
    """Wait a tenth of a second."""
    await asyncio.sleep(0.1)
    return "done"


def parallel_tools(servers: Servers, qwen_python: str | None) -> list[Row]:
    """Run eight tools of 100 ms in one turn, blocking and async, through the sync and the async API."""
    loop = asyncio.new_event_loop()
    works: dict[str, Any] = {}
    for kind, waiting in (("blocking", wait_blocking), ("async", wait_async)):
        agent = our_agent(servers, "parallel-8", waiting)
        other = our_agent(servers, "parallel-8", waiting)
        works[f"{kind} tools, sync API"] = lambda agent=agent: agent.run_nonstream(ASK)
        works[f"{kind} tools, async API"] = lambda agent=other: loop.run_until_complete(agent.arun(ASK))
    wall = in_turns(works, rounds=5, clock=wall_ms)
    rows = [
        Row(f"6 eight {name}", f"{took:.0f} ms", "the slowest tool 100 ms", took / 100, "1.15")
        for name, took in wall.items()
    ]
    if qwen_python:
        ours = wall["blocking tools, sync API"]
        qwen = _qwen(qwen_python, "parallel", servers.chat)
        rows.append(Row("6 the same by Qwen-Agent", f"{ours:.0f} ms", f"Qwen-Agent {qwen:.0f} ms", ours / qwen))
    return rows


def concurrent_runs(servers: Servers) -> list[Row]:
    """Run 200 concurrent runs of three tool calls with a model that takes 50 ms: runs per second, memory per run."""
    with raw_client(servers.chat) as (loop, client):
        agent = our_agent(servers, "tools-3-50", add)

        async def theirs() -> None:
            await asyncio.gather(*(raw_loop(client, "tools-3-50") for _ in range(RUNS)))

        async def ours() -> None:
            await asyncio.gather(*(agent.arun(ASK) for _ in range(RUNS)))

        wall = in_turns(
            {"raw": lambda: loop.run_until_complete(theirs()), "ours": lambda: loop.run_until_complete(ours())},
            rounds=5,
            clock=wall_ms,
        )
        ratio = wall["raw"] / wall["ours"]
        raw_rate, our_rate = RUNS / wall["raw"] * 1000, RUNS / wall["ours"] * 1000
        tracemalloc.start()
        loop.run_until_complete(ours())
        before, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        loop.run_until_complete(ours())
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    per_run = (peak - before) / RUNS / 1024
    return [
        Row("7 200 runs at once, runs/s", f"{our_rate:.0f}/s", f"raw openai {raw_rate:.0f}/s", ratio, "2.5 or more"),
        Row("7 memory of a run", f"{per_run:.0f} KB", "", None, "60 KB"),
    ]
