"""Find resources that some work leaves open: tasks on its event loop, and sockets of this process."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

from jackfield import sync

_PAUSE_S = 0.01
_SOCKETS = Path("/proc/self/fd")  # without this directory, only tasks are reported


async def left_open(
    work: Callable[[], Awaitable[object]], *, first: Callable[[], Awaitable[object]], patience_s: float
) -> list[str]:
    """Return the tasks and sockets that some work leaves open on the current event loop.

    This must be checked before the loop ends, because ending the loop closes everything that is left.

    Args:
        work: Uses a component and closes it.
        first: Does the same with another component beforehand. Sockets that libraries open once per process are not
            reported.
        patience_s: How long the other end of a connection may take to notice that it was closed, in seconds.
    """
    # The background loop lives as long as the process and has two sockets. Start it first, because the work may use it.
    await asyncio.to_thread(lambda: sync.run(asyncio.sleep(0)))
    await first()
    tasks, sockets = asyncio.all_tasks(), _sockets()
    await work()
    loop = asyncio.get_running_loop()
    give_up = loop.time() + patience_s
    while (left := _left(tasks, sockets)) and loop.time() < give_up:  # noqa: ASYNC110 - nothing announces an end
        await asyncio.sleep(_PAUSE_S)
    return left


def _left(tasks: set[asyncio.Task[object]], sockets: set[str]) -> list[str]:
    running = [f"task {task.get_coro()!r}" for task in asyncio.all_tasks() - tasks]
    return [*running, *sorted(_sockets() - sockets)]


def _sockets() -> set[str]:
    names = set()
    for entry in _SOCKETS.iterdir() if _SOCKETS.is_dir() else ():
        try:
            name = os.readlink(entry)  # noqa: PTH115 - the target is not a path
        except OSError:  # closed meanwhile
            continue
        if name.startswith("socket:"):
            names.add(name)
    return names
