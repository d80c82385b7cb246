"""Queue a process's requests for a scope, first come, first served, across threads and event loops."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections import deque
from collections.abc import Awaitable, Callable

from jackfield.errors import JackfieldError
from jackfield_local_state.ledger import Ledger
from jackfield_rate_limits.owners import is_gone
from jackfield_rate_limits.state import Entry, State, Wait, Wanted

Clock = Callable[[], float]
Sleep = Callable[[float], Awaitable[None]]

_FIRST_GUESS_TOKENS = 500.0
_WEIGHT_OF_THE_LAST = 0.2

_log = logging.getLogger(__name__)


class TooLongError(Exception):
    """No slot becomes free within the allowed time. `wait` holds the reason."""

    def __init__(self, wait: Wait) -> None:
        super().__init__(wait)
        self.wait = wait


class Gate:
    """Admits requests. Only the first request in the queue checks for a free slot; the others are woken in turn.

    Args:
        ledger: The state of all scopes.
        scope: The name of this gate's scope.
        clock: The ledger's clock, in seconds.
        poll_s: The longest time between checks, in seconds, if other processes may free slots.

    Attributes:
        answer_tokens: The estimated number of tokens per answer, based on recent ones.
    """

    def __init__(self, ledger: Ledger[State], scope: str, *, clock: Clock, poll_s: float | None = None) -> None:
        self._ledger = ledger
        self._scope = scope
        self._clock = clock
        self._poll_s = poll_s
        self._lock = threading.Lock()
        self._line: deque[_Ticket] = deque()
        self.answer_tokens = _FIRST_GUESS_TOKENS

    @property
    def waiting(self) -> int:
        """The number of waiting requests."""
        return len(self._line)

    async def look(self, wanted: Wanted) -> Entry | Wait:
        """Admit a request if the queue is empty and a slot is free."""
        if self._poll_s is None:  # without a file, the check is immediate, and no other request can intervene
            with self._lock:
                is_alone = not self._line
            return await self._try(wanted) if is_alone else Wait(None, "turn")
        ticket = _Ticket(asyncio.get_running_loop(), is_waiting=False)
        with self._lock:
            self._line.append(ticket)
        try:
            while True:
                ticket.woken.clear()
                first = self._first()
                if first is ticket:
                    return await self._try(wanted)
                if first.is_waiting:
                    return Wait(None, "turn")
                await ticket.woken.wait()  # the first request is checking the file, which takes milliseconds
        finally:
            self._leave_the_line(ticket)

    async def enter(self, wanted: Wanted, *, max_wait_s: float | None, sleep: Sleep) -> Entry:
        """Queue a request until a slot is free. A cancelled request leaves the queue, and the next one moves up.

        Raises:
            TooLongError: No slot will be free within `max_wait_s` seconds. Raised as soon as this is known.
        """
        ticket = _Ticket(asyncio.get_running_loop(), is_waiting=True)
        began_at = self._clock()
        with self._lock:
            self._line.append(ticket)
        try:
            while True:
                ticket.woken.clear()
                outcome = await self._try(wanted) if self._first() is ticket else Wait(None, "turn")
                if isinstance(outcome, Entry):
                    return outcome
                left_s = None if max_wait_s is None else max_wait_s - (self._clock() - began_at)
                if left_s is not None and (left_s <= 0 or (outcome.seconds or 0) > left_s):
                    raise TooLongError(outcome)
                poll_s = None if outcome.why == "turn" and outcome.seconds is None else self._poll_s
                await ticket.wait(_least(outcome.seconds, poll_s, left_s), sleep)
        finally:
            self._leave_the_line(ticket)

    async def leave(self, entry: Entry, tokens: int) -> None:
        """Record that a request has finished, and how many tokens it used."""
        now = self._clock()
        try:
            await self._note(lambda state: state.leave(entry, tokens, now))
        finally:
            self._wake_the_first()

    async def renew(self, entry: Entry, lease_s: float) -> None:
        """Extend the lease of a request that is still being answered."""
        until = self._clock() + lease_s
        await self._note(lambda state: state.renew(entry, until))

    async def pause(self, seconds: float, *, max_pause_s: float) -> None:
        """Admit no requests for `seconds`, or for `max_pause_s` if that is shorter."""
        if not seconds <= max_pause_s:  # NaN counts as too long
            seconds = max_pause_s
        now = self._clock()
        await self._note(lambda state: state.pause(seconds, now, max_pause_s=max_pause_s))

    async def _note(self, work: Callable[[State], None]) -> None:
        """Record an outcome. A file error is only logged, because the answer has already arrived."""
        try:
            await self._ledger.anote(self._scope, work)
        except JackfieldError as error:
            _log.warning("%s", error)

    def learn(self, answer_tokens: int) -> None:
        """Update the estimated answer length with the number of tokens in an answer."""
        self.answer_tokens += _WEIGHT_OF_THE_LAST * (answer_tokens - self.answer_tokens)

    async def _try(self, wanted: Wanted) -> Entry | Wait:
        now = self._clock()
        return await self._ledger.achange(
            self._scope, lambda state: state.enter(wanted, now, is_gone=is_gone), undo=_take_back
        )

    def _first(self) -> _Ticket:
        with self._lock:
            return self._line[0]

    def _leave_the_line(self, ticket: _Ticket) -> None:
        with self._lock, contextlib.suppress(ValueError):  # the request may have been cancelled
            self._line.remove(ticket)
        self._wake_the_first()

    def _wake_the_first(self) -> None:
        with self._lock:
            while self._line and not self._line[0].wake():
                self._line.popleft()
            if self._line and self._line[0].is_waiting:  # requests that are only checking now know that they must wait
                for ticket in self._line:
                    if not ticket.is_waiting:
                        ticket.wake()


class _Ticket:
    """A position in the queue."""

    def __init__(self, loop: asyncio.AbstractEventLoop, *, is_waiting: bool) -> None:
        self._loop = loop
        self.is_waiting = is_waiting  # False for a request that only checks if it must wait
        self.woken = asyncio.Event()

    def wake(self) -> bool:
        """Wake the waiting request, from any thread. Return False if its event loop is closed."""
        try:
            self._loop.call_soon_threadsafe(self.woken.set)
        except RuntimeError:  # its loop was closed before the request could leave the queue
            return False
        return True

    async def wait(self, seconds: float | None, sleep: Sleep) -> None:
        """Wait until woken or until the time is up."""
        if seconds is None:
            await self.woken.wait()
            return
        waits = [asyncio.ensure_future(sleep(seconds)), asyncio.ensure_future(self.woken.wait())]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in waits:
                one.cancel()


def _take_back(state: State, outcome: Entry | Wait) -> None:
    if isinstance(outcome, Entry):
        state.forget(outcome)


def _least(*seconds: float | None) -> float | None:
    return min((one for one in seconds if one is not None), default=None)
