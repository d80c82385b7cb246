"""Count a scope's usage in the last minute, and decide if a request may start now or how long it must wait.

Everything here is pure: the time is passed in, and nothing waits. Usage is counted in slices of one second. A slice
counts until its last moment is more than a minute old, so the limits hold for any 60 seconds.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

WINDOW_S = 60.0
SLICE_S = 1.0


@dataclass(frozen=True, slots=True)
class Limits:
    """Rate limits. None means unlimited."""

    requests: int | None = None
    tokens: int | None = None
    concurrency: int | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """An admitted request.

    Attributes:
        id: The request's id among the running requests.
        slice: The second in which the request is counted.
        tokens: The number of tokens reserved for the request.
    """

    id: str
    slice: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Wait:
    """The reason a request must wait, and for how long.

    Attributes:
        seconds: The minimum wait in seconds, or None if it depends on other requests only.
        why: `requests`, `tokens`, `pause`, `concurrency`, or `turn` (other requests are ahead in the queue).
    """

    seconds: float | None
    why: str


@dataclass(slots=True)
class Running:
    """A slot held by a running request.

    Attributes:
        until: When the lease expires and the slot becomes free.
        owner: The process that holds the slot, or '' if it can only be this one.
    """

    until: float
    owner: str


@dataclass(slots=True)
class State:
    """The state of a scope. Not thread-safe: callers must take turns.

    Attributes:
        used: The requests and tokens counted in each second.
        running: The requests being answered.
        paused: The start and end of a pause during which no request may start, or None if there is no pause.
    """

    used: dict[int, list[int]] = field(default_factory=dict)
    running: dict[str, Running] = field(default_factory=dict)
    paused: tuple[float, float] | None = None

    def enter(self, wanted: Wanted, now: float, *, is_gone: Callable[[str], bool] = lambda _: False) -> Entry | Wait:
        """Admit a request, or return how long it must wait.

        Args:
            wanted: The request and its limits.
            now: The current time, in seconds.
            is_gone: Returns True if a process is known to have ended.
        """
        self.tidy(now)
        pause = self._pause_left(now, wanted.max_pause_s)
        if pause > 0:
            return Wait(pause, "pause")
        wait = self._window_wait(wanted, now)
        if wait is not None:
            return wait
        if not self._has_place(wanted.limits.concurrency, is_gone):
            return Wait(None, "concurrency")
        entry = Entry(wanted.id, math.floor(now / SLICE_S), wanted.tokens)
        used = self.used.setdefault(entry.slice, [0, 0])
        used[0] += 1
        used[1] += entry.tokens
        self.running[entry.id] = Running(now + wanted.lease_s, wanted.owner)
        return entry

    def leave(self, entry: Entry, tokens: int, now: float) -> None:
        """Remove a finished request and correct its reserved tokens to the actual usage, `tokens`."""
        self.tidy(now)
        self.running.pop(entry.id, None)
        used = self.used.get(entry.slice)
        if used is not None:
            used[1] = max(0, used[1] + tokens - entry.tokens)
        elif tokens > entry.tokens:  # its slice has expired, so the unexpected tokens count from now on
            self.used.setdefault(math.floor(now / SLICE_S), [0, 0])[1] += tokens - entry.tokens

    def forget(self, entry: Entry) -> None:
        """Withdraw an admitted request that was never sent."""
        self.running.pop(entry.id, None)
        used = self.used.get(entry.slice)
        if used is not None:
            used[0] = max(0, used[0] - 1)
            used[1] = max(0, used[1] - entry.tokens)

    def renew(self, entry: Entry, until: float) -> None:
        """Extend the lease of a running request."""
        if entry.id in self.running:
            self.running[entry.id].until = until

    def pause(self, seconds: float, now: float, *, max_pause_s: float = math.inf) -> None:
        """Pause for some seconds, unless the current pause lasts longer."""
        if seconds > self._pause_left(now, max_pause_s):
            self.paused = (now, now + seconds)

    def tidy(self, now: float) -> None:
        """Drop expired entries. Even if the clock is set back, no usage delays a request for longer than a minute."""
        self._tidy_used(now)
        if self._pause_left(now) <= 0:
            self.paused = None
        self._drop(one for one, running in self.running.items() if running.until <= now)

    def _tidy_used(self, now: float) -> None:
        current = math.floor(now / SLICE_S)
        for second in [one for one in self.used if (one + 1) * SLICE_S + WINDOW_S <= now or one > current]:
            requests, tokens = self.used.pop(second)
            if second > current:
                used = self.used.setdefault(current, [0, 0])
                used[0] += requests
                used[1] += tokens

    @property
    def is_idle(self) -> bool:
        """True if there is nothing recorded that could delay a request."""
        return not (self.used or self.running or self.paused)

    def _pause_left(self, now: float, most_s: float = math.inf) -> float:
        if self.paused is None:
            return 0.0
        since, until = self.paused
        if now < since:  # the clock was set back, so the pause keeps its intended length
            self.paused = since, until = now, now + until - since
        return min(until, since + most_s) - now

    def _has_place(self, most: int | None, is_gone: Callable[[str], bool]) -> bool:
        """Return True if another request may run, after dropping those of dead processes if necessary."""
        if most is None or len(self.running) < most:
            return True
        self._drop(one for one, running in self.running.items() if is_gone(running.owner))
        return len(self.running) < most

    def _window_wait(self, wanted: Wanted, now: float) -> Wait | None:
        free_requests = _free(wanted.limits.requests, sum(used[0] for used in self.used.values()) + 1)
        free_tokens = _free(wanted.limits.tokens, sum(used[1] for used in self.used.values()) + wanted.tokens)
        why = "requests" if free_requests < 0 else "tokens"
        wait = None
        for second in sorted(self.used):
            if free_requests >= 0 and free_tokens >= 0:
                break
            free_requests += self.used[second][0]
            free_tokens += self.used[second][1]
            wait = Wait((second + 1) * SLICE_S + WINDOW_S - now, why)
        return wait

    def _drop(self, ids: Iterable[str]) -> None:
        for one in list(ids):
            del self.running[one]

    # --- in a file ---

    def to_json(self) -> str:
        """Serialize the state for `from_json`."""
        running = {one: [running.until, running.owner] for one, running in self.running.items()}
        used = [[second, *counts] for second, counts in self.used.items()]
        return json.dumps({"used": used, "running": running, "paused": self.paused})

    @classmethod
    def from_json(cls, text: str) -> State:
        """Load a state that `to_json` wrote.

        Raises:
            ValueError: The text is not a serialized state.
        """
        try:
            kept = json.loads(text, parse_constant=_no_number)
            return cls(
                used={int(second): [int(requests), int(tokens)] for second, requests, tokens in kept["used"]},
                running={one: Running(float(until), str(owner)) for one, (until, owner) in kept["running"].items()},
                paused=None if kept["paused"] is None else (float(kept["paused"][0]), float(kept["paused"][1])),
            )
        except (TypeError, LookupError, AttributeError) as error:
            raise ValueError(f"invalid rate limit state ({type(error).__name__})") from error


@dataclass(frozen=True, slots=True)
class Wanted:
    """A request to be admitted.

    Attributes:
        id: A unique id.
        limits: The limits that apply.
        tokens: The estimated number of tokens; at most the limit.
        lease_s: How long the slot is held without a renewal, in seconds.
        owner: The process, as in `Running`.
        max_pause_s: The longest pause that this request respects. Another process may have recorded a longer one.
    """

    id: str
    limits: Limits
    tokens: int = 0
    lease_s: float = math.inf
    owner: str = ""
    max_pause_s: float = math.inf


def _free(limit: int | None, used: int) -> float:
    return math.inf if limit is None else limit - used


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is not a number")
