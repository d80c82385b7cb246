"""Messages as OpenAI's clients write them: the core asks for this when it is given such dicts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from jackfield.errors import InvalidMessageError
from jackfield.messages import (
    ASSISTANT,
    FUNCTION,
    ITEM_KINDS,
    SYSTEM,
    FunctionCall,
    Message,
    MessageLike,
    as_message,
    is_openais,
)


def from_openai(values: Iterable[MessageLike]) -> Iterator[Message]:
    """Messages from dicts, some of which are OpenAI's; see `jackfield.messages.as_messages`."""
    names: dict[str, str] = {}
    for value in values:
        if is_openais(value):
            yield from _messages_from_openai(value, names)
        else:
            yield as_message(value)


def _messages_from_openai(message: Mapping[str, Any], names: dict[str, str]) -> Iterator[Message]:
    kept = {key: entry for key, entry in message.items() if key in Message.model_fields}
    match message.get("role"):
        case "tool":
            yield _result_from_openai(message, kept, names)
        case "assistant":
            yield from _assistant_from_openai(message, kept, names)
        case "developer":
            yield as_message({**kept, "role": SYSTEM})
        case _:
            yield as_message(kept)


def _result_from_openai(message: Mapping[str, Any], kept: Mapping[str, Any], names: Mapping[str, str]) -> Message:
    call_id = _text(message, "tool_call_id")
    name = _text(message, "name") or names.get(call_id) or "tool"
    return as_message({**kept, "role": FUNCTION, "name": name, "extra": {"function_id": call_id}})


def _assistant_from_openai(
    message: Mapping[str, Any], kept: Mapping[str, Any], names: dict[str, str]
) -> Iterator[Message]:
    calls, reasoning = message.get("tool_calls"), _first_of(message, "reasoning_content", "reasoning")
    if calls and not isinstance(calls, list | tuple):
        raise InvalidMessageError(f"'tool_calls' is a list of calls, not {type(calls).__name__}")
    if reasoning:
        yield Message(ASSISTANT, "", reasoning_content=reasoning, name=message.get("name"))
    content = _first_of(message, "content", "refusal")
    if content or not (calls or reasoning):
        yield as_message({**kept, "content": content, "reasoning_content": None})
    for call in calls or ():
        yield _call_from_openai(call, message.get("name"), names)


def _first_of(message: Mapping[str, Any], key: str, other: str) -> Any:
    return message.get(key) or message.get(other)


def _call_from_openai(call: Any, name_of_agent: Any, names: dict[str, str]) -> Message:
    """An entry of `tool_calls` as a message; the tool's name is kept in `names`, for the call's result."""
    match call:
        case {"function": {"name": str(name)} as function}:
            call_id = _text(call, "id")
            names[call_id] = name
            return Message(
                ASSISTANT,
                "",
                name=name_of_agent,
                function_call=FunctionCall(name, _text(function, "arguments")),
                extra={"function_id": call_id} if call_id else None,
            )
    raise InvalidMessageError("an entry of 'tool_calls' needs 'function' with 'name' and 'arguments'")


def _text(entry: Mapping[Any, Any], key: str) -> str:
    """A text of an entry; '' if there is none. Some clients number their calls."""
    value = entry.get(key) or ""
    if isinstance(value, str) or (isinstance(value, int) and abs(value) < _MOST_NUMBER):
        return str(value)
    raise InvalidMessageError(f"{key!r} is a text, not {type(value).__name__}")


_MOST_NUMBER = 1 << 64


def item_from_openai(part: object) -> object:
    """A content item from a part as OpenAI's two APIs write it; what has no `type` is left as it is."""
    match part:
        case {"type": "text" | "input_text" | "output_text", "text": text} | {"type": "refusal", "refusal": text}:
            return {"text": text}
        case {"type": "image_url" | "input_image", "image_url": {"url": str(url)} | str(url)}:
            return {"image": url}
        case {"type": "video_url", "video_url": {"url": str(url)} | str(url)}:
            return {"video": url}
        case {"type": "input_audio", "input_audio": audio}:
            return {"audio": audio}
        case {"type": "file", "file": {"file_data": str(uri)}}:
            return {"file": uri}
        case {"type": "file", "file": {"file_id": _}}:
            raise ValueError("a file stored at a provider ('file_id') cannot be sent: pass its data or its path")
        case {"type": str(kind)}:
            raise ValueError(
                f"a message part of type {kind!r} is not supported: use text, image_url, input_audio, video_url "
                f"or file, or the keys {', '.join(ITEM_KINDS)}"
            )
    return part
