"""Servers that fail while many runs are in progress on all backends."""

from __future__ import annotations

import asyncio
import random
import re
from collections import Counter
from collections.abc import Iterator

from attacks.kind import Attempt, Broke, Kind
from attacks.speaking import BACKENDS, Ended, arun, model_of, server_of
from jackfield import sync, tool
from jackfield.agents import FnCallAgent
from jackfield.models import BaseChatModel
from jackfield_testkit import replies
from jackfield_testkit.replies import Reply
from jackfield_testkit.server import RecordedRequest

RUNS = 64
STEPS = 3
RETRIES = 60  # with half of all answers corrupted, one run in 10^17 fails by bad luck
_MARK = re.compile(r"mark-\d+-\d+")


class _Faulty:
    """Plays the model: makes each run note its mark once per turn, and corrupts some of the answers."""

    def __init__(self, dice: random.Random, rate: float) -> None:
        self._dice = dice
        self._rate = rate

    def __call__(self, request: RecordedRequest) -> Reply:
        messages = request.json["messages"]
        mark = _MARK.search(str(messages))
        results = sum(message["role"] == "tool" for message in messages)
        said = mark[0] if mark else "no mark"
        good = replies.text(f"the end of {said} 🎛 线缆")
        if results < STEPS:
            good = replies.tool_call("note", {"mark": said, "step": results}, id=f"call_{results}")
        return self._spoiled(good) if self._dice.random() < self._rate else good

    def _spoiled(self, good: Reply) -> Reply:
        at = self._dice.randrange(1, max(2, len(good.chunks)))
        choices = (
            replies.error(self._dice.choice([500, 502, 503, 529])),
            replies.error(429, headers={"Retry-After": "0"}),
            good.reset_after(at),
            good.reset_after(0),
            good.broken_after(at, "end"),
            good.broken_after(at, "malformed"),
            replies.raw(b"<html>bad gateway</html>", {"Content-Type": "text/html"}, status=502),
            replies.raw(b"\xff\xfe", {"Content-Type": "application/json"}),
            good.written(headers={"Connection": "close"}).broken_after(at, "end"),
        )
        return self._dice.choice(choices)


def _batch(number: int, dice: random.Random, rate: float) -> None:
    noted: Counter[tuple[str, int]] = Counter()

    @tool
    def note(mark: str, step: int) -> str:
        """Note a mark."""
        noted[mark, step] += 1
        return f"noted {mark}"

    for backend in BACKENDS:
        server_of(backend).clear()
        server_of(backend).respond(_Faulty(random.Random(dice.random()), rate))
    models = [_model(backend) for backend in BACKENDS]

    async def one(index: int) -> str:
        mark = f"mark-{number}-{index}"
        try:
            ended = await arun(FnCallAgent([note], models[index % len(models)]), f"go on with {mark}")
            return _fault_of(ended, mark, noted)
        except Exception as error:
            return f"{mark} was lost: {type(error).__name__}: {error}"

    async def all_of_them() -> list[str]:
        return await asyncio.gather(*map(one, range(RUNS)))

    if broken := [reason for reason in sync.run(all_of_them()) if reason]:
        raise Broke(*broken)


_models: dict[str, BaseChatModel] = {}


def _model(backend: str) -> BaseChatModel:
    if backend not in _models:
        _models[backend] = model_of(backend, retries=RETRIES)
    return _models[backend]


def _fault_of(ended: Ended, mark: str, noted: Counter[tuple[str, int]]) -> str:
    if ended.reason != "finished":
        return f"{mark} ended with {ended.reason!r}"
    if ended.text != f"the end of {mark} 🎛 线缆":
        return f"{mark} was answered {ended.text!r}"
    if any(noted[mark, step] != 1 for step in range(STEPS)):
        return f"{mark} was noted {[noted[mark, step] for step in range(STEPS)]} times"
    try:
        ended.check_history()
    except Broke as broke:
        return str(broke)
    return ""


def _attempts(dice: random.Random) -> Iterator[Attempt]:
    number = 0
    while True:
        rate = 0.0 if number == 0 else dice.uniform(0.05, 0.5)
        batch = random.Random(dice.random())
        yield Attempt(
            f"{RUNS} runs on {len(BACKENDS)} backends, {rate:.0%} faults",
            lambda number=number, batch=batch, rate=rate: _batch(number, batch, rate),  # type: ignore[misc]
            counts=RUNS,
            timeout_s=60,
        )
        number += 1


KIND = Kind(
    "However often servers fail, no run is lost, mixed up with another run or executed twice.", _attempts, 1.5, quick=3
)
