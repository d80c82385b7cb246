"""Take local variables, which may hold secrets, out of the tracebacks of errors."""

from __future__ import annotations

import sys
from itertools import zip_longest
from types import TracebackType
from typing import Self


class ForgetLocals:
    """A context manager that takes the local variables out of the traceback of an error that leaves it.

    Works with `with` and `async with`. The frame of the `with` itself, and any other that still runs, cannot be emptied
    and is left out of the traceback; the frames below it stay, with their lines. The errors that caused the error
    inside the context are treated in the same way.
    """

    def __enter__(self) -> Self:
        self._outside = sys.exception()
        return self

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if error is not None:
            forget_locals(error, outside=self._outside)

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self.__exit__(kind, error, trace)


def forget_locals(error: BaseException, *, outside: BaseException | None = None) -> None:
    """Empty the frames of an error and of its causes; leave out frames that still run.

    A context that `from None` only hides is dropped.

    Args:
        error: The error to change.
        outside: An error that was already being handled; it is left unchanged.
    """
    seen = {id(outside)}
    pending = [error]
    while pending:
        current = pending.pop()
        if id(current) in seen:
            continue
        seen.add(id(current))
        current.__traceback__ = _empty_frames(current.__traceback__)
        if current.__suppress_context__:
            current.__context__ = current.__cause__
        inner = current.exceptions if isinstance(current, BaseExceptionGroup) else ()
        pending += [one for one in (current.__cause__, current.__context__, *inner) if one is not None]


def _empty_frames(trace: TracebackType | None) -> TracebackType | None:
    """Clear the local variables of a traceback's frames; leave out those that keep some, because they run."""
    import traceback  # for errors only: it loads more modules than listing plugins does

    traceback.clear_frames(trace)
    kept: list[TracebackType] = []
    while trace is not None:
        if not trace.tb_frame.f_locals:
            kept.append(trace)
        trace = trace.tb_next
    for entry, following in zip_longest(kept, kept[1:]):
        entry.tb_next = following
    return kept[0] if kept else None
