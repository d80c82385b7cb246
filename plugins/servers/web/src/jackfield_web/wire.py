"""Convert events and messages to the page's format: flat JSON objects with a `type`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from jackfield.citations import CITATIONS, citations_in
from jackfield.events import (
    AgentEvent,
    ApprovalDecided,
    FunctionCallDelta,
    HandedOff,
    HistoryTrimmed,
    MediaDelta,
    ModelEvent,
    PluginEvent,
    PreparationProgress,
    ReasoningDelta,
    RetryScheduled,
    RunEvent,
    RunFailed,
    RunFinished,
    StreamReset,
    TextDelta,
    ToolFinished,
    ToolProgress,
    ToolStarted,
    TurnFinished,
    TurnStarted,
)
from jackfield.messages import ContentItem, Message, Usage, basename_of, name_in_file
from jackfield.results import sources_in
from jackfield.servers import failure_of
from jackfield_serving import QUESTION, public_address

Wire: TypeAlias = dict[str, Any]


def wire_of(number: int, placed: RunEvent) -> Wire | None:
    """Convert an event, including its number and origin; None if the page does not show it."""
    content = _content_of(placed.event)
    if content is None:
        return None
    return {"number": number, "run": placed.run_id, "agent": placed.agent, "depth": placed.depth, **content}


def _content_of(event: ModelEvent | AgentEvent) -> Wire | None:
    for read in (_piece_of, _step_of, _note_of):
        if content := read(event):
            return content
    return None


def _piece_of(event: ModelEvent | AgentEvent) -> Wire | None:
    """Convert a delta of an unfinished answer."""
    match event:
        case TextDelta():
            return {"type": "text", "text": event.text}
        case ReasoningDelta():
            return {"type": "reasoning", "text": event.text}
        case FunctionCallDelta():
            return {"type": "call", "index": event.index, "name": event.name, "arguments": event.arguments}
        case MediaDelta():
            return {"type": "media", "item": item_as_wire(event.item)}
        case StreamReset():
            return {"type": "reset"}
    return None


def _step_of(event: ModelEvent | AgentEvent) -> Wire | None:
    """Convert a step of a run, such as a turn, a tool call or the end."""
    match event:
        case TurnStarted():
            return {"type": "turn_started", "turn": event.turn}
        case TurnFinished():
            messages = [message_as_wire(message) for message in event.messages]
            return {
                "type": "turn_finished",
                "messages": messages,
                "seconds": event.seconds,
                "usage": usage_as_wire(event.usage),
            }
        case ToolStarted():
            call = {"call_id": event.call_id, "name": event.call.name, "arguments": event.call.arguments}
            return {"type": "tool_started", **call}
        case ToolProgress():
            return {"type": "tool_progress", "call_id": event.call_id, "text": event.text}
        case ToolFinished():
            return {
                "type": "tool_finished",
                "call_id": event.call_id,
                "name": event.message.name,
                "items": items_as_wire(event.message),
                "seconds": event.seconds,
                "error": event.error,
                "sources": _sources(event.metadata),
            }
        case RunFinished():
            return {"type": "finished", "reason": event.stop_reason, "usage": usage_as_wire(event.usage)}
        case RunFailed():
            return {"type": "failed", "error": str(failure_of(event))}
    return None


def _note_of(event: ModelEvent | AgentEvent) -> Wire | None:
    """Convert an event that only informs the user or asks a question."""
    match event:
        case ApprovalDecided():
            return {"type": "decided", "call_id": event.call_id, "allowed": event.allowed, "reason": event.reason}
        case RetryScheduled():
            return {"type": "retry", "delay_s": event.delay_s, "error": event.error}
        case HistoryTrimmed():
            return {"type": "trimmed", "dropped": event.dropped, "shortened": event.shortened}
        case HandedOff():
            return {"type": "handed_off", "to": event.to}
        case PreparationProgress():
            return {"type": "progress", "text": event.text}
        case PluginEvent(name=name) if name == QUESTION:
            question = {field: str(event.data.get(field, "")) for field in ("call_id", "name", "arguments")}
            return {"type": "question", **question}
        case PluginEvent():
            note = event.data.get("note")
            sources, citations = _sources(event.data), _citations(event.data)
            if isinstance(note, str) or sources or citations is not None:
                text = note if isinstance(note, str) else ""
                return {"type": "note", "text": text, "sources": sources, "citations": citations}
    return None


def message_as_wire(message: Message) -> Wire:
    """Convert a message."""
    call = message.function_call
    reasoning = message.reasoning_content
    return {
        "role": message.role,
        "items": items_as_wire(message),
        "reasoning": reasoning if isinstance(reasoning, str) else "",
        "call": call and {"id": message.function_id, "name": call.name, "arguments": call.arguments},
    }


def items_as_wire(message: Message) -> list[Wire]:
    """Convert a message's content items."""
    return [item_as_wire(item) for item in message.items]


def item_as_wire(item: ContentItem) -> Wire:
    """Convert a content item. Files on the server are sent by name only."""
    if item.text is not None:
        return {"type": "text", "text": item.text}
    name = basename_of(item.value) if isinstance(item.value, str) else ""
    return {"type": item.type, "address": public_address(item) or name}


def usage_as_wire(usage: Usage) -> Wire:
    """Return the token counts, and the cost if known."""
    cost = None if usage.cost is None else {"amount": str(usage.cost), "currency": usage.currency}
    return {"prompt": usage.prompt_tokens, "completion": usage.completion_tokens, "cost": cost}


def question_in(messages: Sequence[Message]) -> list[Wire]:
    """Return the content items of the user's last messages."""
    return [item for message in question_messages(messages) for item in items_as_wire(message)]


def question_messages(messages: Sequence[Message]) -> list[Message]:
    """Return the user's messages at the end of the conversation."""
    question: list[Message] = []
    for message in reversed(messages):
        if message.role != "user":
            break
        question.insert(0, message)
    return question


def _sources(data: Mapping[str, Any]) -> list[Wire]:
    return [_place(source.location, source.part, source.page) for source in sources_in(data)]


def _citations(data: Mapping[str, Any]) -> list[Wire] | None:
    """Return an answer's citations with their passages, or None if the event has no citation report."""
    if CITATIONS not in data:
        return None
    return [
        {
            **_place(one.location, one.part, one.page),
            "mark": one.mark,
            "headings": one.headings,
            "passage": one.passage,
            "start": one.start if one.quote else 0,
            "end": one.end if one.quote else len(one.passage),
        }
        for one in citations_in(data)
    ]


def _place(location: str, part: str, page: int | None) -> Wire:
    """Return a source without its directory on the server."""
    is_url = location.startswith(("https://", "http://"))
    name = name_in_file(location if is_url else basename_of(location), part)
    return {"name": name, "page": page, "url": location if is_url else ""}
