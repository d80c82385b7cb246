"""What a run does next: pure, and all there is to decide."""

from __future__ import annotations

import itertools
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from jackfield.agents._limits import Spent, limit_reached
from jackfield.config import Limits
from jackfield.events import StopReason
from jackfield.messages import ASSISTANT, FUNCTION, Message, Role
from jackfield.models._pairing import OpenCall, paired
from jackfield.tools._executor import STOPPED_TEXT, PlannedCall


@dataclass(frozen=True, slots=True)
class AskModel:
    """Ask the model."""


@dataclass(frozen=True, slots=True)
class RunTools:
    """Run these calls, all of one turn."""

    calls: tuple[PlannedCall, ...]


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait for approval of these calls."""

    calls: tuple[PlannedCall, ...]


@dataclass(frozen=True, slots=True)
class Finish:
    """End the run."""

    reason: StopReason


Action: TypeAlias = AskModel | RunTools | Pause | Finish


def decide(
    history: Sequence[Message],
    spent: Spent,
    limits: Limits,
    *,
    needs_approval: Container[str] = frozenset(),
    resume: bool = False,
    answered: Container[str] = frozenset(),
    in_doubt: Container[str] = frozenset(),
    turns_before: int = 0,
) -> Action:
    """Decide what a run does next; do none of it.

    Args:
        history: All messages so far. Where it ends in calls without results, these come first.
        spent: What the run has used.
        limits: What it may use.
        needs_approval: Names of tools whose calls must wait for approval.
        resume: Open calls that the run was given are to be run. Without it, the run pauses at them: whoever can write a
            history can write a call.
        answered: Ids of such calls that were approved or refused.
        in_doubt: Ids of such calls that may have been made already, and must not be made twice unasked.
        turns_before: The turns that were spent before the run went on.
    """
    if calls := open_calls(history):
        if limits.tool_calls is not None and spent.tool_calls + len(calls) > limits.tool_calls:
            return Finish("tool_call_limit")
        if spent.turns > turns_before:  # its own model's: nobody has answered yet
            return _run_or_pause(calls, needs_approval, (), ())
        return _run_or_pause(calls, needs_approval, answered, in_doubt) if resume else Pause(calls)
    if spent.turns and history[-1].role == ASSISTANT:
        return Finish("finished" if _says_something(history[-1]) else "empty_reply")
    reached = limit_reached(spent, limits)
    return Finish(reached) if reached else AskModel()


def _run_or_pause(
    calls: tuple[PlannedCall, ...], needs_approval: Container[str], answered: Container[str], in_doubt: Container[str]
) -> RunTools | Pause:
    asked = (one for one in calls if one.call.name in needs_approval or one.call_id in in_doubt)
    waiting = tuple(one for one in asked if one.call_id not in answered)
    return Pause(waiting) if waiting else RunTools(calls)


def open_calls(history: Sequence[Message]) -> tuple[PlannedCall, ...]:
    """The calls at the end of a history that have no result yet, each with an id of its own.

    Only the last turn is looked at; ids of earlier turns may be the same.
    """
    end = _start_of(FUNCTION, history, len(history))
    start = _start_of(ASSISTANT, history, end)
    calls = [OpenCall("", one.function_id, one.function_call) for one in history[start:end] if one.function_call]
    if not calls:  # as after each answer
        return ()
    results, _ = paired(calls, history[end:])
    waiting = [(index, call) for index, call in enumerate(calls) if results[index] is None]
    ids = _own_ids((call.given_id for _, call in waiting), {message.function_id for message in history[start:]})
    return tuple(PlannedCall(index, one, call.function) for (index, call), one in zip(waiting, ids, strict=True))


def _own_ids(given: Iterable[str | None], taken: Container[str | None]) -> list[str]:
    """An id for each call: its own, if it has one that no call before it has."""
    fresh = (name for number in itertools.count(1) if (name := f"call_{number}") not in taken)
    own: dict[str, None] = {}
    for one in given:
        own[next(fresh) if one is None or one in own else one] = None
    return list(own)


def _start_of(role: Role, history: Sequence[Message], end: int) -> int:
    """Where the messages of a role begin that stand before a place."""
    while end and history[end - 1].role == role:
        end -= 1
    return end


def with_calls_closed(history: Sequence[Message], text: str = STOPPED_TEXT) -> list[Message]:
    """The history with a result for each call that has none: every provider refuses one with open calls.

    A history does not tell whether such a call was made, so the result says that it may have been.
    """
    closing = [
        Message(FUNCTION, text, name=planned.call.name, extra={"function_id": planned.call_id})
        for planned in open_calls(history)
    ]
    return [*history, *closing]


def _says_something(message: Message) -> bool:
    return bool(message.content or message.reasoning_content)
