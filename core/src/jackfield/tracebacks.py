"""Tracebacks without the values that stood in their frames.

Tools that report errors write down the local variables of every frame. Where a request is made, a key is among them.
"""

from __future__ import annotations

import traceback
from types import TracebackType
from typing import Self


class LocalsForgotten:
    """A context, for `with` and `async with`, that an error leaves without the local variables of what it went through.

    The frame that has the `with` is left out of the traceback, because it cannot be emptied while it runs; those below
    it stay, with their lines. The same is done for all that the error was raised from.
    """

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            forget_locals(error)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            forget_locals(error)


def forget_locals(error: BaseException) -> None:
    """Empty the frames of an error and of all it was raised from, and leave out the first: that of who calls this.

    What was left out with `from None` is forgotten, too.
    """
    if error.__traceback__ is not None:
        traceback.clear_frames(error.__traceback__)
        error.__traceback__ = error.__traceback__.tb_next
    seen = {id(error)}
    waiting = _behind(error)
    while waiting:
        other = waiting.pop()
        if id(other) in seen:
            continue
        seen.add(id(other))
        if other.__traceback__ is not None:
            traceback.clear_frames(other.__traceback__)
            other.__traceback__ = _finished(other.__traceback__)
        waiting += _behind(other)


def _behind(error: BaseException) -> list[BaseException]:
    if error.__suppress_context__:  # `from None` only hides it
        error.__context__ = error.__cause__
    inner = error.exceptions if isinstance(error, BaseExceptionGroup) else ()
    return [one for one in (error.__cause__, error.__context__, *inner) if one is not None]


def _finished(trace: TracebackType | None) -> TracebackType | None:
    """A traceback without its first frames that still run: those have kept their variables."""
    while trace is not None and trace.tb_frame.f_locals:
        trace = trace.tb_next
    return trace
