"""The entries of a record, as JSON.

An entry is an event of the run as `eventjson` has it, without what it has in common with the whole run; or one of two
of its own: `Resumed`, where the run goes on after an interruption or a pause, and `Added`, a message that no model and
no tool made.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from jackfield.errors import StoreError
from jackfield.events import (
    AgentEvent,
    ApprovalDecided,
    ApprovalNeeded,
    HandedOff,
    ModelEvent,
    PluginEvent,
    ResponseReplaced,
    RunFailed,
    RunFinished,
    RunStarted,
    ToolFinished,
    TurnFinished,
)
from jackfield.messages import Message, Usage
from jackfield_records.eventjson import event_from_json, event_to_json

Step: TypeAlias = ModelEvent | AgentEvent
"""An event of the run itself; those of agents that it asks are theirs."""

RESUMED, ADDED = "Resumed", "Added"
_REPORTED = '{"event": "PluginEvent"'


def entry_of(event: Step, *, whole: bool) -> str:
    """An event as an entry."""
    name = type(event).__name__
    if not whole:
        return json.dumps({"event": name, "bare": True, **_bare(event)})
    written = _WHOLE.get(type(event))
    if written is None:
        return json.dumps(event_to_json(event, whole=False))
    return f'{{"event": "{name}", {written(event)}}}'


def read_entry(entry: str) -> dict[str, Any]:
    """An entry as an object.

    Raises:
        StoreError: It is not one.
    """
    try:
        told = json.loads(entry)
    except (ValueError, RecursionError) as error:
        raise StoreError(f"the record cannot be read: an entry is not JSON ({error})") from None
    if not isinstance(told, dict):
        raise StoreError("the record cannot be read: an entry is not an object")
    return told


def reported_in(entries: Iterable[str]) -> tuple[PluginEvent, ...]:
    """What plugins have reported; no other entry is read."""
    told = [read_entry(entry) for entry in entries if entry.startswith(_REPORTED)]
    events = (event_in(one.pop("event"), one) for one in told if not one.get("bare"))
    return tuple(event for event in events if isinstance(event, PluginEvent))


def event_in(name: object, told: Mapping[str, Any]) -> Step:
    """The event of this name that an entry stands for.

    Raises:
        StoreError: It is not an event that is known here.
    """
    try:
        return event_from_json({"event": name, **told})
    except ValueError as error:
        raise StoreError(f"the record cannot be read, or a newer version has written it: {error}") from error


def messages_in(told: Mapping[str, Any]) -> tuple[Message, ...]:
    """The messages of an entry.

    Raises:
        StoreError: They cannot be read.
    """
    event = event_in("ResponseReplaced", {"messages": told.get("messages", [])})
    return event.messages if isinstance(event, ResponseReplaced) else ()


def _metadata(event: ToolFinished) -> str:
    return json.dumps(event_to_json(PluginEvent("", event.metadata))["data"])


def listed(messages: Iterable[Message], *, whole: bool = True) -> str:
    """Messages as a list of an entry; an empty one, if content is left out."""
    return f"[{', '.join(map(_message, messages))}]" if whole else "[]"


def _message(message: Message) -> str:
    try:
        return message.model_dump_json(exclude_defaults=True)
    except ValueError:  # half of a surrogate pair, or an object of the caller's own in `extra`
        return json.dumps(message.model_dump(exclude_defaults=True), default=repr)


def _tool_finished(event: ToolFinished) -> str:
    small = {"index": event.index, "call_id": event.call_id, "seconds": event.seconds, "error": event.error}
    more = f', "metadata": {_metadata(event)}' if event.metadata else ""
    return f'{json.dumps(small)[1:-1]}, "message": {_message(event.message)}{more}'


def _used_and_said(event: TurnFinished | RunFinished) -> str:
    return f'"usage": {event.usage.model_dump_json(exclude_defaults=True)}, "messages": {listed(event.messages)}'


# By hand what there is most of: `eventjson` would take five times as long.
_WHOLE: Mapping[type, Callable[[Any], str]] = {
    TurnFinished: lambda one: f'"turn": {one.turn}, {_used_and_said(one)}',
    RunStarted: lambda one: f'"messages": {listed(one.messages)}',
    RunFinished: lambda one: f'"stop_reason": "{one.stop_reason}", {_used_and_said(one)}',
    ToolFinished: _tool_finished,
}


def _bare(event: Step) -> Mapping[str, object]:
    """What an event says without what was said."""
    told = _BARE.get(type(event))
    return {} if told is None else told(event)


def _used(usage: Usage) -> Any:
    return json.loads(usage.model_dump_json())


def _names_of_calls(messages: Iterable[Message]) -> list[str]:
    return [message.function_call.name for message in messages if message.function_call]


_BARE: Mapping[type, Callable[[Any], Mapping[str, object]]] = {
    TurnFinished: lambda one: {"turn": one.turn, "usage": _used(one.usage), "calls": _names_of_calls(one.messages)},
    ToolFinished: lambda one: {
        "index": one.index,
        "name": one.message.name,
        "seconds": one.seconds,
        "error": one.error,
    },
    RunFinished: lambda one: {"stop_reason": one.stop_reason, "usage": _used(one.usage)},
    RunFailed: lambda one: {"kind": one.kind},
    HandedOff: lambda one: {"by": one.by, "to": one.to},
    ApprovalDecided: lambda one: {
        "call_id": one.call_id,
        "name": one.call.name,
        "allowed": one.allowed,
        "by": one.by,
    },
    ApprovalNeeded: lambda one: {"calls": [call.name for call in one.calls]},
}
