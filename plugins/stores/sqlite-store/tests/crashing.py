"""A program that kills itself, or is killed, in the middle of recorded runs, and resumes each in another process.

It prints one line of JSON for each: where it was killed, what the tools have done, how it ended. It forks: starting
Python anew for each would take a second. So nothing here starts a thread.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from jackfield import FnCallAgent, tool
from jackfield.errors import RunBusyError
from jackfield.request import ChatRequest
from jackfield.stores import RUNNING, StoredRun
from jackfield.testing import ScriptedModel, answer, calls
from jackfield.tools import BaseTool
from jackfield_sqlite_store.store import SQLiteStore

SCRIPT: list[Any] = [
    calls(("pay", {"to": "Ada"}), ("pay", {"to": "Bob"})),
    calls(("pay", {"to": "Cleo"})),
    answer("All are paid."),
]
WRITES = 7
# Begin, turn; below: begin, turn, 2 results, turn, result, turn and end; result; turn and end.
WRITES_OF_TREE = 11


class Deadly(SQLiteStore):
    """Kills its process at one write: before it, or after it."""

    left = WRITES + 1
    early = False

    async def create(self, run: StoredRun, entries: Sequence[str]) -> int:
        self.count(before=True)
        hold = await super().create(run, entries)
        self.count(before=False)
        return hold

    async def append(self, run_id: str, hold: int, entries: Sequence[str], *, state: str = RUNNING) -> None:
        is_write = bool(entries) or state != RUNNING  # else it asks whether the run is still held, on a slow machine
        if is_write:
            self.count(before=True)
        await super().append(run_id, hold, entries, state=state)
        if is_write:
            self.count(before=False)

    def count(self, *, before: bool) -> None:
        self.left -= before
        if not self.left and self.early == before:
            os.kill(os.getpid(), signal.SIGKILL)


def tools(folder: Path, pause_s: float = 0.0) -> list[BaseTool]:
    """A tool whose effect is a line in a file, which outlives the process."""

    @tool
    async def pay(to: str) -> str:
        """Pay somebody."""
        await asyncio.sleep(pause_s)
        with (folder / "done").open("a", encoding="utf-8") as file:
            file.write(f"{to}\n")
        await asyncio.sleep(pause_s)
        return f"paid {to}"

    return [pay]


def boss(folder: Path, store: SQLiteStore) -> FnCallAgent:
    """Asks a helper, who pays. Their models go by what they read, so that it does not matter who asks them when."""

    def helps(request: ChatRequest) -> Any:
        results = sum(message.role == "function" for message in request.messages)
        return SCRIPT[max(0, results - 1)]

    def asks(request: ChatRequest) -> Any:
        is_done = request.messages[-1].role == "function"
        return answer("All are paid.") if is_done else calls(("helper", {"request": "Pay them."}))

    helper = FnCallAgent(tools(folder), ScriptedModel(helps), name="helper", description="Pays.")
    return FnCallAgent([helper.as_tool()], ScriptedModel(asks), name="boss", store=store)


def first_of_tree(folder: Path, point: int) -> None:
    """Run a tree until the process is killed."""
    store = Deadly(path=folder / "runs.sqlite")
    store.left = point
    asyncio.run(boss(folder, store).aask("Pay them."))


def second_of_tree(folder: Path) -> None:
    """Resume a tree; of calls that are in doubt, those are made whose effect is not there."""
    store = SQLiteStore(path=folder / "runs.sqlite")
    [run] = asyncio.run(store.runs())
    before, asked = done(folder), 0
    result = asyncio.run(boss(folder, store).aresume(run.run_id))
    if result.stop_reason == "approval_needed":
        asked = len(result.waiting)
        approvals = {name: json.loads(call.arguments)["to"] not in before for name, call in result.waiting.items()}
        result = asyncio.run(boss(folder, store).aresume(run.run_id, approvals=approvals))
    entries = asyncio.run(store.read(run.run_id))[1]
    answers = sum('"TurnFinished"' in entry for entry in entries)
    told = {"done": done(folder), "end": result.stop_reason, "answers": answers, "asked": asked}
    print(json.dumps(told), flush=True)


def done(folder: Path) -> list[str]:
    """Who was paid, however often."""
    file = folder / "done"
    return sorted(file.read_text(encoding="utf-8").split()) if file.exists() else []


def first(folder: Path, point: int, early: bool) -> None:
    """Run until the process is killed."""
    store = Deadly(path=folder / "runs.sqlite")
    store.left, store.early = point, early
    asyncio.run(FnCallAgent(tools(folder), ScriptedModel(SCRIPT), store=store).aask("Pay them."))


def slowly(folder: Path) -> None:
    """Run for as long as somebody lets it."""
    store = SQLiteStore(path=folder / "runs.sqlite")
    asyncio.run(FnCallAgent(tools(folder, 0.002), ScriptedModel(SCRIPT), store=store).aask("Pay."))


def second(folder: Path) -> None:
    """Resume what is there; of calls that are in doubt, those are made whose effect is not there."""
    store = SQLiteStore(path=folder / "runs.sqlite")
    listed = asyncio.run(store.runs())
    if not listed:
        print(json.dumps({"done": done(folder), "end": "no run"}), flush=True)
        return
    [run] = listed
    before, asked = done(folder), 0

    def agent() -> FnCallAgent:
        turns = sum('"TurnFinished"' in entry for entry in asyncio.run(store.read(run.run_id))[1])
        return FnCallAgent(tools(folder), ScriptedModel(SCRIPT[turns:]), store=store)

    result = asyncio.run(agent().aresume(run.run_id))
    if result.stop_reason == "approval_needed":
        assert done(folder) == before, "nothing is made while somebody is asked"
        asked = len(result.waiting)
        approvals = {name: json.loads(call.arguments)["to"] not in before for name, call in result.waiting.items()}
        result = asyncio.run(agent().aresume(run.run_id, approvals=approvals))
    told = {"done": done(folder), "end": result.stop_reason, "text": result.text, "asked": asked, "held": run.is_held}
    print(json.dumps(told), flush=True)


def forked(work: Callable[[], None]) -> int:
    """Do some work in a process of its own; gives its id."""
    process = os.fork()
    if process:
        return process
    try:
        work()
    except BaseException as error:
        print(json.dumps({"error": f"{type(error).__name__}: {error}"}), flush=True)
    os._exit(0)


def main(folder: Path, seed: int) -> None:
    """Kill at each write, and at some moments."""
    (folder / "warm").mkdir()
    slowly(folder / "warm")  # here, so that no child has to load and compile what this does
    for point in range(1, WRITES + 1):
        for early in (True, False):
            place = folder / f"{point} {early}"
            place.mkdir()
            _, status = os.waitpid(forked(lambda: first(place, point, early)), 0)  # noqa: B023 - it is done at once
            assert os.WIFSIGNALED(status), (point, early, status)
            os.waitpid(forked(lambda: second(place)), 0)  # noqa: B023
    random.seed(seed)
    for number in range(4):
        place = folder / f"moment {number}"
        place.mkdir()
        process = forked(lambda: slowly(place))  # noqa: B023
        time.sleep(random.uniform(0, 0.05))
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
        os.waitpid(forked(lambda: second(place)), 0)  # noqa: B023
    for point in range(1, WRITES_OF_TREE + 1):
        place = folder / f"tree {point}"
        place.mkdir()
        os.waitpid(forked(lambda: first_of_tree(place, point)), 0)  # noqa: B023
        os.waitpid(forked(lambda: second_of_tree(place)), 0)  # noqa: B023
    asyncio.run(in_a_child(folder / "child.sqlite"))


async def in_a_child(path: Path) -> None:
    """What a process holds is not its child's, and is still its own after that."""
    store = SQLiteStore(path=path)
    hold = await store.create(StoredRun(run_id="r"), ["first"])
    os.waitpid(forked(lambda: childs(store, hold)), 0)
    await store.append("r", hold, ["second"])
    print(json.dumps((await store.read("r"))[1]), flush=True)


def childs(store: SQLiteStore, hold: int) -> None:
    """What a child gets that wants to use what its parent holds."""
    loop = asyncio.new_event_loop()
    asyncio._set_running_loop(None)  # its parent's
    for work in (store.append("r", hold, ["a child's"]), store.hold("r")):
        try:
            loop.run_until_complete(work)
        except RunBusyError as error:
            print(json.dumps(str(error)), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
