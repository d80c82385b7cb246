"""Record the built-in functions called on the current thread, to test that nothing there blocks."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


@contextmanager
def calls_to(is_meant: Callable[[Any], bool]) -> Iterator[list[str]]:
    """Yield a list that collects the callers of certain built-in functions on this thread, under whatever name.

    Args:
        is_meant: Returns True for a function to look for.
    """
    found: list[str] = []

    def hear(frame: FrameType, event: str, argument: object) -> None:
        if event == "c_call" and is_meant(argument):
            found.append(f"{frame.f_code.co_filename}:{frame.f_lineno}")

    before = sys.getprofile()
    sys.setprofile(hear)
    try:
        yield found
    finally:
        sys.setprofile(before)
