"""Convert requests to DashScope's JSON. The only side effect is reading local media."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from jackfield.config import GenerateConfig
from jackfield.media import notes_of
from jackfield.messages import ASSISTANT, SYSTEM, ContentItem, Message
from jackfield.request import ChatRequest, FunctionSchema
from jackfield_backends.history import Answer, Call, Result, parts_of
from jackfield_dashscope.config import DashScopeConfig
from jackfield_dashscope.media import media_part
from jackfield_http import Wire, json_bytes

_MARK = {"cache_control": {"type": "ephemeral"}}


@dataclass(frozen=True, slots=True)
class Dialect:
    """The format of requests to a model.

    Attributes:
        parameters: The parameters of every request: the SDK's own for streaming, then the configuration's.
        in_parts: True to send all content as lists of parts, as the multimodal endpoint requires. If False, content is
            plain text where possible.
        partial: True to mark an answer at the end of the history for continuation.
        send_reasoning: True to send the history's reasoning back.
        cache_control: The part of the prompt that the provider caches, or None.
    """

    parameters: Mapping[str, Any] = field(default_factory=dict)
    in_parts: bool = False
    partial: bool = True
    send_reasoning: bool = True
    cache_control: Literal["system", "history"] | None = None


def dialect_of(config: DashScopeConfig, parameters: Mapping[str, Any], *, in_parts: bool) -> Dialect:
    """Return the dialect for a configuration, including the SDK's parameters."""
    chosen = {
        "enable_thinking": config.enable_thinking,
        "thinking_budget": config.thinking_budget,
        "enable_search": config.enable_search,
        "search_options": config.search_options,
    }
    return Dialect(
        parameters={**parameters, **_without_none(chosen)},
        in_parts=in_parts,
        partial=config.partial,
        send_reasoning=config.send_reasoning,
        cache_control=config.cache_control,
    )


def request_bytes(request: ChatRequest, dialect: Dialect) -> bytes:
    """Return the encoded request body.

    Raises:
        UnsupportedInputError: A local file is missing or of the wrong type.
    """
    return json_bytes(request_body(request, dialect))


def request_body(request: ChatRequest, dialect: Dialect) -> Wire:
    """Return the request body. `extra_body` takes precedence over other parameters."""
    parameters = {**dialect.parameters, **_options(request.config)}
    if request.functions:
        parameters |= _tool_options(request.functions, request.config)
    return {
        "model": request.model,
        "input": {"messages": wire_messages(request.messages, dialect)},
        "parameters": parameters | request.config.extra_body,
    }


def _options(config: GenerateConfig) -> Wire:
    return _without_none(
        {
            "temperature": config.temperature,
            "top_p": config.top_p,
            "top_k": config.top_k,
            "presence_penalty": config.presence_penalty,
            "frequency_penalty": config.frequency_penalty,
            "repetition_penalty": config.repetition_penalty,
            "max_tokens": config.max_tokens,
            "seed": config.seed,
            "stop": list(config.stop) or None,
            "response_format": config.response_format,
            "reasoning_effort": config.reasoning_effort,
        }
    )


def _without_none(options: Wire) -> Wire:
    return {key: value for key, value in options.items() if value is not None}


def _tool_options(functions: Sequence[FunctionSchema], config: GenerateConfig) -> Wire:
    known = ("name", "description", "parameters", "strict")
    choice: str | Wire = config.function_choice
    if choice not in ("auto", "none", "required"):
        choice = {"type": "function", "function": {"name": choice}}
    options = {
        "tools": [
            {"type": "function", "function": {key: function[key] for key in known if key in function}}
            for function in functions
        ],
        "tool_choice": choice,
        "parallel_tool_calls": config.parallel_function_calls,
    }
    return _without_none(options)


# --- messages ---------------------------------------------------------------------------------------------------------


def wire_messages(messages: Sequence[Message], dialect: Dialect) -> list[Wire]:
    """Convert a history, repairing anything that DashScope would refuse."""
    wire: list[Wire] = []
    for part in parts_of(messages):
        if isinstance(part, Answer):
            wire += _answer(part, dialect)
        else:
            wire.append({"role": part.role, "content": _content(part, dialect)})
    if dialect.partial and wire and _has_begun(wire[-1], messages[-1]):
        wire[-1]["partial"] = True
    if dialect.cache_control is not None:
        _mark_for_the_cache(wire, everything=dialect.cache_control == "history")
    return wire


def _has_begun(last: Wire, message: Message) -> bool:
    """Return True if the last message is an answer to continue."""
    return last["role"] == ASSISTANT and bool(message.get_text_content())


def _mark_for_the_cache(wire: Sequence[Wire], *, everything: bool) -> None:
    ends = [message for message in wire[:1] if message["role"] == SYSTEM] + (list(wire[-1:]) if everything else [])
    for message in ends:
        content = message["content"]
        parts = [{"text": content}] if isinstance(content, str) else content
        if parts:
            message["content"] = [*parts[:-1], {**parts[-1], **_MARK}]


def _answer(answer: Answer, dialect: Dialect) -> list[Wire]:
    """Convert an answer and its calls' results. Parts that `tool` messages cannot contain become user messages."""
    spoken = [_assistant(answer, dialect)] if answer.messages else []
    results = [_tool(call, dialect) for call in answer.calls]
    media = [_as_user(call.result, [], dialect) for call in answer.calls if call.result.media]
    strays = [_as_user(stray, [{"text": stray.text}], dialect) for stray in answer.strays]
    return [*spoken, *results, *media, *strays]


def _tool(call: Call, dialect: Dialect) -> Wire:
    content = _text(call.result.text, dialect)
    return {"role": "tool", "tool_call_id": call.id, "name": call.function.name, "content": content}


def _assistant(answer: Answer, dialect: Dialect) -> Wire:
    wire: Wire = {"role": ASSISTANT, "content": _text(answer.text, dialect)}
    if answer.reasoning and dialect.send_reasoning:
        wire["reasoning_content"] = answer.reasoning
    if answer.calls:
        wire["tool_calls"] = [_call(index, call) for index, call in enumerate(answer.calls)]
    return wire


def _call(index: int, call: Call) -> Wire:
    function = {"name": call.function.name, "arguments": call.function.arguments}
    return {"index": index, "id": call.id, "type": "function", "function": function}


def _as_user(result: Result, texts: list[Wire], dialect: Dialect) -> Wire:
    parts = [{"text": result.label}, *texts, *(media_part(item) for item in result.media)]
    if dialect.in_parts or result.media:
        return {"role": "user", "content": parts}
    return {"role": "user", "content": "\n".join(part["text"] for part in parts)}


def _content(message: Message, dialect: Dialect) -> str | list[Wire]:
    if isinstance(message.content, str):
        return _text(message.content, dialect)
    if not dialect.in_parts and not message.is_multimodal():
        return message.get_text_content()
    return [_part(item) for item in message.content]


def _text(text: str, dialect: Dialect) -> str | list[Wire]:
    return [{"text": text}] if dialect.in_parts else text


def _part(item: ContentItem) -> Wire:
    if item.text is not None:
        return {"text": item.text}
    return media_part(item) if item.is_media_content() else {"text": notes_of([item])[0]}
