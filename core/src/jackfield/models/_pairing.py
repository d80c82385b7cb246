"""Which result is that of which call."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass

from jackfield.messages import FunctionCall, Message


@dataclass(frozen=True, slots=True)
class OpenCall:
    """A call that waits for its result; `given_id` is the one in the history."""

    id: str
    given_id: str | None
    function: FunctionCall


def paired(asked: Sequence[OpenCall], results: Sequence[Message]) -> tuple[list[Message | None], list[Message]]:
    """For each call its result, those by id and name first, then by id, then by name; and the results that are left."""
    found: list[Message | None] = [None] * len(asked)
    left = dict(enumerate(results))
    for level in range(3):
        places: defaultdict[object, deque[int]] = defaultdict(deque)
        for place, result in left.items():
            places[_keys(result.function_id, result.name)[level]].append(place)
        for number, call in enumerate(asked):
            alike = places.get(_keys(call.given_id, call.function.name)[level])
            if found[number] is None and alike:
                found[number] = left.pop(alike.popleft())
    return found, [*left.values()]


def _keys(call_id: str | None, name: str | None) -> tuple[object, object, object]:
    """What a call and its result have in common, the closest first. Two without an id have not the same one."""
    alone = object()
    return (alone, alone, name) if call_id is None else ((call_id, name), call_id, name)
