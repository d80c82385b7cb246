"""Convert requests to Chat Completions JSON. Pure, except that local media files are read."""

from __future__ import annotations

from collections.abc import Sequence

from jackfield.config import GenerateConfig
from jackfield.media import notes_of
from jackfield.messages import ASSISTANT, USER, ContentItem, Message
from jackfield.request import ChatRequest, FunctionSchema
from jackfield_backends.history import Answer, Result, parts_of
from jackfield_chat_completions.media import file_part, media_part
from jackfield_chat_completions.profiles import Dialect
from jackfield_http import Wire, json_bytes


def request_bytes(request: ChatRequest, dialect: Dialect) -> bytes:
    """Return the HTTP request body.

    Raises:
        UnsupportedInputError: A local file is missing, or of another type.
    """
    return json_bytes(request_body(request, dialect))


def request_body(request: ChatRequest, dialect: Dialect) -> Wire:
    """Return the request as a dict. `extra_body` overrides all other fields."""
    messages = wire_messages(request.messages, dialect, files=request.facts.files)
    body: Wire = {"model": request.model, "messages": messages, "stream": True}
    if dialect.stream_usage:
        body["stream_options"] = {"include_usage": True}
    if request.functions:
        body |= _tool_options(request.functions, request.config)
    marks = _continued(messages, dialect)
    return {**body, **dialect.body, **marks, **_options(request.config, dialect), **request.config.extra_body}


def _tool_options(functions: Sequence[FunctionSchema], config: GenerateConfig) -> Wire:
    choice: str | Wire = config.function_choice
    if choice not in ("auto", "none", "required"):
        choice = {"type": "function", "function": {"name": choice}}
    options: Wire = {"tools": [_tool(function) for function in functions], "tool_choice": choice}
    if config.parallel_function_calls is not None:
        options["parallel_tool_calls"] = config.parallel_function_calls
    return options


def _tool(function: FunctionSchema) -> Wire:
    known = ("name", "description", "parameters", "strict")
    return {"type": "function", "function": {key: function[key] for key in known if key in function}}


def _options(config: GenerateConfig, dialect: Dialect) -> Wire:
    options = {
        "temperature": config.temperature,
        "top_p": config.top_p,
        "top_k": config.top_k,
        "presence_penalty": config.presence_penalty,
        "frequency_penalty": config.frequency_penalty,
        dialect.repetition_penalty_key: config.repetition_penalty,
        dialect.max_tokens_key: config.max_tokens,
        "seed": config.seed,
        "stop": list(config.stop) or None,
        "response_format": config.response_format,
        "reasoning_effort": config.reasoning_effort,
    }
    return {key: value for key, value in options.items() if value is not None}


# --- messages ---------------------------------------------------------------------------------------------------------


def wire_messages(messages: Sequence[Message], dialect: Dialect, *, files: bool = False) -> list[Wire]:
    """Convert a history to Chat Completions messages.

    Args:
        messages: The history.
        dialect: The server's variant of the protocol.
        files: True if the server accepts PDFs. Otherwise, PDFs become notes.
    """
    wire: list[Wire] = []
    for part in parts_of(messages):
        if isinstance(part, Message):
            wire.append({"role": part.role, "content": _content(part, dialect, files=files)})
        else:
            wire += _answer(part, dialect)
    return wire


def _content(message: Message, dialect: Dialect, *, files: bool) -> str | list[Wire]:
    """Return a string if there is only text, because some servers accept no lists, else a list of parts."""
    content = message.content
    if isinstance(content, str):
        return content
    if all(item.text is not None for item in content):
        return message.get_text_content()
    return [_part(item, dialect, files=files) for item in content]


def _part(item: ContentItem, dialect: Dialect, *, files: bool) -> Wire:
    if item.text is not None:
        return {"type": "text", "text": item.text}
    if item.file is not None:
        if files and (part := file_part(item.file)):
            return part
        return {"type": "text", "text": notes_of([item])[0]}
    return media_part(item, sound_as_uri=dialect.sound_as_uri)


def _answer(answer: Answer, dialect: Dialect) -> list[Wire]:
    """Return the assistant message, one tool message per call, then user messages with media and stray results."""
    wire: list[Wire] = [_said(answer, dialect)] if answer.messages else []
    wire += [{"role": "tool", "tool_call_id": call.id, "content": call.result.text} for call in answer.calls]
    wire += [_as_user(call.result, [], dialect) for call in answer.calls if call.result.media]
    wire += [_as_user(stray, [{"type": "text", "text": stray.text}], dialect) for stray in answer.strays]
    return wire


def _said(answer: Answer, dialect: Dialect) -> Wire:
    said: Wire = {"role": ASSISTANT, "content": answer.text}
    if answer.reasoning and dialect.send_reasoning:
        said["reasoning_content"] = answer.reasoning
    if answer.calls:
        said["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.function.name, "arguments": call.function.arguments},
            }
            for call in answer.calls
        ]
    return said


def _as_user(result: Result, texts: list[Wire], dialect: Dialect) -> Wire:
    if not result.media:
        return {"role": USER, "content": "\n".join([result.label, *(part["text"] for part in texts)])}
    media = [media_part(item, sound_as_uri=dialect.sound_as_uri) for item in result.media]
    return {"role": USER, "content": [{"type": "text", "text": result.label}, *texts, *media]}


# --- continuation -----------------------------------------------------------------------------------------------------


def _continued(messages: list[Wire], dialect: Dialect) -> Wire:
    """Return the request options for continuing an answer at the end of the history.

    May modify the last messages, which belong to this request alone.
    """
    if not messages or not _has_begun(messages[-1]):
        return {}
    match dialect.continuation:
        case "continue_final_message":
            return {"continue_final_message": True, "add_generation_prompt": False}
        case "partial" | "prefix" as mark:
            messages[-1][mark] = True
        case "fold":
            _fold(messages)
        case "as_is":
            pass
    return {}


def _has_begun(message: Wire) -> bool:
    """Return True if the message is an answer that can be continued."""
    return message["role"] == ASSISTANT and bool(message["content"]) and "tool_calls" not in message


def _fold(messages: list[Wire]) -> None:
    """Merge an answer at the end of the history into the preceding user message, if there is one."""
    if len(messages) < 2 or messages[-2]["role"] != USER:
        return
    begun = messages.pop()["content"]
    asked = messages[-1]
    if isinstance(asked["content"], str):
        asked["content"] += f"\n\n{begun}"
    else:
        asked["content"].append({"type": "text", "text": f"\n\n{begun}"})
