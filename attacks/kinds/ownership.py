"""Recorded agent trees whose processes are killed and whose database is cut off.

Every effect must happen once or be reported as in doubt.

`python -m attacks.kinds.ownership STORE TREES KILLS CUTS SEED` makes one attempt of any size and prints its counts.
STORE is `sqlite` or `postgres`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import random
import shutil
import signal
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from attacks.kind import Attempt, Kind, law
from jackfield import FnCallAgent, tool
from jackfield.errors import JackfieldError, RunBusyError, StoreUnavailableError
from jackfield.events import ApprovalNeeded, FunctionCallDelta, ModelEvent, ModelFinished, RunFinished
from jackfield.request import ChatRequest
from jackfield.stores import Store, StoredRun, load_store
from jackfield.testing import ScriptedModel, answer
from jackfield_postgres import Database
from jackfield_testkit.installed import plain_host
from tests.support.postgresql import running_postgresql

PAYMENTS = 3
PROCESSES = 8
AT_ONCE = 8
INTRUSION = 0.3


@dataclass
class Counts:
    """The counts of one attempt."""

    trees: int = 0
    recorded: int = 0
    busy: int = 0
    kills: int = 0
    cuts: int = 0
    effects: int = 0
    in_doubt: int = 0
    broken: list[str] = field(default_factory=list)


# --- in a process that may be killed ----------------------------------------------------------------------------------


def boss(folder: Path, store: Store) -> FnCallAgent:
    """Create an agent that asks a helper, which makes payments with approval. Both models react to what they read."""

    @tool(needs_approval=True)
    async def pay(effect: str) -> str:
        """Make a payment."""
        await asyncio.sleep(random.uniform(0, 0.1))
        with (folder / "journal").open("a", encoding="utf-8") as journal:
            journal.write(f"{effect}\n")
        await asyncio.sleep(random.uniform(0, 0.1))
        return "paid"

    def helps(request: ChatRequest) -> Any:
        tree = request.messages[-1].get_text_content() if request.messages[-1].role == "user" else ""
        tree = tree or next(one.get_text_content() for one in request.messages if one.role == "user")
        number = sum(one.role == "function" for one in request.messages)
        if number == PAYMENTS:
            return answer("paid")
        effect = f"{tree}.{number}"
        return one_call(effect, "pay", {"effect": effect})

    def asks(request: ChatRequest) -> Any:
        if request.messages[-1].role == "function":
            return answer("All is paid.")
        tree = request.messages[-1].get_text_content()
        return one_call(tree, "helper", {"request": tree})

    helper = FnCallAgent([pay], ScriptedModel(helps), name="helper", description="Pays.")
    return FnCallAgent([helper.as_tool()], ScriptedModel(asks), name="boss", store=store)


def one_call(call_id: str, name: str, arguments: dict[str, Any]) -> list[ModelEvent]:
    """Return an answer that calls one tool. Ids are never reused, so a late approval matches no later call."""
    return [FunctionCallDelta(0, id=call_id, name=name, arguments=json.dumps(arguments)), ModelFinished("tool_calls")]


async def intrude(folder: Path, store: Store, run_id: str) -> None:
    """Resume a run that another process is driving, without answering its approvals."""
    async for _ in boss(folder, store).astream((), run_id=run_id, resume=True):
        pass


async def carry_on(folder: Path, store: Store, run_id: str | None, question: str = "") -> str:
    """Run to the end, answering approvals like a person who looks up every payment in doubt."""
    approvals: dict[str, bool] | bool = True
    while True:
        options: dict[str, Any] = {"run_id": run_id, "resume": approvals} if run_id else {}
        needed: ApprovalNeeded | None = None
        end: RunFinished | None = None
        try:
            async for event in boss(folder, store).astream(question if not run_id else (), **options):
                if event.depth == 0:
                    run_id = event.run_id
                    needed = event.event if isinstance(event.event, ApprovalNeeded) else needed
                    end = event.event if isinstance(event.event, RunFinished) else end
        except RunBusyError:
            if not isinstance(approvals, dict):
                raise
            # Another process was faster, and may have made the calls that these answers belong to.
            await asyncio.sleep(random.uniform(0, 0.2))
            approvals = True
            continue
        if needed is None or end is None or end.stop_reason != "approval_needed":
            return end.stop_reason if end else "no end"
        done = set(journal_of(folder))
        approvals = {}
        for call_id, call in zip(needed.call_ids, needed.calls, strict=True):
            effect = json.loads(call.arguments).get("effect", "")
            is_doubtful = call_id in needed.in_doubt
            if is_doubtful:
                note(folder, "in_doubt", effect)
            elif effect in done:
                note(folder, "broken", f"{effect} was made, and approval is asked as if it was not")
            approvals[call_id] = effect not in done


def note(folder: Path, name: str, line: str) -> None:
    """Append a line to one of the attempt's files."""
    with (folder / name).open("a", encoding="utf-8") as file:
        file.write(line + "\n")


def lines_of(folder: Path, name: str) -> list[str]:
    """Return the lines of one of the attempt's files."""
    file = folder / name
    return file.read_text(encoding="utf-8").split("\n")[:-1] if file.exists() else []


def journal_of(folder: Path) -> list[str]:
    """Return the effects so far."""
    return lines_of(folder, "journal")


async def work(folder: Path, settings: dict[str, Any], trees: range) -> None:
    """Start these trees and finish each one, whichever process started it. Occasionally resume one of the others.

    If two processes both answered for a run, each would make the other's answers late, and no payment would be made.
    """
    store = load_store(settings, plain_host())
    titles = {f"tree{number}" for number in trees}

    async def one(work: Awaitable[Any]) -> None:
        try:
            await work
        except RunBusyError:
            note(folder, "busy", "")
        except JackfieldError as error:
            note(folder, "errors", f"{type(error).__name__}: {error}")

    while True:
        try:
            runs = await store.runs(limit=10_000)
        except StoreUnavailableError:
            await asyncio.sleep(0.1)
            continue
        begun = {run.title for run in runs}
        mine, others = _open_runs(runs, titles)
        if not mine and titles <= begun:
            return
        jobs = [carry_on(folder, store, None, title) for title in sorted(titles - begun)]
        jobs += [carry_on(folder, store, run.run_id) for run in mine[:AT_ONCE] if not run.is_held]
        jobs += [intrude(folder, store, run.run_id) for run in others[:1] if random.random() < INTRUSION]
        await asyncio.gather(*map(one, jobs))
        await asyncio.sleep(random.uniform(0, 0.1))


def _open_runs(runs: list[StoredRun], titles: set[str]) -> tuple[list[StoredRun], list[StoredRun]]:
    """Split the unfinished runs into those with these titles and all others, each in random order."""
    unfinished = [run for run in runs if run.state != "finished"]
    random.shuffle(unfinished)
    mine = [run for run in unfinished if run.title in titles]
    return sorted(mine, key=lambda run: run.is_held), [run for run in unfinished if run.title not in titles]


def start(folder: Path, settings: dict[str, Any], trees: range) -> int:
    """Fork a worker process, because starting Python takes a second, and return its id."""
    process = os.fork()
    if process:
        return process
    code = 1
    try:
        random.seed()
        logging.disable(logging.CRITICAL)
        asyncio.run(work(folder, settings, trees))
        code = 0
    except BaseException as error:
        note(folder, "errors", f"the process ended: {type(error).__name__}: {error}")
    finally:
        os._exit(code)


# --- the attack ---------------------------------------------------------------------------------------------------


def cut_postgres(dsn: str) -> None:
    """Terminate all sessions of the database."""
    database = Database(dsn, timeout_s=30)
    with contextlib.closing(database.connect()) as connection:
        connection.run(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
        )


def cut_sqlite(path: Path, seconds: float) -> None:
    """Lock the file for a while."""
    with contextlib.closing(sqlite3.connect(path, timeout=30, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        time.sleep(seconds)
        other.execute("ROLLBACK")


def attack(kind: str, *, trees: int, kills: int, cuts: int, dice: random.Random, limit_s: float) -> Counts:
    """Run trees in several processes, kill these and cut off the database, and count the outcomes."""
    folder = Path(tempfile.mkdtemp())
    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        if kind == "postgres":
            _open_folders_of_attempt()
            dsn = stack.enter_context(running_postgresql())
            settings: dict[str, Any] = {"name": "postgres", "dsn": dsn, "connections": 3, "timeout_s": 20}
            cut = partial(cut_postgres, dsn)
        else:
            path = folder / "runs.sqlite"
            settings = {"name": "sqlite", "path": str(path), "timeout_s": 0.2}
            cut = partial(cut_sqlite, path, 0.3)
        return _attack(folder, settings, cut, trees, kills, cuts, dice, limit_s)


def _open_folders_of_attempt() -> None:
    """Let other users traverse the attempt's private directories, because PostgreSQL refuses to run as root."""
    passed: list[Path] = []
    for folder in (Path(tempfile.gettempdir()), *Path(tempfile.gettempdir()).parents):
        passed.append(folder)
        if folder.name.startswith("attack-"):
            for private in passed:
                private.chmod(0o711)
            return


def _attack(
    folder: Path,
    settings: dict[str, Any],
    cut: Any,
    trees: int,
    kills: int,
    cuts: int,
    dice: random.Random,
    limit_s: float,
) -> Counts:
    counts = Counts(trees=trees)
    processes: dict[int, range] = {}
    ends_at = time.monotonic() + limit_s
    share = -(-trees // PROCESSES)
    try:
        for first in range(0, trees, share):
            own = range(first, min(first + share, trees))
            processes[start(folder, settings, own)] = own
        blows = ["kill"] * kills + ["cut"] * cuts
        dice.shuffle(blows)
        time.sleep(0.5)
        for blow in blows:
            if not processes or time.monotonic() > ends_at:
                break
            time.sleep(dice.uniform(0.02, 0.2))
            if blow == "cut":
                cut()
                counts.cuts += 1
            else:
                victim = dice.choice(sorted(processes))
                os.kill(victim, signal.SIGKILL)
                os.waitpid(victim, 0)
                own = processes.pop(victim)
                counts.kills += 1
                processes[start(folder, settings, own)] = own
            _forget_ended(processes)
        while processes and time.monotonic() < ends_at:
            _forget_ended(processes)
            time.sleep(0.05)
        if processes:
            counts.broken.append(f"{len(processes)} processes did not come to an end")
    finally:
        for process in processes:
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
    _judge(folder, settings, counts)
    return counts


def _forget_ended(processes: dict[int, range]) -> None:
    for process in list(processes):
        if os.waitpid(process, os.WNOHANG)[0]:
            del processes[process]


def _judge(folder: Path, settings: dict[str, Any], counts: Counts) -> None:
    effects = Counter(journal_of(folder))
    counts.effects, counts.in_doubt = effects.total(), len(lines_of(folder, "in_doubt"))
    counts.busy = len(lines_of(folder, "busy"))
    counts.broken += lines_of(folder, "broken")
    counts.broken += [f"{effect} was made {times} times" for effect, times in effects.items() if times > 1]
    errors = Counter(line[:200] for line in lines_of(folder, "errors"))
    if os.environ.get("SHOW_ERRORS"):
        print(*errors.most_common(10), sep="\n")

    async def states() -> dict[str, Any]:
        store = load_store(settings, plain_host())
        runs = {run.title: run for run in await store.runs(limit=10_000)}
        await store.aclose()
        return runs

    runs = asyncio.run(states())
    for title, run in runs.items():
        made = sum(effect.startswith(f"{title}.") for effect in effects)
        if run.is_held or run.state != "finished":
            counts.broken.append(f"{title} is {run.state}, held: {run.is_held}")
        elif made != PAYMENTS:
            counts.broken.append(f"{title} is finished, and {made} of its {PAYMENTS} payments were made")
    counts.recorded = len(runs)
    if counts.recorded != counts.trees:
        counts.broken.append(f"{counts.recorded} of {counts.trees} trees are recorded")
    unknown = {effect.partition(".")[0] for effect in effects} - runs.keys()
    counts.broken += [f"{title} has effects and no record" for title in sorted(unknown)]


def _attempt(kind: str, trees: int, kills: int, cuts: int, seed: int) -> None:
    counts = attack(kind, trees=trees, kills=kills, cuts=cuts, dice=random.Random(seed), limit_s=150)
    law(not counts.broken, "; ".join(counts.broken[:5]))
    law(counts.effects, "nothing was done")


def _attempts(dice: random.Random) -> Iterator[Attempt]:
    while True:
        for kind in ("sqlite", "postgres"):
            trees, kills, cuts, seed = (
                dice.randrange(8, 16),
                dice.randrange(3, 8),
                dice.randrange(1, 4),
                dice.randrange(10**6),
            )
            name = f"{kills} kills and {cuts} cuts under {trees} trees in {kind}"
            yield Attempt(name, partial(_attempt, kind, trees, kills, cuts, seed), counts=kills + cuts, timeout_s=200)


KIND = Kind(
    "However processes and databases fail, each effect happens once or is in doubt, and each run ends correctly.",
    _attempts,
    quick=2,
)


if __name__ == "__main__":
    store_kind, trees_, kills_, cuts_, seed_ = sys.argv[1], *map(int, sys.argv[2:6])
    told = attack(store_kind, trees=trees_, kills=kills_, cuts=cuts_, dice=random.Random(seed_), limit_s=600)
    print(told)
    sys.exit(bool(told.broken))
