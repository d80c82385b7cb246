"""What Ctrl-C does while a model answers."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from jackfield.streams import CancelToken


@contextmanager
def cancelled_by_ctrl_c() -> Iterator[CancelToken]:
    """A token that the first Ctrl-C cancels, so that the run ends by itself; the second interrupts as usual."""
    token = CancelToken()

    def stop(_signal: int, _frame: FrameType | None) -> None:
        if token.cancelled:
            raise KeyboardInterrupt
        token.cancel()

    before = signal.signal(signal.SIGINT, stop)
    try:
        yield token
    finally:
        signal.signal(signal.SIGINT, before)
