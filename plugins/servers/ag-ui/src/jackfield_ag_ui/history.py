"""Convert between AG-UI messages and the messages of a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from ag_ui.core import (
    ActivityMessage,
    AssistantMessage,
    DeveloperMessage,
    ReasoningMessage,
    SystemMessage,
    TextPart,
    ToolMessage,
    UserMessage,
)

from jackfield.media import split_data_uri, write_data_uri
from jackfield.messages import ContentItem, FunctionCall, Message
from jackfield.servers import RequestRefusedError
from jackfield_serving import is_public_url, markdown_of, public_address

Wire: TypeAlias = dict[str, Any]

NOTE = "ag_ui"
"""Key in `extra` for a message's AG-UI id; in the first message, also for the request's state and context."""
_TYPES = {"image": "image", "audio": "audio", "video": "video", "document": "file"}
_PARTS = {"image": "image", "audio": "audio", "video": "video", "file": "document"}


def read_messages(messages: Sequence[Any], note: Mapping[str, Any]) -> list[Message]:
    """Convert a request's messages.

    Activities and nested agents' messages are omitted, since they are not part of the model's conversation.

    Args:
        messages: The AG-UI messages.
        note: The parts of the request to store with the run.

    Raises:
        RequestRefusedError: A message contains an unsupported part or answers an unknown call.
    """
    read: list[Message] = []
    system: list[tuple[int, Wire]] = []
    names: dict[str, str] = {}
    shown = 0
    for index, message in enumerate(messages):
        is_nested = getattr(message, "subagent_run_id", None) is not None
        if isinstance(message, AssistantMessage):
            names.update((call.id, "" if is_nested else call.function.name) for call in message.tool_calls or ())
        if is_nested or isinstance(message, ActivityMessage):
            continue
        if isinstance(message, ToolMessage) and names.get(message.tool_call_id) == "":
            continue  # the result of a nested agent's call
        if isinstance(message, DeveloperMessage | SystemMessage):
            system.append((shown, message.model_dump(mode="json", by_alias=True)))
        shown += 1
        read += _read_message(message, f"messages.{index}", names)
    first = next((index for index, message in enumerate(read) if message.role != "system"), None)
    if first is not None:
        extra = dict(read[first].extra or {})
        extra[NOTE] = {**extra[NOTE], **note, "system": [list(one) for one in system]}
        read[first] = read[first].replace(extra=extra)
    return read


def note_of(messages: Sequence[Message]) -> Mapping[str, Any]:
    """Return the parts of the request that were stored with a run; empty if it did not start from AG-UI."""
    for message in messages:
        note = (message.extra or {}).get(NOTE)
        if isinstance(note, dict) and "system" in note:
            return note
    return {}


def show_messages(messages: Sequence[Message], run_id: str) -> list[Wire]:
    """Convert a run's conversation to AG-UI messages, with the client's ids.

    System messages are those sent by the client; the agent's own are meant only for its model.
    """
    shown: list[Wire] = []
    for index, message in enumerate(messages):
        if message.role == "system":
            continue
        note = (message.extra or {}).get(NOTE)
        identity = note["id"] if isinstance(note, dict) else f"input_{index}.{run_id}"
        wire = show_message(message, identity)
        if shown and shown[-1]["id"] == identity and "toolCalls" in wire:
            shown[-1].setdefault("toolCalls", []).extend(wire["toolCalls"])
        else:
            shown.append(wire)
    for position, original in note_of(messages).get("system", ()):
        shown.insert(position, original)
    return shown


def show_message(message: Message, identity: str) -> Wire:
    """Convert a message to AG-UI."""
    if message.role == "user":
        return {"id": identity, "role": "user", "content": show_content(message)}
    if message.role == "function":
        return {
            "id": identity,
            "role": "tool",
            "toolCallId": message.function_id or "",
            "content": show_content(message),
            **({"error": message.error} if message.error else {}),
        }
    if message.reasoning_content and not message.content and message.function_call is None:
        return {"id": identity, "role": "reasoning", "content": reasoning_of(message)}
    wire: Wire = {"id": identity, "role": "assistant"}
    if text := text_of(message):
        wire["content"] = text
    if message.function_call is not None:
        wire["toolCalls"] = [show_call(message.function_id or "", message.function_call)]
    return wire


def show_call(identity: str, call: FunctionCall) -> Wire:
    """Convert a tool call to AG-UI."""
    return {"id": identity, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def show_content(message: Message) -> str | list[Wire]:
    """Return a message's content, either as a string or as a list of parts."""
    if not message.is_multimodal():
        return message.get_text_content()
    return [_show_part(item) for item in message.items]


def text_of(message: Message) -> str:
    """Return an answer's content as text, with media as Markdown images because AG-UI answers contain only text."""
    return "".join(markdown_of(item) if item.text is None else item.text for item in message.items)


def reasoning_of(message: Message) -> str:
    """Return a message's reasoning text, or ''."""
    reasoning = message.reasoning_content
    return Message("assistant", reasoning).get_text_content() if reasoning else ""


def _read_message(  # noqa: C901 - one case for each role
    message: Any, param: str, names: Mapping[str, str]
) -> Iterator[Message]:
    if getattr(message, "encrypted_value", None) is not None:
        raise _unsupported(f"{param}.encryptedValue", "the value was not issued by this server")
    extra = {NOTE: {"id": message.id}}
    match message:
        case DeveloperMessage() | SystemMessage():
            yield Message("system", message.content)
        case UserMessage():
            yield Message("user", _read_content(message.content, f"{param}.content"), name=message.name, extra=extra)
        case ReasoningMessage():
            yield Message("assistant", "", reasoning_content=message.content, extra=extra)
        case AssistantMessage():
            calls = message.tool_calls or ()
            if message.content or not calls:
                yield Message("assistant", message.content or "", name=message.name, extra=extra)
            for index, call in enumerate(calls):
                if call.encrypted_value is not None:
                    raise _unsupported(
                        f"{param}.toolCalls.{index}.encryptedValue", "the value was not issued by this server"
                    )
                function_call = FunctionCall(call.function.name, call.function.arguments)
                yield Message("assistant", "", function_call=function_call, extra={**extra, "function_id": call.id})
        case ToolMessage():
            if not names.get(message.tool_call_id):
                reason = "no earlier message contains this call: send the conversation from the start"
                raise RequestRefusedError(f"{param}.toolCallId: {reason}")
            content = _read_content(message.content, f"{param}.content")
            more = {"error": message.error} if message.error else {}
            yield Message(
                "function",
                content,
                name=names[message.tool_call_id],
                extra={**extra, "function_id": message.tool_call_id, **more},
            )


def _read_content(content: str | Sequence[Any], param: str) -> str | list[ContentItem]:
    if isinstance(content, str):
        return content
    return [_read_part(part, f"{param}.{index}") for index, part in enumerate(content)]


def _read_part(part: Any, param: str) -> ContentItem:
    if isinstance(part, TextPart):
        return ContentItem(text=part.text)
    source = part.source
    match source.type:
        case "data":
            is_named = part.type == "document" and isinstance(part.metadata, dict)
            name = part.metadata.get("filename") if is_named else None
            url = write_data_uri(source.mime_type, source.value, name if isinstance(name, str) else "")
        case "url":
            url = source.value
            # A path would name a file on the server.
            if not is_public_url(url):
                raise RequestRefusedError(f"{param}.source.value must be an https:, http: or data: URL")
        case _:
            raise _unsupported(f"{param}.source.type", "files stored at a provider cannot be read: send data or a URL")
    return ContentItem(**{_TYPES[part.type]: url})


def _show_part(item: ContentItem) -> Wire:
    if item.text is not None:
        return {"type": "text", "text": item.text}
    address = public_address(item)
    metadata = {}
    if content := split_data_uri(address):
        media_type, data, name = content
        source = {"type": "data", "value": data, "mimeType": media_type}
        metadata = {"metadata": {"filename": name}} if name else {}
    elif address:
        source = {"type": "url", "value": address}
    else:  # a path on the server
        return {"type": "text", "text": f"[{item.type}]"}
    return {"type": _PARTS[item.type], "source": source, **metadata}


def _unsupported(param: str, reason: str) -> RequestRefusedError:
    return RequestRefusedError(f"{param} is not supported: {reason}", code="unsupported")
