"""The entries of a record, as JSON.

An entry is an event of the run in the form of `eventjson`, without `run_id`, `number`, `agent` and `depth`. Three kinds
of entries are not events: `Resumed`, where the run goes on after an interruption or a pause; `Added`, a message that no
model and no tool made; and `Traced`, the trace under which the run began.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypeAlias

from jackfield.errors import StoreError
from jackfield.events import (
    AgentEvent,
    ApprovalDecided,
    ApprovalNeeded,
    HandedOff,
    ModelEvent,
    PluginEvent,
    RunFailed,
    RunFinished,
    RunStarted,
    ToolFinished,
    TurnFinished,
)
from jackfield.messages import FunctionCall, Message, Usage
from jackfield.secrets import SEAL, Secrets, digest_of, has_digest
from jackfield.sync import in_worker
from jackfield_records.eventjson import event_from_json, event_to_json, messages_from_json, value_to_json

Step: TypeAlias = ModelEvent | AgentEvent
"""An event of one run. Unlike `jackfield.runs.Event`, it is never the event of a nested run (`RunEvent`)."""

RESUMED, ADDED, TRACED = "Resumed", "Added", "Traced"
WITHOUT_EVENT = frozenset({RESUMED, ADDED, TRACED})
"""The entries without an event of the run."""
FACTS = "facts"
"""The key under which the first entry has facts about the run for the process that begins it."""
DIGESTS = "digests"
"""The key under which a question for approval has a digest of each call, as it was shown to be approved."""
_ADDED_LATER = ("below", "asked", DIGESTS)  # beside what an entry says
_BESIDE_THE_EVENT = ("event", *_ADDED_LATER, SEAL, FACTS)
_ASKS_FOR_APPROVAL = '{"event": "ApprovalNeeded", "calls"'
_REPORTED = '{"event": "PluginEvent"'
_UNREADABLE = "the record cannot be read, or a newer version has written it"
_SEALED = f'"{SEAL}":'
_HEAD = re.compile(r'\{(?:"below": (\d+), )?"event": "(\w+)"')


class EntryHead(NamedTuple):
    """The event of an entry, and the run that it belongs to.

    Attributes:
        event: The name of the event.
        below: The number of the nested run that it belongs to; 0 for the run itself.
        begins: The id of the nested run that begins with it, or ''.
    """

    event: str
    below: int = 0
    begins: str = ""


def head_of(entry: str) -> EntryHead:
    """Return the head of an entry; most entries are not parsed for it.

    Raises:
        StoreError: The entry is not an object.
    """
    match = _HEAD.match(entry)
    if match and _SEALED not in entry:
        return EntryHead(match[2], int(match[1] or 0))
    # The first entry of a nested run, or one whose fields were written anew because a secret was hidden.
    fields = read_entry(entry)
    begins = fields.get("asked")
    run_id = begins.get("run_id", "") if isinstance(begins, dict) else ""
    return EntryHead(str(fields.get("event", "")), int(fields.get("below", 0)), str(run_id))


def entry_of(event: Step, *, with_texts: bool) -> str:
    """Return an event as an entry.

    Args:
        event: An event of the run that it belongs to.
        with_texts: Record the content of messages, arguments and results; otherwise only names, counts and times.

    Raises:
        ValueError: The event holds a value that cannot be written as JSON.
    """
    name = type(event).__name__
    if not with_texts:
        return json.dumps({"event": name, "bare": True, **_fields_without_texts(event)})
    write_fields = _WRITERS.get(type(event))
    if write_fields is None:
        return json.dumps(event_to_json(event, with_defaults=False))
    return f'{{"event": "{name}", {write_fields(event)}}}'


def entry_of_trace(run_id: str, trace: Mapping[str, str]) -> str:
    """Return the trace of a run as an entry. A forked run has the entry of the other run, and then its own."""
    return json.dumps({"event": TRACED, "run_id": run_id, "headers": dict(trace)})


async def hide_entry(entry: str, secrets: Secrets) -> str:
    """Return an entry with placeholders for secrets; one that has any also holds a digest of the original.

    Writing is fast as long as there is nothing to hide: the entry is taken apart only if there is. Digests of secrets
    are computed in a worker thread, because each of them takes tens of milliseconds.
    """
    is_question = entry.startswith(_ASKS_FOR_APPROVAL)
    if not (is_question or secrets.may_be_in(entry)):
        return entry
    fields = json.loads(entry)
    structure = {name: fields.pop(name) for name in _ADDED_LATER if name in fields}
    digests = {DIGESTS: [await _digest_of(call, secrets) for call in fields["calls"]]} if is_question else {}
    hidden = secrets.hide_fields(fields)
    if hidden != fields:
        hidden = {**hidden, SEAL: await in_worker(digest_of, fields, is_secret=True)}
    return json.dumps({**hidden, **structure, **digests}) if digests or SEAL in hidden else entry


def read_entry(entry: str, secrets: Secrets | None = None) -> dict[str, Any]:
    """Return an entry as an object.

    Args:
        entry: As a store keeps it.
        secrets: Put back in place of their placeholders, if the digest proves that the entry had them. An entry whose
            secrets are missing or have changed keeps its digest.

    Raises:
        StoreError: The entry is not an object.
    """
    try:
        fields = json.loads(entry)
    except (ValueError, RecursionError) as error:
        raise StoreError(f"the record cannot be read: an entry is not JSON ({error})") from None
    if not isinstance(fields, dict):
        raise StoreError("the record cannot be read: an entry is not an object")
    if SEAL not in fields:
        return fields
    structure = {name: fields.pop(name) for name in _ADDED_LATER if name in fields}
    rest, is_unsealed = (fields, False) if secrets is None else secrets.unseal(fields)
    return {**rest, **structure} if is_unsealed else {**rest, **structure, SEAL: fields.get(SEAL)}


def has_seals(entries: Iterable[str]) -> bool:
    """Return True if an entry may have a digest of secrets, so that reading it with the secrets takes long."""
    return any(_SEALED in entry for entry in entries)


def reported_in(entries: Iterable[str], secrets: Secrets | None = None) -> tuple[PluginEvent, ...]:
    """Return the reports of plugins, without those whose secrets are unknown here; other entries are not read."""
    reports = [read_entry(entry, secrets) for entry in entries if entry.startswith(_REPORTED)]
    readable = [fields for fields in reports if not fields.get("bare") and SEAL not in fields]
    events = (event_in(fields.pop("event"), fields) for fields in readable)
    return tuple(event for event in events if isinstance(event, PluginEvent))


def event_in(name: object, fields: Mapping[str, Any]) -> Step:
    """Return the event of this name with the fields of an entry.

    Raises:
        StoreError: The name and fields are not those of a known event.
    """
    try:
        return event_from_json({"event": name, **fields})
    except ValueError as error:
        raise StoreError(f"{_UNREADABLE}: {error}") from error


def step_in(entry: str) -> Step:
    """Return the event of an entry, with placeholders for secrets.

    Raises:
        StoreError: The entry is not a known event.
    """
    fields = read_entry(entry)
    own = {name: value for name, value in fields.items() if name not in _BESIDE_THE_EVENT}
    return event_in(fields.get("event"), own)


def messages_in(fields: Mapping[str, Any]) -> tuple[Message, ...]:
    """Return the messages in the fields of an entry.

    Raises:
        StoreError: The messages cannot be read.
    """
    try:
        return messages_from_json(fields.get("messages", []))
    except ValueError as error:
        raise StoreError(f"{_UNREADABLE}: {error}") from error


async def _digest_of(call: object, secrets: Secrets) -> str:
    call = call if isinstance(call, dict) else {}
    if secrets.are_in(str(call.get("arguments", ""))):
        return await in_worker(digest_of, _as_approved(call), is_secret=True)
    return digest_of(_as_approved(call), is_secret=False)


def is_as_approved(call: FunctionCall, digest: str) -> bool:
    """Return True if a call has the digest that was recorded when it was put to a person."""
    return has_digest(_as_approved({"name": call.name, "arguments": call.arguments}), digest)


def _as_approved(call: Mapping[str, Any]) -> list[object]:
    return [call.get("name"), call.get("arguments")]


def listed(messages: Iterable[Message], *, with_texts: bool = True) -> str:
    """Return messages as a list of an entry; without texts the list is empty."""
    return f"[{', '.join(map(_message, messages))}]" if with_texts else "[]"


def _message(message: Message) -> str:
    try:
        return message.model_dump_json(exclude_defaults=True)
    except ValueError:  # half of a surrogate pair, or an object of the caller's own in `extra`
        return json.dumps(message.model_dump(exclude_defaults=True), default=repr)


def _tool_finished(event: ToolFinished) -> str:
    small = {"index": event.index, "call_id": event.call_id, "seconds": event.seconds, "error": event.error}
    metadata = f', "metadata": {json.dumps(value_to_json(event.metadata))}' if event.metadata else ""
    return f'{json.dumps(small)[1:-1]}, "message": {_message(event.message)}{metadata}'


def _used_and_said(event: TurnFinished | RunFinished) -> str:
    return f'"usage": {event.usage.model_dump_json(exclude_defaults=True)}, "messages": {listed(event.messages)}'


# The most frequent events are written by hand: `eventjson` would take five times as long.
_WRITERS: Mapping[type, Callable[[Any], str]] = {
    TurnFinished: lambda one: f'"turn": {one.turn}, "seconds": {round(one.seconds, 3)}, {_used_and_said(one)}',
    RunStarted: lambda one: f'"messages": {listed(one.messages)}',
    RunFinished: lambda one: f'"stop_reason": "{one.stop_reason}", {_used_and_said(one)}',
    ToolFinished: _tool_finished,
}


def _fields_without_texts(event: Step) -> Mapping[str, object]:
    select_fields = _WITHOUT_TEXTS.get(type(event))
    return {} if select_fields is None else select_fields(event)


def _used(usage: Usage) -> dict[str, Any]:
    return usage.model_dump(mode="json")


def _names_of_calls(messages: Iterable[Message]) -> list[str]:
    return [message.function_call.name for message in messages if message.function_call]


_WITHOUT_TEXTS: Mapping[type, Callable[[Any], Mapping[str, object]]] = {
    TurnFinished: lambda one: {
        "turn": one.turn,
        "seconds": round(one.seconds, 3),
        "usage": _used(one.usage),
        "calls": _names_of_calls(one.messages),
    },
    ToolFinished: lambda one: {
        "index": one.index,
        "call_id": one.call_id,
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
