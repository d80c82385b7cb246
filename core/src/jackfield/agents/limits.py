"""What a run has spent, where it must end, and how it is stopped from outside."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass, field, replace
from typing import TypeVar

from jackfield.config import Limits
from jackfield.errors import ConfigError
from jackfield.events import StopReason
from jackfield.messages import Usage

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Spent:
    """What a run has used so far."""

    turns: int = 0
    tool_calls: int = 0
    usage: Usage = field(default_factory=Usage)

    def plus_turn(self, usage: Usage) -> Spent:
        """After one more answer of a model."""
        return replace(self, turns=self.turns + 1, usage=self.usage + usage)

    def plus_calls(self, count: int) -> Spent:
        """After some more tool calls."""
        return replace(self, tool_calls=self.tool_calls + count)


def limit_reached(spent: Spent, limits: Limits) -> StopReason | None:
    """The limit that forbids to ask a model once more, or None.

    Raises:
        ConfigError: There is a cost limit, but the price of what was used is not known, or is in another currency.
    """
    if limits.turns is not None and spent.turns >= limits.turns:
        return "turn_limit"
    if limits.tokens is not None and spent.usage.total_tokens >= limits.tokens:
        return "token_limit"
    if limits.cost is not None and spent.turns:
        if spent.usage.cost is None or spent.usage.currency != limits.currency:
            raise ConfigError(
                f"a cost limit of {limits.cost} {limits.currency} is set, but what this model costs in "
                f"{limits.currency} is not known: limit tokens instead"
            )
        if spent.usage.cost >= limits.cost:
            return "cost_limit"
    return None


class CancelToken:
    """Stops a run from another task or thread. The run then ends by itself, with a valid history."""

    def __init__(self) -> None:
        self._cancelled = False
        self._lock = threading.Lock()
        self._waits: dict[asyncio.Timeout, asyncio.AbstractEventLoop] = {}

    @property
    def cancelled(self) -> bool:
        """Whether somebody has asked the run to stop."""
        return self._cancelled

    def cancel(self) -> None:
        """Ask the run to stop; from any thread, and as often as one likes."""
        with self._lock:
            self._cancelled = True
            waits = list(self._waits.items())
        for scope, loop in waits:
            loop.call_soon_threadsafe(self._wake, scope)

    def _wake(self, scope: asyncio.Timeout) -> None:
        if scope in self._waits:  # it may have ended meanwhile
            scope.reschedule(0)

    def enter(self, scope: asyncio.Timeout) -> None:
        """A wait begins, inside `scope`."""
        with self._lock:
            self._waits[scope] = asyncio.get_running_loop()
            if self._cancelled:
                scope.reschedule(0)

    def leave(self, scope: asyncio.Timeout) -> None:
        """The wait is over."""
        with self._lock:
            self._waits.pop(scope, None)


class Interrupted(Exception):  # noqa: N818 - it says what happened, and never leaves the loop
    """The time is over, or somebody stopped the run."""


async def interruptible(
    events: AsyncIterator[T], *, ends_at: float | None, cancel: CancelToken | None
) -> AsyncIterator[T]:
    """The events, until a point of the loop's time or until cancelled; then `Interrupted` is raised.

    The scope is around each wait alone: around a `yield` it would hit whoever consumes the events.
    """
    try:
        while not (cancel and cancel.cancelled):
            scope = asyncio.timeout_at(ends_at)
            try:
                event = await _next_inside(scope, events, cancel)
            except StopAsyncIteration:
                return
            except TimeoutError as error:
                if scope.expired():
                    raise Interrupted from error
                raise
            yield event
        raise Interrupted
    finally:
        if isinstance(events, AsyncGenerator):
            await events.aclose()


async def _next_inside(scope: asyncio.Timeout, events: AsyncIterator[T], cancel: CancelToken | None) -> T:
    async with scope:
        if cancel:
            cancel.enter(scope)
        try:
            return await anext(events)
        finally:
            if cancel:
                cancel.leave(scope)
