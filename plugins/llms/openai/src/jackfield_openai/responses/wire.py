"""Convert requests to the JSON of the Responses API. The only side effect is reading local files.

This backend's own answers are sent back unchanged, item by item, because reasoning is valid only in its original place
and with the items that followed it. Answers that were edited or come from elsewhere are rebuilt from their visible
content, without reasoning and server-assigned ids.
"""

from __future__ import annotations

import base64
import mimetypes
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from jackfield.config import GenerateConfig
from jackfield.errors import UnsupportedInputError
from jackfield.media import MAX_FILE_BYTES, address_of, notes_of, path_of, split_data_uri, write_data_uri
from jackfield.messages import SYSTEM, ContentItem, Message, basename_of
from jackfield.request import ChatRequest, FunctionSchema
from jackfield_backends.history import RESULT_BELOW, Answer, Call, Result, parts_of, text_of
from jackfield_http import Wire
from jackfield_openai.responses.config import ResponsesConfig
from jackfield_openai.responses.items import Item, content_of_items, content_of_messages


def request_body(request: ChatRequest, config: ResponsesConfig) -> Wire:
    """Return the request body, in which `extra_body` takes precedence.

    Raises:
        UnsupportedInputError: A local file is missing, too large, or of the wrong type.
    """
    instructions, messages = _instructions(request.messages)
    items = input_items(messages, config, request.server, files=request.facts.files)
    body: Wire = {"model": request.model, "input": items, "stream": True}
    if instructions:
        body["instructions"] = instructions
    if config.store is not None:
        body["store"] = config.store
    if config.include:
        body["include"] = list(config.include)
    tools = [*(_tool(function) for function in request.functions), *config.hosted_tools]
    if tools:
        body["tools"] = tools
    if request.functions:
        body |= _choice(request.config)
    return _merge(body | _options(request.config, config), request.config.extra_body)


def _instructions(messages: Sequence[Message]) -> tuple[str, Sequence[Message]]:
    """Split off the system text. A lone system message is left in place, because a request needs a message."""
    if len(messages) > 1 and messages[0].role == SYSTEM:
        return text_of(messages[0].content), messages[1:]
    return "", messages


def _merge(body: Wire, extra: Mapping[str, Any]) -> Wire:
    """Merge `extra` into the body, and also into nested objects such as `text` and `reasoning`."""
    merged = {
        key: {**body[key], **value}
        for key, value in extra.items()
        if isinstance(value, dict) and isinstance(body.get(key), dict)
    }
    return body | dict(extra) | merged


# --- options ----------------------------------------------------------------------------------------------------------


def _tool(function: FunctionSchema) -> Wire:
    tool = {key: function[key] for key in ("name", "description", "parameters") if key in function}
    # By default, this API makes a schema strict, which would turn every optional argument into a required one.
    return {"type": "function", **tool, "strict": function.get("strict", False)}


def _choice(options: GenerateConfig) -> Wire:
    choice: str | Wire = options.function_choice
    if choice not in ("auto", "none", "required"):
        choice = {"type": "function", "name": choice}
    body: Wire = {"tool_choice": choice}
    if options.parallel_function_calls is not None:
        body["parallel_tool_calls"] = options.parallel_function_calls
    return body


def _options(options: GenerateConfig, config: ResponsesConfig) -> Wire:
    """Return all options that are set, even unsupported ones, which the server will refuse."""
    reasoning = {"effort": options.reasoning_effort, "summary": config.reasoning_summary}
    body = {
        "temperature": options.temperature,
        "top_p": options.top_p,
        "top_k": options.top_k,
        "presence_penalty": options.presence_penalty,
        "frequency_penalty": options.frequency_penalty,
        "repetition_penalty": options.repetition_penalty,
        "max_output_tokens": options.max_tokens,
        "prompt_cache_key": config.prompt_cache_key,
        "seed": options.seed,
        "stop": list(options.stop) or None,
        "reasoning": _without_none(reasoning) or None,
        "text": {"format": _format(options.response_format)} if options.response_format else None,
    }
    return _without_none(body)


def _without_none(options: Mapping[str, Any]) -> Wire:
    return {key: value for key, value in options.items() if value is not None}


def _format(response_format: Mapping[str, Any]) -> Wire:
    """Convert a Chat Completions `response_format` by flattening its inner object; other formats stay unchanged."""
    inner = response_format.get("json_schema")
    if not isinstance(inner, Mapping):
        return dict(response_format)
    return {**{key: value for key, value in response_format.items() if key != "json_schema"}, **inner}


# --- the history ------------------------------------------------------------------------------------------------------


def input_items(
    messages: Sequence[Message], config: ResponsesConfig, server: str = "", *, files: bool = False
) -> list[Item]:
    """Convert a history to input items.

    Args:
        messages: The history, without its leading system message.
        config: Determines whether reasoning is sent back.
        server: The server's address. Items issued by this server are sent back unchanged.
        files: True if the model accepts PDFs. If False, they are replaced by notes.
    """
    items: list[Item] = []
    sent_ids: set[str] = set()
    for part in parts_of(messages):
        if isinstance(part, Message):
            items.append(_message(part.role, _content(part, files=files)))
        else:
            items += [*_answer_items(part, config, server, sent_ids), *_results(part)]
    return items


def _message(role: str, content: str | list[Wire]) -> Wire:
    return {"type": "message", "role": role, "content": content}


def _answer_items(answer: Answer, config: ResponsesConfig, server: str, sent_ids: set[str]) -> Iterator[Item]:
    """Yield the items of each of the model's answers in turn, adding their ids to `sent_ids`."""
    for messages, calls in answer.by_origin():
        kept = kept_items(messages, calls, server) if config.send_reasoning else None
        ids = {str(item["id"]) for item in kept or () if item.get("id")}
        # If an answer occurs twice in a history, its items are sent once: servers refuse two items with one id.
        yield from _rendered(messages, calls) if kept is None or ids & sent_ids else kept
        sent_ids |= ids


def _results(answer: Answer) -> Iterator[Item]:
    """Yield the results of an answer's calls, followed by results without a call."""
    for call in answer.calls:
        yield {"type": "function_call_output", "call_id": call.id, "output": _output(call.result)}
    for stray in answer.strays:
        yield _stray(stray)


def _rendered(messages: Sequence[Message], calls: Sequence[Call]) -> Iterator[Item]:
    text = "\n".join(text for message in messages if (text := text_of(message.content)))
    if text:
        yield _message("assistant", text)
    for call in calls:
        yield {
            "type": "function_call",
            "call_id": call.id,
            "name": call.function.name,
            "arguments": call.function.arguments,
        }


def kept_items(messages: Sequence[Message], calls: Sequence[Call], server: str) -> Sequence[Item] | None:
    """Return an answer's original items, or None if they cannot be sent back unchanged.

    Args:
        messages: All remaining messages of the answer, which share one `origin`.
        calls: The answer's calls, as they may be sent.
        server: The server's address.
    """
    origin = messages[0].origin
    data = origin.data if origin is not None else None
    if data is None or data.get("server") != server:
        return None
    try:
        items = _without_last_thoughts(data["output"])
        visible = content_of_items(data["output"])
        is_sendable = all(_is_sendable(item) for item in items)
    except (AttributeError, KeyError, TypeError):
        return None  # a history edited by hand: send what it shows
    as_seen = visible == content_of_messages(messages)
    as_called = visible.calls == tuple((call.id, call.function.name, call.function.arguments) for call in calls)
    return items if as_seen and as_called and is_sendable else None


def _without_last_thoughts(items: Sequence[Item]) -> Sequence[Item]:
    """Drop trailing reasoning of a truncated answer, since servers refuse reasoning that nothing follows."""
    end = len(items)
    while end and items[end - 1]["type"] == "reasoning":
        end -= 1
    return items[:end]


def _is_sendable(item: Item) -> bool:
    """Return True if an item is complete. A reasoning item with nothing but an id is not, as no server stored it."""
    if item["type"] == "function_call":
        return bool(item.get("call_id"))
    return item["type"] != "reasoning" or bool(item.get("encrypted_content") or item.get("content"))


# --- contents ---------------------------------------------------------------------------------------------------------


def _content(message: Message, *, files: bool) -> str | list[Wire]:
    """Return a message's content, as a single string unless it contains media."""
    content = message.content
    if isinstance(content, str):
        return content
    if all(item.text is not None for item in content):
        return message.get_text_content()
    return [_part(item, files=files) for item in content]


def _part(item: ContentItem, *, files: bool = False) -> Wire:
    kind, value = item.get_type_and_value()
    match kind:
        case "text":
            return _text_part(value)
        case "image":
            return {"type": "input_image", "image_url": address_of(value, "image"), "detail": "auto"}
        case "file" if files:
            return {"type": "input_file", **_file(value)}
    return _text_part(notes_of([item])[0])


def _text_part(text: str) -> Wire:
    return {"type": "input_text", "text": text}


def _file(address: str) -> Wire:
    """Return a document, either as a URL or inline."""
    path = path_of(address)
    if path is not None:
        return {"filename": basename_of(str(path)), "file_data": _data_uri(path)}
    if address[:5].lower() != "data:":
        return {"file_url": address}
    content = split_data_uri(address)
    if content is None:
        return {"filename": "file", "file_data": address}
    media_type, data, name = content
    return {"filename": name or "file", "file_data": write_data_uri(media_type, data)}


def _data_uri(path: Path) -> str:
    shown = repr(basename_of(str(path)))
    try:
        with path.open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
    except (OSError, ValueError) as error:  # ValueError: the path contains NUL
        reason = getattr(error, "strerror", None) or type(error).__name__
        raise UnsupportedInputError(f"the file {shown} cannot be read: {reason}; pass a URL or a path") from error
    if len(content) > MAX_FILE_BYTES:
        raise UnsupportedInputError(f"the file {shown} is larger than {MAX_FILE_BYTES:,} bytes: pass its URL instead")
    media_type = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    return f"data:{media_type};base64,{base64.b64encode(content).decode()}"


def _output(result: Result) -> str | list[Wire]:
    """Return a tool result, as its text or as a list of its text and media."""
    if not result.media:
        return result.text
    text = [] if result.text == RESULT_BELOW else [_text_part(result.text)]
    return [*text, *(_part(item) for item in result.media)]


def _stray(result: Result) -> Wire:
    """Convert a result without a call to a user message."""
    text = f"{result.label}\n{result.text}"
    return _message("user", [_text_part(text), *(_part(item) for item in result.media)] if result.media else text)
