"""Served runs compared to the agent alone: the cost of a call and a chunk, and the time to attach to a long run."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from benchmarks.measure import Row, in_turns
from jackfield import FnCallAgent, tool
from jackfield.events import ModelFinished, TextDelta
from jackfield.messages import FUNCTION
from jackfield.request import ChatRequest
from jackfield.testing import ScriptedModel, Step, answer, calls
from jackfield_serving import Serving

_Work: TypeAlias = Callable[[], Coroutine[Any, Any, None]]

CALLS = 50
CHUNKS = 5_000
TURNS = 100
CHUNKS_OF_A_TURN = 98  # more than 100, including the surrounding events


def served() -> list[Row]:
    """Measure one call and one chunk, served and alone, and attaching to a run of 10,000 events."""
    with asyncio.Runner() as runner:
        return [*runner.run(_costs("in memory", None)), *runner.run(_in_sqlite()), *runner.run(_attaching())]


async def _in_sqlite() -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        return await _costs("in SQLite", {"name": "sqlite", "path": str(Path(folder) / "runs.sqlite")})


async def _costs(where: str, store: dict[str, object] | None) -> list[Row]:
    loop = asyncio.get_running_loop()
    rows: list[Row] = []
    short, long = answer("The tide is low."), [*[TextDelta("piece ")] * CHUNKS, ModelFinished("stop")]
    for label, step, times, limit in (("call", short, CALLS, 300.0), ("chunk", long, 1, 15.0)):
        agent = FnCallAgent(llm=ScriptedModel(lambda _, step=step: step), name="a", store=store)  # type: ignore[misc]
        async with Serving({"a": agent}, store=store) as serving:

            async def alone(agent: FnCallAgent = agent, times: int = times) -> None:
                for _ in range(times):
                    async for _event in agent.astream("Tide?"):
                        pass

            async def through(serving: Serving = serving, times: int = times) -> None:
                for _ in range(times):
                    run_id = await serving.start("a", "Tide?")
                    async for _event in serving.attach(run_id):
                        pass

            works: dict[str, _Work] = {"alone": alone, "served": through}
            cpu = await loop.run_in_executor(None, _measure, loop, works)
        count = times if label == "call" else CHUNKS
        extra = (cpu["served"] - cpu["alone"]) / count * 1000
        plain = cpu["alone"] / count * 1000
        title = f"a served {label} {where}, more than alone"
        rows.append(Row(title, f"{extra:.1f} µs", f"alone {plain:.1f} µs", extra / limit, f"1 ({limit:g} µs)"))
    return rows


def _measure(loop: asyncio.AbstractEventLoop, work: Mapping[str, _Work]) -> dict[str, float]:
    def once(function: _Work) -> None:
        asyncio.run_coroutine_threadsafe(function(), loop).result()

    return in_turns({name: partial(once, function) for name, function in work.items()}, rounds=9)


async def _attaching() -> list[Row]:
    @tool
    def look() -> str:
        """Look."""
        return "nothing"

    def script(request: ChatRequest) -> Step:
        done = sum(message.role == FUNCTION for message in request.messages)
        pieces = [TextDelta("piece ")] * CHUNKS_OF_A_TURN
        return [*pieces, *(calls(("look", {})) if done < TURNS - 1 else [ModelFinished("stop")])]

    agent = FnCallAgent([look], ScriptedModel(script), name="a", limits={"turns": TURNS + 1})
    loop = asyncio.get_running_loop()
    with tempfile.TemporaryDirectory() as folder:
        store = {"name": "sqlite", "path": str(Path(folder) / "runs.sqlite")}
        async with Serving({"a": agent}, store=store) as serving, Serving({"a": agent}, store=store) as other:
            run_id = await serving.start("a", "Look.")
            events = len([one async for one in serving.attach(run_id)])
            rows: list[Row] = []
            for label, service in (("its process", serving), ("another process", other)):

                async def attach(service: Serving = service) -> None:
                    async for _ in service.attach(run_id):
                        pass

                def once(attach: object = attach) -> None:
                    asyncio.run_coroutine_threadsafe(attach(), loop).result()  # type: ignore[operator]

                wall = await loop.run_in_executor(
                    None,
                    lambda once=once: in_turns({"attach": once}, rounds=9),  # type: ignore[misc]
                )
                title = f"attaching to a run of {events} events in {label}"
                rows.append(Row(title, f"{wall['attach']:.1f} ms", "", wall["attach"] / 30, "1 (30 ms)"))
            return rows
