"""Remember models that recently failed and should not be asked for a while."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from jackfield.errors import ModelServiceError
from jackfield_fallback.causes import RESTING, cause_of


@dataclass(frozen=True, slots=True)
class Rest:
    """The end of a cooldown, by the clock, and its cause."""

    until: float
    cause: str


class Rests:
    """A circuit breaker for each model. Once a model's cooldown ends, it is asked as usual.

    Args:
        cooldown_s: The cooldown after a failure, in seconds. If None, there is no cooldown.
        max_rest_s: The longest cooldown to accept when a server requests one, in seconds.
        clock: A monotonic clock, in seconds.
    """

    def __init__(self, cooldown_s: float | None, max_rest_s: float, clock: Callable[[], float]) -> None:
        self._cooldown_s = cooldown_s
        self._max_rest_s = max_rest_s
        self._clock = clock
        self._rests: dict[str, Rest] = {}

    def of(self, name: str) -> Rest | None:
        """Return a model's current cooldown, or None if it has none."""
        rest = self._rests.get(name)
        return rest if rest is not None and self._clock() < rest.until else None

    def note(self, name: str, error: Exception) -> None:
        """Record a model's failure, and start a cooldown if its cause is likely to persist."""
        cause = cause_of(error)
        if self._cooldown_s is None or cause not in RESTING:
            return
        asked_for_s = (error.retry_after_s if isinstance(error, ModelServiceError) else None) or 0.0
        if not asked_for_s <= self._max_rest_s:  # NaN counts as too long
            asked_for_s = self._max_rest_s
        self._rests[name] = Rest(self._clock() + max(self._cooldown_s, asked_for_s), cause)
