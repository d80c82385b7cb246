"""Tracebacks without the values that stood in their frames.

Tools that report errors write down the local variables of every frame. Where a request is made, a key is among them.
"""

from __future__ import annotations

import sys
from itertools import zip_longest
from types import TracebackType
from typing import Self


class LocalsForgotten:
    """A context, for `with` and `async with`, that an error leaves without the local variables of what it went through.

    A frame that still runs cannot be emptied and is left out of the traceback: that of the `with` itself. Those below
    it stay, with their lines. The same is done for all that the error was raised from, inside of the context.
    """

    def __enter__(self) -> Self:
        self._outside = sys.exception()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            forget_locals(error, outside=self._outside)

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.__exit__(kind, error, trace)


def forget_locals(error: BaseException, *, outside: BaseException | None = None) -> None:
    """Empty the frames of an error and of all it was raised from; leave out those that still run.

    What was left out with `from None` is forgotten, too.

    Args:
        error: It is changed.
        outside: An error that was being handled before; it is its handler's, and stays as it is.
    """
    seen = {id(outside)}
    waiting = [error]
    while waiting:
        one = waiting.pop()
        if id(one) not in seen:
            seen.add(id(one))
            one.__traceback__ = _emptied(one.__traceback__)
            waiting += _behind(one)


def _behind(error: BaseException) -> list[BaseException]:
    if error.__suppress_context__:  # `from None` only hides it
        error.__context__ = error.__cause__
    inner = error.exceptions if isinstance(error, BaseExceptionGroup) else ()
    return [one for one in (error.__cause__, error.__context__, *inner) if one is not None]


def _emptied(trace: TracebackType | None) -> TracebackType | None:
    """A traceback of frames without local variables; those that still have some, because they run, are left out."""
    import traceback  # only for an error: it brings more along than all else that listing plugins needs

    traceback.clear_frames(trace)
    kept: list[TracebackType] = []
    while trace is not None:
        if not trace.tb_frame.f_locals:
            kept.append(trace)
        trace = trace.tb_next
    for entry, following in zip_longest(kept, kept[1:]):
        entry.tb_next = following
    return kept[0] if kept else None
