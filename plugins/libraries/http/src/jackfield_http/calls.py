"""Assemble tool calls from fragments, however a server labels them."""

from __future__ import annotations

import msgspec

from jackfield.events import FunctionCallDelta

_decode = msgspec.json.Decoder().decode


class _Call:
    """A call whose fragments are still arriving."""

    __slots__ = ("arguments", "id", "name", "number")

    def __init__(self, number: int) -> None:
        self.number = number
        self.id = ""
        self.name = ""
        self.arguments: list[str] = []

    def extend(self, call_id: str, name: str, arguments: str) -> FunctionCallDelta:
        """Add a fragment and return its event, which includes the id and name only when they are new."""
        new_id = call_id if call_id != self.id else ""
        new_name = "" if self.name else name
        self.id = call_id or self.id
        self.name = self.name or name
        if arguments:
            self.arguments.append(arguments)
        return FunctionCallDelta(self.number, new_id, new_name, arguments)

    def is_whole(self) -> bool:
        """Return True if the arguments are a complete JSON object."""
        try:
            return isinstance(_decode("".join(self.arguments)), dict)
        except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
            return False


class Calls:
    """The tool calls in one answer.

    A fragment belongs to the call with the same index. If a server omits the index or uses it twice, the id and the
    name decide.
    """

    def __init__(self) -> None:
        self._all: list[_Call] = []
        self._at_index: dict[object, _Call] = {}

    def __bool__(self) -> bool:
        return bool(self._all)

    def add_piece(self, index: object, call_id: str, name: str, arguments: str) -> FunctionCallDelta:
        """Return the event for a fragment.

        Args:
            index: The call's index, or None if the server sends none.
            call_id: The call's id, or '' if there is none.
            name: The function's name, or '' if there is none. Servers send it with the first fragment or with every
                one.
            arguments: The next part of the arguments.
        """
        return self._call_of(index, call_id, name, arguments).extend(call_id, name, arguments)

    def add_whole(self, call_id: str, name: str, arguments: str) -> FunctionCallDelta:
        """Return the event for a call that arrives complete."""
        return self._begin().extend(call_id, name, arguments)

    def _call_of(self, index: object, call_id: str, name: str, arguments: str) -> _Call:
        key = index if index is not None else call_id or None
        last = self._all[-1] if self._all else None
        call = last if key is None else self._at_index.get(key)
        if call is None or _is_another(call, call_id, name, arguments):
            call = self._begin()
            if key is not None:
                self._at_index[key] = call
        return call

    def _begin(self) -> _Call:
        call = _Call(len(self._all))
        self._all.append(call)
        return call


def _is_another(call: _Call, call_id: str, name: str, arguments: str) -> bool:
    """Return True if a fragment at the index of `call` begins another call.

    Only a fragment with a name can begin one. If both have an id, the ids must differ; otherwise, the name must differ,
    or the arguments must start over after a complete object. An id alone is not enough, because some servers generate a
    new one for each fragment.
    """
    if not name or not call.name:
        return False
    if call_id and call.id:
        return call_id != call.id
    return name != call.name or (arguments.lstrip().startswith("{") and call.is_whole())
