"""Remove local variables, which may contain secrets, from error tracebacks."""

from __future__ import annotations

import sys
from itertools import zip_longest
from types import TracebackType
from typing import Self


class ForgetLocals:
    """Context manager, sync or async, that removes local variables from the tracebacks of errors raised inside it.

    Frames that are still running, such as the frame with the `with` statement, cannot be cleared, so they are removed
    from the traceback. Inner frames remain, with their line numbers. Causes that were raised inside the context are
    treated in the same way.
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
    """Clear the frames of an error and its causes, and remove frames that are still running.

    Contexts that `from None` hides are dropped.

    Args:
        error: The error to change.
        outside: An error that was already being handled, which is left unchanged.
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
    """Clear the local variables of a traceback's frames, and remove frames that are still running."""
    import traceback  # for errors only, because it loads more modules than listing plugins

    traceback.clear_frames(trace)
    kept: list[TracebackType] = []
    while trace is not None:
        if not trace.tb_frame.f_locals:
            kept.append(trace)
        trace = trace.tb_next
    for entry, following in zip_longest(kept, kept[1:]):
        entry.tb_next = following
    return kept[0] if kept else None
