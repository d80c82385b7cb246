"""Number the calls of one answer, both those parsed from its text and native ones."""

from __future__ import annotations

from dataclasses import dataclass, replace

from jackfield.events import FunctionCallDelta, PluginEvent

LEFT_OUT = -1
"""The index of an omitted call."""


@dataclass(frozen=True, slots=True)
class FoundCall:
    """A call parsed from text. `arguments` is JSON text, or the model's own text if it is not JSON."""

    name: str
    arguments: str


class Calls:
    """Assigns an index and an id to each call.

    Args:
        at_most_one: Forward only the first call in the text. Native calls are always forwarded.
    """

    def __init__(self, *, at_most_one: bool) -> None:
        self._at_most_one = at_most_one
        self._next = 0
        self._has_own = False
        self._native: dict[int, int] = {}
        self._left_out: list[str] = []

    def __bool__(self) -> bool:
        return self._next > 0

    def start(self, name: str) -> tuple[int, list[FunctionCallDelta]]:
        """Return a new call's index and first event; there is no event if the call is omitted."""
        if self._at_most_one and self._has_own:
            self._left_out.append(name)
            return LEFT_OUT, []
        self._has_own = True
        index, self._next = self._next, self._next + 1
        return index, [FunctionCallDelta(index, id=str(index + 1), name=name)]

    def native(self, delta: FunctionCallDelta) -> FunctionCallDelta:
        """Return a native call's delta with an index that no other call uses."""
        if delta.index not in self._native:
            self._native[delta.index], self._next = self._next, self._next + 1
        return replace(delta, index=self._native[delta.index])

    def left_out(self) -> list[PluginEvent]:
        """Return an event that lists the omitted calls, or an empty list if there are none."""
        if not self._left_out:
            return []
        names = ", ".join(self._left_out)
        note = f"parallel calls are disabled (parallel_function_calls: False); calls not made: {names}"
        return [PluginEvent("jackfield-call-formats.calls_left_out", {"note": note, "names": tuple(self._left_out)})]
