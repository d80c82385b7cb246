"""Agent trees whose process ends at any write of their record and that other processes resume.

Each process gives the agents a different system message, like a prompt that contains the date. A person decides about
calls in doubt, either after looking at what was done or by rejecting them all.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from attacks.kind import Attempt, Kind, law
from jackfield import FnCallAgent, sync, tool
from jackfield.agents import Agent
from jackfield.events import ApprovalNeeded, FunctionCallDelta, ModelEvent, ModelFinished
from jackfield.request import ChatRequest
from jackfield.results import RunResult
from jackfield.stores import Store
from jackfield.testing import ScriptedModel, answer
from jackfield.tools import ToolContext
from jackfield_records import events_of
from jackfield_testkit.records import KilledError, MemoryStore

_MOST_RESUMES = 60


@dataclass(frozen=True)
class Act:
    """An agent's call: a payment, or a question to another agent."""

    pays: str = ""
    asks: str = ""
    needs_approval: bool = False


@dataclass(frozen=True)
class Member:
    """An agent in a tree, with the calls in each of its turns and the agent to which it hands off at the end."""

    name: str
    turns: tuple[tuple[Act, ...], ...]
    helpers: tuple[Member, ...] = ()
    heir: Member | None = None


def grow(dice: random.Random, depth: int, name: str = "a") -> Member:
    """Generate a random tree."""
    helpers = (
        tuple(grow(dice, depth - 1, f"{name}{number}") for number in range(dice.choice([1, 1, 2]))) if depth else ()
    )
    heir = grow(dice, 0, f"{name}h") if dice.random() < 0.3 else None
    turns = []
    for turn in range(dice.choice([1, 2])):
        acts = [
            Act(pays=f"{name}.{turn}.{n}", needs_approval=dice.random() < 0.3) for n in range(dice.choice([0, 1, 2]))
        ]
        acts += [Act(asks=helper.name) for helper in helpers if dice.random() < 0.7]
        if helpers and dice.random() < 0.2:  # the same helper twice, concurrently
            acts.append(Act(asks=helpers[0].name))
        turns.append(tuple(acts) or (Act(pays=f"{name}.{turn}.x"),))
    return Member(name, tuple(turns), helpers, heir)


def build(member: Member, paid: Callable[[str], None], day: int, store: Store | None = None) -> FnCallAgent:
    """Create the agents of a tree."""

    def script(request: ChatRequest) -> list[ModelEvent]:
        mine = [one.function_id or "" for one in request.messages if one.function_call and one.name == member.name]
        turn = 1 + max((int(call_id.split("-")[1]) for call_id in mine), default=-1)
        if turn < len(member.turns):
            return list(_calls(member, turn))
        if turn == len(member.turns) and member.heir is not None:
            call = FunctionCallDelta(0, f"{member.name}-{turn}-0", f"transfer_to_{member.heir.name}", "{}")
            return [call, ModelFinished("tool_calls")]
        return answer(f"{member.name} is done.")

    async def pay(what: str, context: ToolContext) -> str:
        """Pay."""
        paid(f"{context.run_id}/{context.call_id}/{what}")
        return f"paid {what}"

    helpers = [build(one, paid, day).as_tool() for one in member.helpers]
    return FnCallAgent(
        [tool(pay), tool(pay, name="pay_if_allowed", needs_approval=True), *helpers],
        ScriptedModel(script, processors=[]),
        f"Today is day {day}.",
        name=member.name,
        description="Pays.",
        handoffs=[build(member.heir, paid, day)] if member.heir else [],
        store=store,
    )


def _calls(member: Member, turn: int) -> Iterator[ModelEvent]:
    for index, act in enumerate(member.turns[turn]):
        call_id = f"{member.name}-{turn}-{index}"
        if act.asks:
            yield FunctionCallDelta(index, call_id, act.asks, json.dumps({"request": "Pay."}))
        else:
            name = "pay_if_allowed" if act.needs_approval else "pay"
            yield FunctionCallDelta(index, call_id, name, json.dumps({"what": act.pays}))
    yield ModelFinished("tool_calls")


@dataclass
class Person:
    """Decides about pending calls. A person who looks approves a call in doubt only if it was not made."""

    looks: bool
    refused: set[str] = field(default_factory=set)

    def decide(self, needed: ApprovalNeeded, done: Sequence[str]) -> dict[str, bool]:
        decisions = {}
        for call_id, call in zip(needed.call_ids, needed.calls, strict=True):
            what = json.loads(call.arguments).get("what", "")
            is_doubtful = call_id in needed.in_doubt
            law(what or not is_doubtful, f"agent {call.name} is in doubt, although it was asked the same as before")
            # The path identifies the run, and within a run, each payment has its own name.
            call_of = call_id.rpartition("/")[2]
            was_made = any(one.endswith(f"/{call_of}/{what}") for one in done)
            decisions[call_id] = not is_doubtful or (self.looks and not was_made)
            if not decisions[call_id]:
                self.refused.add(what)
        return decisions


def expected(member: Member, asked: int = 1) -> Counter[str]:
    """Count the payments in an uninterrupted run of a tree."""
    count: Counter[str] = Counter()
    for act in (act for turn in member.turns for act in turn):
        if act.pays:
            count[act.pays] += asked
        for helper in member.helpers:
            if helper.name == act.asks:
                count += expected(helper, asked)
    return count + expected(member.heir, asked) if member.heir else count


def check(member: Member, done: Sequence[str], person: Person) -> None:
    """Check that each effect happened at most once, and that missing ones were reported as in doubt."""
    law(max(Counter(done).values(), default=0) <= 1, f"a call was made twice: {Counter(done).most_common(1)}")
    made = Counter(one.rpartition("/")[2] for one in done)
    for what, times in expected(member).items():
        law(made[what] <= times, f"{what} was paid {made[what]} times for {times}")
        law(made[what] == times or what in person.refused, f"{what} was not paid, and never reported as in doubt")


def needed_in(store: Store, run_id: str) -> ApprovalNeeded:
    events = (one.event for one in events_of(*sync.run(store.read(run_id))) if one.depth == 0)
    return [event for event in events if isinstance(event, ApprovalNeeded)][-1]


def _cut(seed: int, depth: int, *, looks: bool) -> None:
    """Cut off a tree's record at random writes, some of them while the tree is being resumed."""
    dice = random.Random(seed)
    member, store, done, person = grow(dice, depth), MemoryStore(), list[str](), Person(looks)
    answers: Mapping[str, bool] = {}
    result: RunResult[Any] | None = None
    for day in range(_MOST_RESUMES):
        store.early = dice.random() < 0.5
        store.writes_left = dice.randrange(1, 30) if day < 12 else 1_000_000
        agent: Agent = build(member, done.append, day, store)
        result = None
        try:
            result = agent.resume(next(iter(store.kept)), approvals=answers) if store.kept else agent.ask("Pay.")
        except KilledError:
            store.restarted()
            answers = {}
            continue
        store.restarted()
        if not result.waiting:
            break
        answers = person.decide(needed_in(store, result.run_id), done)
    law(result is not None and result.stop_reason == "finished", f"the run is stuck: {result}")
    [kept] = store.kept.values()
    law(kept.run.state == "finished", f"the record says {kept.run.state}")
    check(member, done, person)


# --- real processes -------------------------------------------------------------------------------------------------


def _killed(seed: int, depth: int, *, looks: bool) -> None:
    """Kill processes that run a tree with `kill -9`, at random writes to an SQLite file."""
    dice = random.Random(seed)
    member, person = grow(dice, depth), Person(looks)
    with tempfile.TemporaryDirectory() as folder:
        effects, answers = Path(folder, "effects"), dict[str, bool]()
        effects.touch()
        told: dict[str, Any] = {}
        for day in range(_MOST_RESUMES):
            writes = dice.randrange(1, 25) if day < 5 else 0
            words = [sys.executable, "-m", "attacks.kinds.trees", folder, str(seed), str(depth), str(day), str(writes)]
            process = subprocess.run([*words, json.dumps(answers)], capture_output=True, text=True, check=False)
            answers = {}
            if process.returncode == -signal.SIGKILL:
                continue
            law(process.returncode == 0, f"a process failed: {process.stderr[-300:]}")
            told = json.loads(process.stdout.splitlines()[-1])
            if told["reason"] != "approval_needed":
                break
            store = _sqlite(folder)
            answers = person.decide(needed_in(store, told["run_id"]), effects.read_text().split())
        law(told.get("reason") == "finished", f"the run is stuck: {told}")
        [run] = sync.run(_sqlite(folder).runs())
        law(run.state == "finished", f"the record says {run.state}")
        check(member, effects.read_text().split(), person)


def _sqlite(folder: str) -> Store:
    from jackfield.plugins import default_host
    from jackfield.stores import load_store

    return load_store({"name": "sqlite", "path": f"{folder}/runs.sqlite"}, default_host())


def main(folder: str, seed: str, depth: str, day: str, writes: str, answers: str) -> None:
    """Run or resume a tree in a process that kills itself at one of its writes."""
    member, store = grow(random.Random(int(seed)), int(depth)), _sqlite(folder)
    left, append = int(writes), store.append

    async def counting(*args: Any, **kwargs: Any) -> Any:
        nonlocal left
        left -= 1
        if left == 0 and int(day) % 2:
            os.kill(os.getpid(), signal.SIGKILL)
        written = await append(*args, **kwargs)
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return written

    def paid(what: str) -> None:
        with Path(folder, "effects").open("a") as file:
            file.write(f"{what}\n")

    store.append = counting  # type: ignore[method-assign]
    agent = build(member, paid, int(day), store)
    runs = sync.run(store.runs())
    result = agent.resume(runs[0].run_id, approvals=json.loads(answers)) if runs else agent.ask("Pay.")
    print(json.dumps({"reason": result.stop_reason, "run_id": result.run_id}))


def _attempts(dice: random.Random) -> Iterator[Attempt]:
    for number in range(1_000_000):
        seed, depth, looks = dice.randrange(10**9), dice.choice([0, 1, 1, 2, 3]), dice.random() < 0.6
        who = "one who looks" if looks else "one who refuses"
        way, act, timeout_s = ("cuts", _cut, 60) if number % 12 != 11 else ("kill -9", _killed, 150)
        name = f"{way} of tree {seed}, depth {depth}, {who}"
        yield Attempt(name, partial(act, seed, depth, looks=looks), timeout_s=timeout_s)


KIND = Kind(
    "However often the processes of a tree end, each effect happens at most once or is reported as in doubt.",
    _attempts,
    quick=12,
)

if __name__ == "__main__":
    main(*sys.argv[1:])
