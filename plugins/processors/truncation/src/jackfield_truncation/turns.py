"""Structure a history into turns and steps, which can be removed without breaking it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jackfield.messages import FUNCTION, SYSTEM, USER, Message


@dataclass(frozen=True, slots=True)
class Turn:
    """A user message and the messages that follow it, by position in the history.

    Attributes:
        user: The user message, or None if the history starts with something else.
        steps: Each step is an assistant message with its calls and their results.
    """

    user: int | None
    steps: tuple[tuple[int, ...], ...]

    @property
    def places(self) -> tuple[int, ...]:
        """The positions of all messages in the turn, in order."""
        answer = tuple(position for step in self.steps for position in step)
        return answer if self.user is None else (self.user, *answer)


def turns_of(messages: Sequence[Message]) -> list[Turn]:
    """Return the turns of a history, oldest first. System messages belong to no turn."""
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
    """Return the turn in a list, or an empty list if the turn is empty."""
    return [] if user is None and not steps else [Turn(user, tuple(steps))]
