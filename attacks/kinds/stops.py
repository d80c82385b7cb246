"""Runs that are stopped during their calls: by cancellation, a time limit, or a consumer that leaves."""

from __future__ import annotations

import asyncio
import json
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import Any

from attacks.kind import Attempt, Kind, law
from jackfield import FnCallAgent, sync, tool
from jackfield.events import FunctionCallDelta, ModelFinished, RunFinished, ToolFinished
from jackfield.streams import CancelToken, closing
from jackfield.testing import ScriptedModel, answer
from jackfield.tools import STOPPED, BaseTool
from jackfield_testkit.records import MemoryStore

_WAYS = ("quick", "slow", "thread", "row", "stubborn")


class World:
    """A log of effects, written by the tools themselves."""

    def __init__(self, dice: random.Random) -> None:
        self.began: Counter[str] = Counter()
        self.ended: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._s = dice.choice([0.0, 0.001, 0.004])

    def note(self, counter: Counter[str], what: str) -> None:
        with self._lock:
            counter[what] += 1

    def tools(self) -> list[BaseTool]:
        """Return one tool for each way of taking its time."""

        async def quick(what: str) -> str:
            """Act."""
            self.note(self.began, what)
            await asyncio.sleep(0)
            self.note(self.ended, what)
            return f"done {what}"

        async def slow(what: str) -> str:
            """Act."""
            self.note(self.began, what)
            await asyncio.sleep(self._s)
            self.note(self.ended, what)
            return f"done {what}"

        def thread(what: str) -> str:
            """Act."""
            self.note(self.began, what)
            time.sleep(self._s)
            self.note(self.ended, what)
            return f"done {what}"

        async def stubborn(what: str) -> str:
            """Act."""
            self.note(self.began, what)
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(self._s)
            self.note(self.ended, what)
            return f"done {what}"

        in_a_row = tool(slow, name="row", concurrent=False)
        return [tool(quick), tool(slow), tool(thread), tool(stubborn), in_a_row]


def _stopped(seed: int, by: str) -> None:
    dice = random.Random(seed)
    world, store, token = World(dice), MemoryStore(), CancelToken()
    names = [dice.choice(_WAYS) for _ in range(dice.randrange(1, 7))]
    asked = [
        FunctionCallDelta(index, f"c{index}", name, json.dumps({"what": f"w{index}"}))
        for index, name in enumerate(names)
    ]
    script: list[Any] = [[*asked, ModelFinished("tool_calls")], answer("All done.")]
    after_s = dice.choice([0.0, 0.0005, 0.002, 0.006])
    limits = {"seconds": max(after_s, 0.0005)} if by == "time" else {}
    agent = FnCallAgent(world.tools(), ScriptedModel(script, processors=[]), store=store, limits=limits)
    seen: list[Any] = []

    async def run() -> None:
        async with closing(agent.astream("Go.", cancel=token)) as events:
            reads = dice.randrange(2, 14)
            async for event in events:
                seen.append(event.event)
                if len(seen) == 1 and by == "cancel":
                    asyncio.get_running_loop().call_later(after_s, token.cancel)
                if by == "reader" and len(seen) == reads:
                    break

    sync.run(run())
    results = {event.call_id: event for event in seen if isinstance(event, ToolFinished)}
    told = sum(isinstance(event, ToolFinished) for event in seen)
    law(told == len(results), "a call has two results")
    if isinstance(seen[-1], RunFinished):
        _check_results(world, results, seen[-1])
    before = Counter(world.began)
    store.restarted()
    _check_resumed(world, store, before)


def _check_results(world: World, results: dict[str, ToolFinished], end: RunFinished) -> None:
    calls = [message for message in end.messages if message.function_call]
    law(len(results) == len(calls), f"{len(calls)} calls have {len(results)} results")
    for call_id, result in results.items():
        what, text = f"w{call_id[1:]}", result.message.get_text_content()
        if "Nothing was done" in text:
            law(not world.began[what], f"{what} began, and the model reads {text!r}")
        elif result.error == STOPPED:
            law(result.metadata.get("in_doubt") is True and "may have been done" in text, f"{what}: {text!r}")
        else:
            law(text == f"done {what}" and world.ended[what] == 1, f"{what}: {text!r}, done {world.ended[what]} times")


def _check_resumed(world: World, store: MemoryStore, before: Counter[str]) -> None:
    if not store.kept:
        return
    agent = FnCallAgent(world.tools(), ScriptedModel(lambda _: answer("All done."), processors=[]), store=store)
    [run_id] = store.kept
    if not store.events("TurnFinished"):
        return
    result = agent.resume(run_id)
    for _ in range(3):
        if not result.waiting:
            break
        result = agent.resume(run_id, approvals=dict.fromkeys(result.waiting, False))
    law(result.stop_reason == "finished", f"the resumed run ended with {result.stop_reason}")
    law(max(world.began.values(), default=0) <= 1, f"a call was repeated: {world.began}")
    law(before <= world.began, "a count went backwards")


def _attempts(dice: random.Random) -> Iterator[Attempt]:
    while True:
        seed, by = dice.randrange(10**9), dice.choice(["cancel", "cancel", "time", "reader"])
        yield Attempt(f"stopped by {by}, {seed}", partial(_stopped, seed, by), timeout_s=40)


KIND = Kind(
    "A stopped call is reported as not made only if it never started, and it is never repeated without approval.",
    _attempts,
    quick=40,
)
