"""Match tool results with their calls."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Sequence
from typing import NamedTuple

from jackfield.messages import FunctionCall, Message


class OpenCall(NamedTuple):
    """A call that is waiting for its result. `original_id` is the call's id in the history."""

    id: str
    original_id: str | None
    function: FunctionCall


def pair_results(calls: Sequence[OpenCall], results: Sequence[Message]) -> tuple[list[Message | None], list[Message]]:
    """Match calls with their results: first by id and name, then by id, then by name.

    Returns:
        A list with each call's result, or None if the call has no result, and a list of the results that match no call.
    """
    if _are_in_order(calls, results):  # the usual case; the search below costs ten times as much
        return [*results], []
    paired: list[Message | None] = [None] * len(calls)
    unpaired = dict(enumerate(results))
    for level in range(3):
        numbers_by_key: defaultdict[object, deque[int]] = defaultdict(deque)
        for number, result in unpaired.items():
            numbers_by_key[_keys(result.function_id, result.name)[level]].append(number)
        for index, call in enumerate(calls):
            numbers = numbers_by_key.get(_keys(call.original_id, call.function.name)[level])
            if paired[index] is None and numbers:
                paired[index] = unpaired.pop(numbers.popleft())
    return paired, list(unpaired.values())


def _are_in_order(calls: Sequence[OpenCall], results: Sequence[Message]) -> bool:
    if len(calls) != len(results):
        return False
    for call, result in zip(calls, results, strict=True):
        if call.original_id != result.function_id or call.function.name != result.name:
            return False
    return True


def _keys(call_id: str | None, name: str | None) -> tuple[object, object, object]:
    """Return the keys that match a call with its result, from most to least exact. Missing ids never match."""
    unique = object()
    return (unique, unique, name) if call_id is None else ((call_id, name), call_id, name)
