"""Number a run's events so that every number is a valid cursor in every process.

The number of a recorded step is its entry's index times `STRIDE`. Events between two steps are not recorded, so their
numbers lie in between: live events in the lower half, and events derived from the next entry in the upper half. A live
delta takes up as many numbers as it has characters. Numbers only increase, and gaps have no meaning.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from jackfield.events import AgentEvent, FunctionCallDelta, ModelEvent, ReasoningDelta, RunEvent, TextDelta

STRIDE = 1 << 24
"""The distance between the numbers of two entries. The numbers of 500 million entries fit into a double."""
HALF = STRIDE // 2
_TEXTS = (TextDelta, ReasoningDelta)  # otherwise a union would be created for each event


class Numbered(NamedTuple):
    """An event with its number. Pass the last number to `attach(after=…)` to get all later events."""

    number: int
    event: RunEvent


def width_of(event: ModelEvent | AgentEvent) -> int:
    """Return how many numbers a live event takes up."""
    if isinstance(event, _TEXTS):
        return len(event.text) or 1
    return _width_of_call(event) or 1 if isinstance(event, FunctionCallDelta) else 1


def _width_of_call(delta: FunctionCallDelta) -> int:
    return len(delta.arguments) + (1 if delta.id or delta.name else 0)


def can_join(first: object, second: object) -> bool:
    """Return True if two consecutive deltas can be joined into one that takes up the same numbers."""
    match first, second:
        case TextDelta(), TextDelta():
            return bool(first.text and second.text)
        case ReasoningDelta(), ReasoningDelta():
            return bool(first.text and second.text)
        case FunctionCallDelta(), FunctionCallDelta(id="", name=""):
            return first.index == second.index and bool(second.arguments) and _width_of_call(first) > 0
    return False


def join_deltas(deltas: Sequence[object]) -> TextDelta | ReasoningDelta | FunctionCallDelta:
    """Join deltas, each of which must be joinable with the next."""
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
