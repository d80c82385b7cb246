"""Building blocks of attacks: each kind consists of attempts, which either uphold or break a law."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass


class Broke(Exception):
    """A law was broken. The arguments are the reasons, one for each try that broke it."""


@dataclass(frozen=True)
class Attempt:
    """One attack, which starts when `act` is called.

    An attempt holds if `act` returns, or raises a `JackfieldError` with a message, because an error is an honest
    answer. An attempt breaks the law if it raises any other exception, exceeds its time or its kind's memory limit,
    ends the process, or leaves the sync bridge in a state that hangs the next call.

    Attributes:
        name: A human-readable description of the attempt.
        act: Performs the attempt. Raises `Broke` if a law is broken.
        counts: The number of tries in this attempt.
        timeout_s: The number of seconds after which the attempt counts as hung.
    """

    name: str
    act: Callable[[], object]
    counts: int = 1
    timeout_s: float = 20.0


@dataclass(frozen=True)
class Kind:
    """A kind of attack.

    Attributes:
        law: What must stay true, in one sentence.
        attempts: Generates attempts from a random generator; the same seed gives the same attempts. Generating an
            attempt has no effect, because attempts are skipped to repeat a later one. The important ones come first,
            and the sequence may be infinite.
        share: The share of a whole run's time, relative to other kinds.
        memory_mb: The maximum memory that all processes of an attempt may hold at once.
        quick: The number of attempts in a quick run.
    """

    law: str
    attempts: Callable[[random.Random], Iterator[Attempt]]
    share: float = 1.0
    memory_mb: int = 1500
    quick: int = 20


def law(holds: object, reason: str) -> None:
    """Raise `Broke` if a law does not hold."""
    if not holds:
        raise Broke(reason)
