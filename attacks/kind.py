"""What an attack is made of: attempts, each of which holds or breaks a law."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass


class Broke(Exception):
    """A law was broken; the arguments are the reasons, one for each try that broke it."""


@dataclass(frozen=True)
class Attempt:
    """One attack, made when `act` is called.

    It holds when `act` returns, or raises a `JackfieldError` that says something: an error is an honest answer. Any
    other exception breaks it, and so does taking more than its time or its kind's memory, ending the process, or
    leaving behind a bridge on which the next call hangs.

    Attributes:
        name: What is tried, for people.
        act: Tries it; raises `Broke` when a law is broken.
        counts: How many tries it is.
        timeout_s: After how many seconds it hangs.
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
        attempts: Makes them from dice: the same dice, the same attempts. It does nothing itself, for attempts are
            passed over to repeat a later one; the important ones come first, and it need not end.
        share: Of the time of a whole run, relative to other kinds.
        memory_mb: What all processes of an attempt may hold at once.
        quick: How many attempts are made in a quick run.
    """

    law: str
    attempts: Callable[[random.Random], Iterator[Attempt]]
    share: float = 1.0
    memory_mb: int = 1500
    quick: int = 20


def law(holds: object, reason: str) -> None:
    """Raise `Broke` unless it holds."""
    if not holds:
        raise Broke(reason)
