"""The same work in several threads that begin together."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


def at_once(count: int, work: Callable[[int], T]) -> list[T | BaseException]:
    """What several threads come back with, in the order of their numbers; what a thread raises, in its place."""
    begin = threading.Barrier(count)

    def one(number: int) -> T:
        begin.wait()
        return work(number)

    with ThreadPoolExecutor(count) as pool:
        running = [pool.submit(one, number) for number in range(count)]
    return [done.exception() or done.result() for done in running]
