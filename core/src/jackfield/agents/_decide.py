"""Decide a run's next step in one pure function."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from jackfield._runstate import Spent
from jackfield.config import Limits
from jackfield.events import StopReason
from jackfield.messages import ASSISTANT, Message
from jackfield.runs._calls import open_calls
from jackfield.runs._limits import limit_reached
from jackfield.tools._plan import PlannedCall


@dataclass(frozen=True, slots=True)
class AskModel:
    """Ask the model."""


@dataclass(frozen=True, slots=True)
class RunTools:
    """Run these calls, which are all the calls of a turn. If a call needs approval, the run pauses instead."""

    calls: tuple[PlannedCall, ...]


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait for approval of these calls."""

    calls: tuple[PlannedCall, ...]


@dataclass(frozen=True, slots=True)
class HandOff:
    """Hand the conversation over to the agent named `to`."""

    to: str


@dataclass(frozen=True, slots=True)
class Finish:
    """End the run."""

    reason: StopReason


Action: TypeAlias = AskModel | RunTools | Pause | HandOff | Finish


def decide(
    history: Sequence[Message],
    spent: Spent,
    limits: Limits,
    *,
    resume: bool = False,
    turns_before: int = 0,
    handoff_to: str = "",
) -> Action:
    """Decide a run's next step without taking it.

    Args:
        history: All messages so far. Pending calls at the end are handled first.
        spent: The run's usage so far.
        limits: The run's limits.
        resume: True to run calls that were already pending at the start. If False, the run pauses at these calls,
            because anyone who can write a history can add a call.
        turns_before: The number of turns taken before the run was resumed.
        handoff_to: The agent that takes over before the next turn, or '' if none does.
    """
    if calls := open_calls(history):
        if limits.tool_calls is not None and spent.tool_calls + len(calls) > limits.tool_calls:
            return Finish("tool_call_limit")
        is_fresh = spent.turns > turns_before  # the calls come from the run's own model
        return RunTools(calls) if is_fresh or resume else Pause(calls)
    if spent.turns and history[-1].role == ASSISTANT:
        return Finish("finished" if _says_something(history[-1]) else "empty_reply")
    if reached := limit_reached(spent, limits):
        return Finish(reached)
    return HandOff(handoff_to) if handoff_to else AskModel()


def _says_something(message: Message) -> bool:
    return bool(message.content)  # reasoning alone does not count as an answer
