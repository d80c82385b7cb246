"""The structure of a history: turns made of steps, which can be removed without breaking it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jackfield.messages import FUNCTION, SYSTEM, USER, Message


@dataclass(frozen=True, slots=True)
class Turn:
    """The messages after one user message, by position in the history.

    Attributes:
        user: The user message; None in a history that begins with something else.
        steps: Each is an assistant's message with its calls, and the results of these.
    """

    user: int | None
    steps: tuple[tuple[int, ...], ...]

    @property
    def places(self) -> tuple[int, ...]:
        """All its messages, in order."""
        answer = tuple(position for step in self.steps for position in step)
        return answer if self.user is None else (self.user, *answer)


def turns_of(messages: Sequence[Message]) -> list[Turn]:
    """Return the turns of a history, oldest first. The system message is in no turn."""
    turns: list[Turn] = []
    user: int | None = None
    steps: list[tuple[int, ...]] = []
    previous = ""
    for position, message in enumerate(messages):
        if message.role == SYSTEM:
            continue
        if message.role == USER:
            turns += _turn(user, steps)
            user, steps = position, []
        elif not steps or (previous == FUNCTION and message.role != FUNCTION):
            steps.append((position,))
        else:
            steps[-1] = (*steps[-1], position)
        previous = message.role
    return turns + _turn(user, steps)


def _turn(user: int | None, steps: list[tuple[int, ...]]) -> list[Turn]:
    """Return the turn, unless it is empty."""
    return [] if user is None and not steps else [Turn(user, tuple(steps))]
