"""Convert messages and their parts from OpenAI's format to Jackfield's format before validation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias, TypeGuard, TypeVar
from urllib.parse import quote

from jackfield.errors import InvalidMessageError

Value = TypeVar("Value")
OpenAIMessage: TypeAlias = Mapping[str, Any]

_KEYS = frozenset({"tool_calls", "tool_call_id", "refusal", "annotations", "reasoning"})
# `dict` comes first because `isinstance(…, Mapping)` is slow and histories are long.
_MAPPINGS = (dict, Mapping)
_LARGEST_ID = 1 << 64


def is_openai_message(value: object) -> TypeGuard[OpenAIMessage]:
    """Return True if a dict is a message in OpenAI's format rather than Jackfield's."""
    if not isinstance(value, _MAPPINGS):
        return False
    role = value.get("role")
    return (isinstance(role, str) and role in ("tool", "developer")) or not _KEYS.isdisjoint(value)


def translate_messages(values: Iterable[Value], message_keys: frozenset[str]) -> Iterator[Value | dict[str, Any]]:
    """Replace each message in OpenAI's format with one or more dicts in Jackfield's format. Leave others unchanged.

    Args:
        values: Messages and dicts, oldest first.
        message_keys: The keys of a message in Jackfield's format.
    """
    tool_names: dict[str, str] = {}  # keyed by call id
    for value in values:
        if not is_openai_message(value):
            yield value
            continue
        common = {key: entry for key, entry in value.items() if key in message_keys}
        match value.get("role"):
            case "tool":
                call_id = _text(value, "tool_call_id")
                name = _text(value, "name") or tool_names.get(call_id) or "tool"
                yield {**common, "role": "function", "name": name, "extra": {"function_id": call_id}}
            case "assistant":
                yield from _translate_answer(value, common, tool_names)
            case "developer":
                yield {**common, "role": "system"}
            case _:
                yield common


def _translate_answer(
    message: OpenAIMessage, common: dict[str, Any], tool_names: dict[str, str]
) -> Iterator[dict[str, Any]]:
    calls = message.get("tool_calls")
    reasoning = message.get("reasoning_content") or message.get("reasoning")
    if calls and not isinstance(calls, list | tuple):
        raise InvalidMessageError(f"'tool_calls' must be a list, got {type(calls).__name__}")
    speaker = {"role": "assistant", "name": message.get("name")}
    if reasoning:
        yield {**speaker, "content": "", "reasoning_content": reasoning}
    content = message.get("content") or message.get("refusal")
    if content or not (calls or reasoning):
        yield {**common, "content": content, "reasoning_content": None}
    for call in calls or ():
        match call:
            case {"function": {"name": str(name)} as function}:
                call_id = _text(call, "id")
                tool_names[call_id] = name
                yield {
                    **speaker,
                    "content": "",
                    "function_call": {"name": name, "arguments": _text(function, "arguments")},
                    "extra": {"function_id": call_id} if call_id else None,
                }
            case _:
                raise InvalidMessageError("each entry of 'tool_calls' needs a 'function' with 'name' and 'arguments'")


def _text(entry: Mapping[Any, Any], key: str) -> str:
    """Return an entry's value as text, or '' if it is missing.

    Integers are allowed because some clients number calls.
    """
    value = entry.get(key) or ""
    if isinstance(value, str) or (isinstance(value, int) and abs(value) < _LARGEST_ID):
        return str(value)
    raise InvalidMessageError(f"{key!r} must be a string, got {type(value).__name__}")


def translate_part(part: object) -> object:
    """Convert a message part from either of OpenAI's APIs to a content item. Values without `type` are left unchanged.

    Raises:
        ValueError: The part has no equivalent content item.
    """
    match part:
        case {"type": "text" | "input_text" | "output_text", "text": text} | {"type": "refusal", "refusal": text}:
            return {"text": text}
        case {"type": "image_url" | "input_image", "image_url": {"url": str(url)} | str(url)}:
            return {"image": url}
        case {"type": "video_url", "video_url": {"url": str(url)} | str(url)}:
            return {"video": url}
        case {"type": "input_audio", "input_audio": audio}:
            return {"audio": audio}
        case {"type": "file", "file": {"file_data": str(uri), **others}}:
            if uri[:5].lower() != "data:":  # a foreign client must not name files on this machine
                raise ValueError("'file_data' must be a data: URI, as in data:application/pdf;base64,…")
            head, separator, data = uri.partition(";base64,")
            name = others.get("filename")
            stated = f";name={quote(name, safe='', errors='replace')}" if isinstance(name, str) and name else ""
            return {"file": f"{head.partition(';name=')[0]}{stated}{separator}{data}" if separator and stated else uri}
        case {"type": "file", "file": {"file_id": _}}:
            raise ValueError("files stored at a provider ('file_id') cannot be sent: pass the file's data or path")
        case {"type": str(kind)}:
            raise ValueError(
                f"a message part of type {kind!r} is not supported: use text, image_url, input_audio, video_url "
                "or file, or a dict with the key text, image, file, audio or video"
            )
    return part
