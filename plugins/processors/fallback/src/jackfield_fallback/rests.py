"""Remember models that are not asked for a while, because they have just failed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from jackfield.errors import ModelServiceError
from jackfield_fallback.causes import RESTING, cause_of


@dataclass(frozen=True, slots=True)
class Rest:
    """The end of a pause, by the clock, and its reason."""

    until: float
    cause: str


class Rests:
    """A circuit breaker for each model. When its pause is over, a model is asked as usual.

    Args:
        cooldown_s: The time for which a model pauses; None for no pause.
        max_rest_s: A longer pause that its server asks for is respected, up to this.
        clock: A monotonic clock, in seconds.
    """

    def __init__(self, cooldown_s: float | None, max_rest_s: float, clock: Callable[[], float]) -> None:
        self._cooldown_s = cooldown_s
        self._max_rest_s = max_rest_s
        self._clock = clock
        self._rests: dict[str, Rest] = {}

    def of(self, name: str) -> Rest | None:
        """Return the current pause of a model; None without one."""
        rest = self._rests.get(name)
        return rest if rest is not None and self._clock() < rest.until else None

    def note(self, name: str, error: Exception) -> None:
        """Record that a model failed."""
        cause = cause_of(error)
        if self._cooldown_s is None or cause not in RESTING:
            return
        asked_for_s = (error.retry_after_s if isinstance(error, ModelServiceError) else None) or 0.0
        if not asked_for_s <= self._max_rest_s:  # NaN counts as too long
            asked_for_s = self._max_rest_s
        self._rests[name] = Rest(self._clock() + max(self._cooldown_s, asked_for_s), cause)
