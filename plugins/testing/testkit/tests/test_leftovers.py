"""Sockets and tasks that work leaves open are found, and the core's own are not taken for them."""

from __future__ import annotations

import sys

import pytest

from jackfield_testkit.forks import run_program

FIRST_USE = """
import asyncio, socket, sys
from jackfield import sync
from jackfield_testkit.leftovers import left_open

kept = []

async def work():
    await sync.in_worker(lambda: sync.run(asyncio.sleep(0)))  # starts the background loop
    if sys.argv[1] == "socket" or (sys.argv[1] == "once" and not kept):
        kept.append(socket.socket())
    if sys.argv[1] == "task":
        kept.append(asyncio.ensure_future(asyncio.sleep(600)))

async def first():
    if sys.argv[1] == "once":
        await work()

print(len(asyncio.run(left_open(work, first=first, patience_s=0.2))))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere sockets are not seen")
@pytest.mark.parametrize(("left", "count"), [("nothing", "0"), ("once", "0"), ("socket", "1"), ("task", "1")])
def test_what_a_process_opens_once_is_no_leftover(left: str, count: str) -> None:
    done = run_program(FIRST_USE, left)
    assert (done.stdout.strip(), done.stderr) == (count, "")
