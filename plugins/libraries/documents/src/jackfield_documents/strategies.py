"""Run several strategies in parallel, tolerating some failures."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

from jackfield.errors import JackfieldError, ModelServiceError, ToolServiceError

T = TypeVar("T")

# A context variable, because the failing searcher may be nested several levels below the code that shows the results.
_noted: ContextVar[list[str] | None] = ContextVar("jackfield_failed_strategies", default=None)

_log = logging.getLogger(__name__)


@contextmanager
def failures_noted() -> Iterator[list[str]]:
    """Collect one sentence per strategy that fails inside the block, instead of logging it."""
    noted: list[str] = []
    token = _noted.set(noted)
    try:
        yield noted
    finally:
        _noted.reset(token)


async def ask_all(strategies: Mapping[str, Callable[[], Coroutine[Any, Any, T]]]) -> dict[str, T]:
    """Run strategies in parallel.

    A strategy whose service fails is skipped, and the reason is reported to `failures_noted` or logged.

    Args:
        strategies: The functions that run each strategy, by name.

    Returns:
        The results of the successful strategies by name, in order.

    Raises:
        ModelServiceError, ToolServiceError: All strategies failed. The first error is raised, with the others as notes.
        JackfieldError: A setting is wrong, or a plugin is missing. Skipping the strategy would hide the error for good.
    """
    tasks = {name: asyncio.create_task(_answer_or_failure(ask)) for name, ask in strategies.items()}
    try:
        await asyncio.gather(*tasks.values())
    finally:
        for task in tasks.values():
            task.cancel()
        await asyncio.gather(*tasks.values(), return_exceptions=True)
    answers: dict[str, T] = {}
    failures: dict[str, JackfieldError] = {}
    for name, task in tasks.items():
        result = task.result()
        if isinstance(result, _Failure):
            failures[name] = result.error
        else:
            answers[name] = result
    if failures and not answers:
        (_, first), *others = failures.items()
        for name, error in others:
            first.add_note(f"{name} also failed: {error}")
        raise first
    for name, error in failures.items():
        note_failure(f"{name} failed and was skipped: {error}")
    return answers


def note_failure(text: str) -> None:
    """Report a skipped strategy to `failures_noted`, or log it."""
    noted = _noted.get()
    if noted is None:
        _log.warning("%s", text)
    elif text not in noted:
        noted.append(text)


class _Failure:
    def __init__(self, error: JackfieldError) -> None:
        self.error = error


async def _answer_or_failure(ask: Callable[[], Coroutine[Any, Any, T]]) -> T | _Failure:
    try:
        return await ask()
    except (ModelServiceError, ToolServiceError) as error:
        return _Failure(error)
