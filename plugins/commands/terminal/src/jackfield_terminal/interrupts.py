"""Handle Ctrl-C while a model answers."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from jackfield.streams import CancelToken


@contextmanager
def cancel_on_ctrl_c() -> Iterator[CancelToken]:
    """Yield a token that the first Ctrl-C cancels, to end the run gracefully. The second raises KeyboardInterrupt."""
    token = CancelToken()

    def stop(_signal: int, _frame: FrameType | None) -> None:
        if token.cancelled:
            raise KeyboardInterrupt
        token.cancel()

    previous = signal.signal(signal.SIGINT, stop)
    try:
        yield token
    finally:
        signal.signal(signal.SIGINT, previous)
