"""Do the same work in several threads that start together."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


def at_once(count: int, work: Callable[[int], T]) -> list[T | BaseException]:
    """Return the results of several threads, ordered by thread number. A failed thread's result is its exception."""
    begin = threading.Barrier(count)

    def one(number: int) -> T:
        begin.wait()
        return work(number)

    with ThreadPoolExecutor(count) as pool:
        running = [pool.submit(one, number) for number in range(count)]
    return [done.exception() or done.result() for done in running]
