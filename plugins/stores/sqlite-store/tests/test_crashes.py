"""A process that is killed at any point loses nothing that was done, and nothing is done twice."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("crashing.py")
ALL = ["Ada", "Bob", "Cleo"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the program forks")
def test_a_run_that_was_killed_at_any_write_or_moment_is_resumed_by_another_process(tmp_path: Path) -> None:
    seed = random.randrange(10**6)
    command = [sys.executable, str(PROGRAM), str(tmp_path), str(seed)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert ended.returncode == 0, ended.stderr
    *told, lost, busy, kept = [json.loads(line) for line in ended.stdout.splitlines()]
    told, trees = told[:18], told[18:]
    assert len(told) == 7 * 2 + 4
    # No step of a tree of agents is done twice, whichever agent's it is: two answers of one, three of the other.
    assert [{**one, "asked": None} for one in trees] == [
        {"done": ALL, "end": "finished", "answers": 5, "asked": None}
    ] * len(trees)
    assert [one["asked"] for one in trees] == [0, 0, 0, 2, 1, 0, 1, 0, 0, 0, 0], trees
    # Killed before the first write, nothing was begun.
    assert told[0] == {"done": [], "end": "no run"}
    for place, one in enumerate(told[1:], start=1):
        if one.get("end") == "no run":
            assert place >= 14
            assert one["done"] == []
            continue
        assert one.get("done") == ALL, f"at {place}, with the seed {seed}: {one}"
        assert (one["end"], one["text"], one["held"]) == ("finished", "All are paid.", False)
    # Somebody is asked from the answer that asks for calls until their results are written, and nowhere else.
    asked = [one.get("asked", 0) for one in told[:14]]
    assert asked == [0, 0, 0, 2, 2, 1, 1, 0, 0, 1, 1, 0, 0, 0]
    # What a process holds is not its child's.
    assert lost.startswith("run r is no longer owned by this process")
    assert busy.startswith("run r is still running")
    assert kept == ["first", "second"]
