"""Ask several strategies side by side, and go on with those that answer."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

from jackfield.errors import JackfieldError, ModelServiceError, ToolServiceError

T = TypeVar("T")

# Whoever shows an answer learns what is missing from it, however deep the searcher is that has gone on without.
_noted: ContextVar[list[str] | None] = ContextVar("jackfield_failed_strategies", default=None)

_log = logging.getLogger(__name__)


@contextmanager
def failures_noted() -> Iterator[list[str]]:
    """Collect what fails inside, and is done without: a sentence for each strategy. Nobody else is notified."""
    noted: list[str] = []
    token = _noted.set(noted)
    try:
        yield noted
    finally:
        _noted.reset(token)


async def ask_all(strategies: Mapping[str, Callable[[], Coroutine[Any, Any, T]]]) -> dict[str, T]:
    """Ask strategies at the same time.

    One whose service fails is left out; `failures_noted` has the reason, or, if nobody collects, the log.

    Args:
        strategies: What asks each of them, by its name.

    Returns:
        The answers of those that did not fail, by name, in order.

    Raises:
        ModelServiceError, ToolServiceError: All of them have failed; this is the first error, with the others as notes.
        JackfieldError: A setting is wrong, or a plugin is missing. Going on without would hide it for ever.
    """
    came = await _answers_and_failures(strategies)
    answers = {name: answer for name, answer in came.items() if not isinstance(answer, _Failure)}
    failures = {name: failure for name, failure in came.items() if isinstance(failure, _Failure)}
    if failures and not answers:
        raise _as_one(failures)
    for name, failure in failures.items():
        note_failure(f"{name} failed and was left out: {failure.error}")
    return answers


async def _answers_and_failures(
    strategies: Mapping[str, Callable[[], Coroutine[Any, Any, T]]],
) -> dict[str, T | _Failure]:
    tasks = {name: asyncio.create_task(_answer_or_failure(ask)) for name, ask in strategies.items()}
    try:
        await asyncio.gather(*tasks.values())
    finally:
        for task in tasks.values():
            task.cancel()
        await asyncio.gather(*tasks.values(), return_exceptions=True)
    return {name: task.result() for name, task in tasks.items()}


def note_failure(text: str) -> None:
    """Say to whoever collects failures, or else to the log, what was done without."""
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


def _as_one(failures: Mapping[str, _Failure]) -> JackfieldError:
    (_, first), *others = failures.items()
    for name, failure in others:
        first.error.add_note(f"{name} failed as well: {failure.error}")
    return first.error
