"""Convert between a record's JSON entries and events.

An entry is a run's event in the format of `eventjson`, without `run_id`, `number`, `agent` and `depth`. Three types of
entries are not events: `Resumed`, where the run continues after an interruption or a pause; `Added`, with messages from
neither a model nor a tool; and `Traced`, with the trace in which the run began.
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
"""The entries that are not events of the run."""
FACTS = "facts"
"""The key of the first entry's metadata for the process that begins the run."""
DIGESTS = "digests"
"""The key of an approval request's digests, one per call as it was shown for approval."""
_ADDED_LATER = ("below", "asked", DIGESTS)  # beside what an entry says
_BESIDE_THE_EVENT = ("event", *_ADDED_LATER, SEAL, FACTS)
_ASKS_FOR_APPROVAL = '{"event": "ApprovalNeeded", "calls"'
_REPORTED = '{"event": "PluginEvent"'
_UNREADABLE = "the record cannot be read, or was written by a newer version"
_SEALED = f'"{SEAL}":'
_HEAD = re.compile(r'\{(?:"below": (\d+), )?"event": "(\w+)"')


class EntryHead(NamedTuple):
    """An entry's event, and the run it belongs to.

    Attributes:
        event: The event's name.
        below: The number of the nested run that the entry belongs to, or 0 for the run itself.
        begins: The id of the nested run that begins with this entry, or ''.
    """

    event: str
    below: int = 0
    begins: str = ""


def head_of(entry: str) -> EntryHead:
    """Return an entry's head, in most cases without parsing the entry.

    Raises:
        StoreError: The entry is not a JSON object.
    """
    match = _HEAD.match(entry)
    if match and _SEALED not in entry:
        return EntryHead(match[2], int(match[1] or 0))
    # A nested run's first entry, or one whose fields were rewritten because a secret was hidden.
    fields = read_entry(entry)
    begins = fields.get("asked")
    run_id = begins.get("run_id", "") if isinstance(begins, dict) else ""
    return EntryHead(str(fields.get("event", "")), int(fields.get("below", 0)), str(run_id))


def entry_of(event: Step, *, with_texts: bool) -> str:
    """Convert an event to an entry.

    Args:
        event: An event of the run that the record belongs to.
        with_texts: True to record the content of messages, arguments and results. Otherwise, only names, counts and
            times are recorded.

    Raises:
        ValueError: The event contains a value that cannot be represented in JSON.
    """
    name = type(event).__name__
    if not with_texts:
        return json.dumps({"event": name, "bare": True, **_fields_without_texts(event)})
    write_fields = _WRITERS.get(type(event))
    if write_fields is None:
        return json.dumps(event_to_json(event, with_defaults=False))
    return f'{{"event": "{name}", {write_fields(event)}}}'


def entry_of_trace(run_id: str, trace: Mapping[str, str]) -> str:
    """Convert a run's trace to an entry. A forked run has the original run's trace entry, followed by its own."""
    return json.dumps({"event": TRACED, "run_id": run_id, "headers": dict(trace)})


async def hide_entry(entry: str, secrets: Secrets) -> str:
    """Replace secrets in an entry with placeholders, and if there are any, add a digest of the original.

    Writing is fast if there is nothing to hide, because the entry is not parsed. Digests of secrets are computed in a
    worker thread, because each takes tens of milliseconds.
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
    """Parse an entry.

    Args:
        entry: The stored entry.
        secrets: The secrets to restore in place of their placeholders, if the digest proves that the entry contained
            them. An entry whose secrets are missing or have changed retains its digest.

    Raises:
        StoreError: The entry is not a JSON object.
    """
    try:
        fields = json.loads(entry)
    except (ValueError, RecursionError) as error:
        raise StoreError(f"the record cannot be read: an entry is not valid JSON ({error})") from None
    if not isinstance(fields, dict):
        raise StoreError("the record cannot be read: an entry is not an object")
    if SEAL not in fields:
        return fields
    structure = {name: fields.pop(name) for name in _ADDED_LATER if name in fields}
    rest, is_unsealed = (fields, False) if secrets is None else secrets.unseal(fields)
    return {**rest, **structure} if is_unsealed else {**rest, **structure, SEAL: fields.get(SEAL)}


def has_seals(entries: Iterable[str]) -> bool:
    """Return True if any entry may have a digest of secrets, which makes reading it with secrets slow."""
    return any(_SEALED in entry for entry in entries)


def reported_in(entries: Iterable[str], secrets: Secrets | None = None) -> tuple[PluginEvent, ...]:
    """Return the plugins' reports, except for those with secrets not known here. Other entries are not read."""
    reports = [read_entry(entry, secrets) for entry in entries if entry.startswith(_REPORTED)]
    readable = [fields for fields in reports if not fields.get("bare") and SEAL not in fields]
    events = (event_in(fields.pop("event"), fields) for fields in readable)
    return tuple(event for event in events if isinstance(event, PluginEvent))


def event_in(name: object, fields: Mapping[str, Any]) -> Step:
    """Return the event with this name and an entry's fields.

    Raises:
        StoreError: The event is unknown, or the fields do not fit it.
    """
    try:
        return event_from_json({"event": name, **fields})
    except ValueError as error:
        raise StoreError(f"{_UNREADABLE}: {error}") from error


def step_in(entry: str) -> Step:
    """Return an entry's event, with placeholders for secrets.

    Raises:
        StoreError: The entry is not a known event.
    """
    fields = read_entry(entry)
    own = {name: value for name, value in fields.items() if name not in _BESIDE_THE_EVENT}
    return event_in(fields.get("event"), own)


def messages_in(fields: Mapping[str, Any]) -> tuple[Message, ...]:
    """Return the messages in an entry's fields.

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
    """Return True if a call matches the digest recorded when a person was asked to approve it."""
    return has_digest(_as_approved({"name": call.name, "arguments": call.arguments}), digest)


def _as_approved(call: Mapping[str, Any]) -> list[object]:
    return [call.get("name"), call.get("arguments")]


def listed(messages: Iterable[Message], *, with_texts: bool = True) -> str:
    """Format messages as a list in an entry, or an empty list without texts."""
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


# The most frequent events are formatted by hand, because `eventjson` would take five times as long.
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
