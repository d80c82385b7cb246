"""Which result is that of which call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jackfield.messages import FunctionCall, Message


def results_of(calls: Sequence[Message], results: Sequence[Message]) -> list[Message | None]:
    """For each message with a call its result among those that follow, None where there is none."""
    asked = [OpenCall("", call.function_id, call.function_call) for call in calls if call.function_call is not None]
    return paired(asked, results)[0]


@dataclass(frozen=True, slots=True)
class OpenCall:
    """A call that waits for its result; `given_id` is the one in the history."""

    id: str
    given_id: str | None
    function: FunctionCall

    def closeness(self, result: Message) -> int:
        """How much a result looks like that of this call: by id and name 3, by id 2, by name 1, else 0."""
        same_id = self.given_id is not None and self.given_id == result.function_id
        return 2 * same_id + (self.function.name == result.name)


def paired(asked: Sequence[OpenCall], results: Sequence[Message]) -> tuple[list[Message | None], list[Message]]:
    """For each call its result, the closest pairs first; and the results that are left."""
    found: list[Message | None] = [None] * len(asked)
    left = list(results)
    for wanted in (3, 2, 1):
        for number, call in enumerate(asked):
            if not left:
                return found, left
            if found[number] is None:
                place = next((at for at, result in enumerate(left) if call.closeness(result) == wanted), None)
                if place is not None:
                    found[number] = left.pop(place)
    return found, left
