"""Convert between A2A messages and the messages, answers and history of a run."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from typing import Any

from a2a.types.a2a_pb2 import Message as A2AMessage
from a2a.types.a2a_pb2 import Part, Role
from google.protobuf.json_format import MessageToDict

from jackfield.jsontext import dumps
from jackfield.media import split_data_uri, write_data_uri
from jackfield.messages import ContentItem, Message
from jackfield.servers import RequestRefusedError
from jackfield.tools import Denial
from jackfield_a2a.rpc import Wire, invalid_params
from jackfield_serving import INPUT, RunInfo, is_public_url, public_address

NOTE = "a2a"
"""Key in `extra` for a message's A2A id."""
_YES = frozenset({"yes", "y", "approve", "approved", "allow", "ok"})
_NO = frozenset({"no", "n", "deny", "denied", "refuse", "reject"})


def read_message(message: A2AMessage) -> Message:
    """Convert a message from the client.

    Raises:
        RequestRefusedError: The message does not have the user role, or has an unsupported field or part.
    """
    if message.role != Role.ROLE_USER:
        raise invalid_params("message.role must be ROLE_USER")
    if message.reference_task_ids:
        raise RequestRefusedError(
            "message.referenceTaskIds is not supported: to continue earlier tasks, send their contextId",
            code="unsupported",
        )
    items = [_read_part(part, f"message.parts.{index}") for index, part in enumerate(message.parts)]
    content: str | list[ContentItem] = items
    if len(items) == 1 and items[0].text is not None:
        content = items[0].text
    return Message("user", content, extra={NOTE: {"id": message.message_id, "answers": bool(message.task_id)}})


def read_answers(message: A2AMessage, info: RunInfo) -> dict[str, Any]:
    """Return a message's answers to the questions of a waiting task, by call id.

    Raises:
        RequestRefusedError: The message answers no question of the task, or one that is no longer pending.
    """
    if any(call.kind == "input" for call in info.waiting):
        return {INPUT: [read_message(message)]}
    words = " ".join(part.text for part in message.parts).strip()
    given = [MessageToDict(part.data) for part in message.parts if part.WhichOneof("content") == "data"]
    if not given and words.lower().rstrip(".!") in _YES | _NO:
        return {call.call_id: words.lower().rstrip(".!") in _YES for call in info.waiting}
    decisions = given[0].get("approvals") if len(given) == 1 and isinstance(given[0], dict) else None
    if not isinstance(decisions, dict) or not decisions:
        raise invalid_params(
            'the task is waiting for approval: answer yes or no, or send a data part {"approvals": {"ID": true}}'
        )
    waiting = {shown_id(call.call_id, info): call.call_id for call in info.waiting}
    answers: dict[str, Any] = {}
    for identity, decision in decisions.items():
        if identity not in waiting:
            message_text = f"the task is not waiting for {identity[:100]!r}, which was already answered"
            raise RequestRefusedError(message_text, status=409, code="not_waiting")
        match decision:
            case bool():
                answers[waiting[identity]] = decision
            case str(reason):
                answers[waiting[identity]] = Denial(reason)
            case _:
                raise invalid_params(f"approvals.{identity[:100]}: must be true, false, or the reason for a denial")
    return answers


def shown_id(call_id: str, info: RunInfo) -> str:
    """Return the id with which a client answers a call. The id includes the pause, because models reuse call ids."""
    return f"{call_id}@{info.number}"


def question_of(info: RunInfo) -> Wire:
    """Return the questions of a waiting task as an agent message."""
    parts: list[Wire] = []
    for call in info.waiting:
        if call.kind == "input":
            parts.append({"text": "It is your turn: enter your message."})
            continue
        who = call.agent or info.agent
        text = f"May {who} call {call.call.name} with {call.call.arguments}? Answer yes or no."
        if call.in_doubt:
            text += " The program stopped during this call, so the call may already have been made."
        data = {
            "id": shown_id(call.call_id, info),
            "tool": call.call.name,
            "arguments": _read_arguments(call.call.arguments),
            "agent": call.agent,
            "inDoubt": call.in_doubt,
        }
        parts += [{"text": text}, {"data": {"approval": data}}]
    return agent_message(info, parts)


def agent_message(info: RunInfo, parts: list[Wire]) -> Wire:
    """Return an agent message about a task's status."""
    return {
        "messageId": f"status-{info.run_id}-{info.number}",
        "role": "ROLE_AGENT",
        "parts": parts,
        "taskId": info.run_id,
        "contextId": context_of(info),
    }


def history_of(info: RunInfo, length: int | None) -> list[Wire]:
    """Return a task's user messages: the last `length`, or all if None."""
    sent = [message for message in messages_of(info) if message.role == "user"]
    if length is not None:
        sent = sent[len(sent) - min(length, len(sent)) :]
    return [
        {
            "messageId": _id_of(message) or f"{info.run_id}-{index}",
            "role": "ROLE_USER",
            "parts": [show_part(item) for item in message.items],
            "taskId": info.run_id,
            "contextId": context_of(info),
        }
        for index, message in enumerate(sent)
    ]


def messages_of(info: RunInfo) -> Sequence[Message]:
    """Return a task's messages, without the conversation before it.

    A run with human participants restarts with each of their turns, so its task can contain several questions.
    """
    first = len(info.messages)
    while first and info.messages[first - 1].role == "user":
        first -= 1
    for index, message in enumerate(info.messages):
        note = (message.extra or {}).get(NOTE)
        if isinstance(note, Mapping) and not note.get("answers"):
            first = index
    return (*info.messages[first:], *info.response)


def context_of(info: Any) -> str:
    """Return a task's context id, which is the session of its run."""
    return str(info.session or info.run_id)


def show_part(item: ContentItem) -> Wire:
    """Convert a content item to a part."""
    if item.text is not None:
        return {"text": item.text}
    address = public_address(item)
    if content := split_data_uri(address):
        media_type, data, name = content
        return {"raw": data, "mediaType": media_type, **({"filename": name} if name else {})}
    return {"url": address} if address else {"text": f"[{item.type}]"}


def _read_part(part: Part, param: str) -> ContentItem:
    match part.WhichOneof("content"):
        case "text":
            return ContentItem(text=part.text)
        case "data":
            return ContentItem(text=dumps(json.loads(json.dumps(MessageToDict(part.data)))))
        case "raw" if part.raw:
            kind = part.media_type or "application/octet-stream"
            field, data = _field_for(kind), base64.b64encode(part.raw).decode()
            return ContentItem(**{field: write_data_uri(kind, data, part.filename if field == "file" else "")})
        case "url":
            if not is_public_url(part.url):  # a path would name a file on the server
                raise invalid_params(f"{param}.url must be an https:, http: or data: URL")
            return ContentItem(**{_field_for(part.media_type): part.url})
    raise invalid_params(f"{param} is empty: set text, raw, url or data")


def _field_for(media_type: str) -> str:
    kind = media_type.partition("/")[0].lower()
    return kind if kind in ("image", "audio", "video") else "file"


def _id_of(message: Message) -> str:
    note = (message.extra or {}).get(NOTE)
    return str(note["id"]) if isinstance(note, Mapping) and "id" in note else ""


def _read_arguments(arguments: str) -> Any:
    try:
        return json.loads(arguments)
    except ValueError:  # sent as the model wrote them
        return arguments
