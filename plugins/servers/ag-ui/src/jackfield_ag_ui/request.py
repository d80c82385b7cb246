"""Parse AG-UI requests (`RunAgentInput`)."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ag_ui.core import AssistantMessage, DataSource, ReasoningMessage, RunAgentInput, ToolMessage
from pydantic import BaseModel, ValidationError

from jackfield.messages import Message
from jackfield.servers import RequestRefusedError, write_json
from jackfield_ag_ui.history import Wire, read_messages

_MAX_ID = 200


@dataclass(frozen=True, kw_only=True)
class Question:
    """A parsed request.

    Attributes:
        thread, run, parent: The ids of the thread, the run, and the run that spawned it ('' if none).
        messages: The conversation, preceded by a system message with the state and the context.
        message_ids: The ids of the conversation's messages, except reasoning.
        client_tools: The front end's tools, as function schemas.
        note: The parts of the request to store with the run: its state and context.
        results: The trailing messages that answer calls of front-end tools, by call id.
        has_news: True unless the conversation ends with an answer followed only by these results.
        resume: The answers to interrupts, by interrupt id; None for an abandoned one.
    """

    thread: str
    run: str
    parent: str = ""
    messages: Sequence[Message] = ()
    message_ids: Sequence[str] = ()
    client_tools: Sequence[Mapping[str, Any]] = ()
    note: Mapping[str, Any] = field(default_factory=dict)
    results: Mapping[str, Wire] = field(default_factory=dict)
    has_news: bool = True
    resume: Mapping[str, Any] = field(default_factory=dict)


def read_request(table: dict[str, Any]) -> Question:
    """Parse a request.

    Raises:
        RequestRefusedError: A field is unknown, invalid or unsupported.
    """
    body = _parse(table)
    if body.forwarded_props not in (None, {}):
        raise _unsupported("forwardedProps", "agents do not use this field: omit it")
    tools = [_read_tool(tool, f"tools.{index}") for index, tool in enumerate(body.tools or ())]
    context = [{"description": one.description, "value": one.value} for one in body.context or ()]
    note = {"state": body.state if body.state != {} else None, "context": context}
    messages = read_messages(body.messages, note)
    if text := _describe(note):
        messages.insert(0, Message("system", text))
    results = _read_results(body.messages)
    return Question(
        thread=_check_id(body.thread_id, "threadId"),
        run=_check_id(body.run_id, "runId"),
        parent=_check_id(body.parent_run_id, "parentRunId") if body.parent_run_id is not None else "",
        messages=messages,
        message_ids=_ids_of(body.messages),
        client_tools=tools,
        note=note,
        results=results,
        has_news=not results or not isinstance(body.messages[-1 - len(results)], AssistantMessage | ReasoningMessage),
        resume=_read_resume(body),
    )


def read_thread(table: dict[str, Any]) -> str:
    """Return the thread id from the body of a stop request.

    Raises:
        RequestRefusedError: The body contains another field, or no valid thread id.
    """
    if table.keys() != {"threadId"} or not isinstance(table["threadId"], str):
        raise RequestRefusedError(
            'the body must be {"threadId": "…"}, where threadId is the ID of the thread whose run should stop'
        )
    return _check_id(table["threadId"], "threadId")


def _parse(table: dict[str, Any]) -> RunAgentInput:
    try:
        body = RunAgentInput.model_validate(table)
    except ValidationError as error:
        problems = error.errors(include_url=False, include_input=False, include_context=False)
        problem = max(problems, key=lambda one: len(one["loc"]))
        path = ".".join(str(part) for part in problem["loc"])
        raise RequestRefusedError(f"{path or 'the body'}: {problem['msg']}") from None
    for path in _unknown_fields(body, ""):
        raise _unsupported(path, "AG-UI does not define this field")
    return body


def _unknown_fields(value: object, path: str) -> Iterable[str]:
    """Yield the path of each field unknown to AG-UI, since its models silently retain such fields.

    Raises:
        RequestRefusedError: Inline data is not valid base64.
    """
    if isinstance(value, list):
        for index, part in enumerate(value):
            yield from _unknown_fields(part, f"{path}.{index}")
    elif isinstance(value, BaseModel):
        for name in value.model_extra or ():
            yield f"{path}.{name}".lstrip(".")[:100]
        for name, info in type(value).model_fields.items():
            yield from _unknown_fields(getattr(value, name), f"{path}.{info.alias or name}")
            if isinstance(value, DataSource) and name == "value" and not _is_base64(value.value):
                raise RequestRefusedError(f"{path.lstrip('.')}.value must be valid base64")


def _is_base64(data: str) -> bool:
    try:
        base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return False
    return True


def _check_id(identity: str, param: str) -> str:
    """Refuse ids that stores cannot handle."""
    if not 0 < len(identity) <= _MAX_ID or not identity.isprintable():
        raise RequestRefusedError(f"{param} must consist of 1 to {_MAX_ID} printable characters")
    return identity


def _read_tool(tool: Any, param: str) -> dict[str, Any]:
    if tool.parameters is not None and not isinstance(tool.parameters, dict):
        raise RequestRefusedError(f"{param}.parameters must be a JSON Schema object")
    return {
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters or {"type": "object", "properties": {}},
    }


def _read_results(messages: Sequence[Any]) -> dict[str, Wire]:
    """Return the tool results at the end of the conversation, by call id and in order."""
    results: list[Any] = []
    for message in reversed(messages):
        if not isinstance(message, ToolMessage) or message.subagent_run_id is not None:
            break
        results.insert(0, message)
    return {one.tool_call_id: one.model_dump(mode="json", by_alias=True) for one in results}


def _read_resume(body: RunAgentInput) -> dict[str, Any]:
    answers: dict[str, Any] = {}
    for index, entry in enumerate(body.resume or ()):
        if entry.interrupt_id in answers:
            raise RequestRefusedError(f"resume.{index}.interruptId: an earlier entry already answers this interrupt")
        if entry.status == "cancelled" and entry.payload is not None:
            raise RequestRefusedError(f"resume.{index}.payload: must be omitted for a cancelled interrupt")
        answers[entry.interrupt_id] = entry.payload
        if entry.status == "resolved" and entry.payload is None:
            raise RequestRefusedError(
                f"resume.{index}.payload is missing: send a value that matches the interrupt's responseSchema"
            )
    return answers


def _ids_of(messages: Sequence[Any]) -> list[str]:
    """Return the ids of messages that both sides store; activities and nested messages exist only on the client."""
    return [
        message.id
        for message in messages
        if message.role not in ("activity", "reasoning") and message.subagent_run_id is None
    ]


def _describe(note: Mapping[str, Any]) -> str:
    """Format the context and state for the model."""
    parts = [f"{one['description']}:\n{one['value']}" for one in note["context"]]
    if note["state"] is not None:
        parts.append(f"State of the application, as JSON:\n{write_json(note['state']).decode()}")
    return "\n\n".join(parts)


def _unsupported(param: str, reason: str) -> RequestRefusedError:
    return RequestRefusedError(f"{param} is not supported: {reason}", code="unsupported")
