"""Number the events of a run so that each number is a cursor in every process.

A step that the record keeps has the number of its entry times `STRIDE`. Events between two steps are not recorded, so
their numbers lie between those of the steps: live events in the lower half, and events derived from the next entry in
the upper half. A live delta takes as many numbers as it has characters. Numbers only grow; gaps mean nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from jackfield.events import AgentEvent, FunctionCallDelta, ModelEvent, ReasoningDelta, RunEvent, TextDelta

STRIDE = 1 << 24
"""The distance of the numbers of two entries. Numbers of 500 million entries fit into a double."""
HALF = STRIDE // 2
_TEXTS = (TextDelta, ReasoningDelta)  # otherwise a union would be created for each event


class Numbered(NamedTuple):
    """An event with its number: pass the last number to `attach(after=…)` to get all events that follow."""

    number: int
    event: RunEvent


def width_of(event: ModelEvent | AgentEvent) -> int:
    """Return the number of numbers that a live event takes."""
    if isinstance(event, _TEXTS):
        return len(event.text) or 1
    return _width_of_call(event) or 1 if isinstance(event, FunctionCallDelta) else 1


def _width_of_call(delta: FunctionCallDelta) -> int:
    return len(delta.arguments) + (1 if delta.id or delta.name else 0)


def can_join(first: object, second: object) -> bool:
    """Return True if two consecutive deltas can be joined into one, as wide as both."""
    match first, second:
        case TextDelta(), TextDelta():
            return bool(first.text and second.text)
        case ReasoningDelta(), ReasoningDelta():
            return bool(first.text and second.text)
        case FunctionCallDelta(), FunctionCallDelta(id="", name=""):
            return first.index == second.index and bool(second.arguments) and _width_of_call(first) > 0
    return False


def join_deltas(deltas: Sequence[object]) -> TextDelta | ReasoningDelta | FunctionCallDelta:
    """Join deltas, each of which can be joined with the next."""
    first: Any = deltas[0]
    if isinstance(first, FunctionCallDelta):
        return replace(first, arguments="".join([delta.arguments for delta in deltas]))  # type: ignore[attr-defined]
    joined: TextDelta | ReasoningDelta = replace(first, text="".join([delta.text for delta in deltas]))  # type: ignore[attr-defined]
    return joined


def cut_delta(event: RunEvent, seen: int) -> RunEvent:
    """Return a delta without its first `seen` numbers."""
    delta = event.event
    if isinstance(delta, TextDelta | ReasoningDelta):
        return event._replace(event=replace(delta, text=delta.text[seen:]))
    if isinstance(delta, FunctionCallDelta):  # an id and a name take the first number
        seen -= 1 if delta.id or delta.name else 0
        return event._replace(event=FunctionCallDelta(delta.index, arguments=delta.arguments[seen:]))
    return event
