"""Servers that share a store and are killed under load, while clients follow the runs on another server."""

from __future__ import annotations

import asyncio
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from attacks.kind import Attempt, Kind, law
from tests.support.postgresql import running_postgresql
from tests.support.serving_processes import kill_servers

RUNS_PER_KILL = 4


def _attempt(kind: str, kills: int, servers: int, seed: int) -> None:
    faults = attack(kind, kills=kills, servers=servers, seed=seed)
    law(not faults, "; ".join(faults[:5]))


def attack(kind: str, *, kills: int, servers: int, seed: int) -> list[str]:
    """Kill servers that share a store of this kind, and return what went wrong."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        store: dict[str, object] = {"name": "sqlite", "path": str(folder / "runs.sqlite")}
        if kind == "postgres":
            store = {"name": kind, "dsn": stack.enter_context(running_postgresql()), "connections": 4}
        return asyncio.run(
            kill_servers(folder, store, rounds=kills, servers=servers, seed=seed, runs_per_round=RUNS_PER_KILL)
        )


def _attempts(dice: random.Random) -> Iterator[Attempt]:
    while True:
        for kind in ("sqlite", "postgres"):
            kills, servers, seed = dice.randrange(5, 15), dice.randrange(2, 5), dice.randrange(10**6)
            name = f"{kills} kills of {servers} servers over {kind}"
            yield Attempt(name, partial(_attempt, kind, kills, servers, seed), counts=kills, timeout_s=200)


KIND = Kind(
    "Whichever server is killed, no run is lost, no step happens twice, and every follower continues where it stopped.",
    _attempts,
    quick=2,
)


if __name__ == "__main__":
    store_kind, kills_, servers_, seed_ = sys.argv[1], *map(int, sys.argv[2:5])
    began = time.monotonic()
    found = attack(store_kind, kills=kills_, servers=servers_, seed=seed_)
    print(f"{kills_} kills, {kills_ * RUNS_PER_KILL} runs, {len(found)} faults in {time.monotonic() - began:.0f} s")
    print("\n".join(found))
    sys.exit(bool(found))
