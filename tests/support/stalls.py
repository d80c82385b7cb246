"""A plugin of pytest that lets the process stand still at a random moment of a test, as a busy machine does.

`make nightly` loads it (`-p tests.support.stalls`). A test that fails with it and passes without expects something
within a time that no machine promises. The report of a failed test says whether it was held up.
"""

from __future__ import annotations

import ctypes
import random
import threading
from collections.abc import Generator

import pytest

SHARE = 0.25
"""The share of tests that are held up."""
STALL_S = 0.6
MOST_WAITS_S = (0.01, 0.05, 0.2, 1.0)
"""The longest times from the beginning of a test to its stall, one of which is chosen: most tests are short."""

_LIBC = ctypes.PyDLL(None)  # of its functions, the interpreter's lock is held: no thread goes on
_RANDOM = random.Random()  # not the one that tests seed


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Hold all threads of the process up once, unless the test ends before."""
    if _RANDOM.random() >= SHARE:
        return (yield)
    is_over = threading.Event()
    wait_s = _RANDOM.uniform(0, _RANDOM.choice(MOST_WAITS_S))

    def stall() -> None:
        if not is_over.wait(wait_s):
            _LIBC.usleep(int(STALL_S * 1e6))
            item.add_report_section("call", "stall", f"The process stood still for {STALL_S} s after {wait_s:.3f} s.")

    thread = threading.Thread(target=stall, daemon=True)
    thread.start()
    try:
        return (yield)
    finally:
        is_over.set()
        thread.join()
