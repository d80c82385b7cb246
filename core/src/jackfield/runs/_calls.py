"""Pending calls: the calls at the end of a history that have no result."""

from __future__ import annotations

import itertools
from collections.abc import Container, Iterable, Sequence

from jackfield.messages import ASSISTANT, FUNCTION, Message
from jackfield.models._pairing import OpenCall, pair_results
from jackfield.tools._executor import STOPPED_TEXT
from jackfield.tools._plan import PlannedCall


def open_calls(history: Sequence[Message]) -> tuple[PlannedCall, ...]:
    """Return the calls at the end of a history that have no result yet, each with a unique id.

    Only calls of the last turn are returned, because earlier turns may use the same ids.
    """
    end = len(history)
    while end and history[end - 1].role == FUNCTION:
        end -= 1
    start = end
    while start and history[start - 1].role == ASSISTANT:
        start -= 1
    calls = [OpenCall("", one.function_id, one.function_call) for one in history[start:end] if one.function_call]
    if not calls:  # the usual case after an answer
        return ()
    results = history[end:]
    call_ids = [call.original_id for call in calls]
    if results and None not in call_ids and call_ids == list(dict.fromkeys(one.function_id for one in results)):
        return ()  # the usual case after tools ran: the results have the calls' ids, in order
    matches = pair_results(calls, results)[0] if results else [None] * len(calls)
    waiting = [(index, call) for index, call in enumerate(calls) if matches[index] is None]
    ids = _own_ids((call.original_id for _, call in waiting), {message.function_id for message in history[start:]})
    return tuple(PlannedCall(index, one, call.function) for (index, call), one in zip(waiting, ids, strict=True))


def _own_ids(given: Iterable[str | None], taken: Container[str | None]) -> list[str]:
    """Return an id for each call: the call's own id, or a new id if it is missing or used by an earlier call."""
    fresh = (name for number in itertools.count(1) if (name := f"call_{number}") not in taken)
    own: dict[str, None] = {}
    for one in given:
        own[next(fresh) if one is None or one in own else one] = None
    return list(own)


def with_calls_closed(history: Sequence[Message], text: str = STOPPED_TEXT) -> list[Message]:
    """Return the history with a result for each pending call, because all providers reject pending calls.

    A history does not show whether a pending call was made, so the result says that it may have been.
    """
    closing = [
        Message(FUNCTION, text, name=planned.call.name, extra={"function_id": planned.call_id})
        for planned in open_calls(history)
    ]
    return [*history, *closing]
