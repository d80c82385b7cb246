"""From a request to the JSON that Chat Completions takes. Pure, but for local images, which are read.

What a server may be strict about, and what is therefore always kept:

- a model's answer (reasoning, text, a message for each call) is one assistant message;
- every call has an id that no other call of the request has, and arguments that are a JSON object;
- right after an assistant message with calls stands one tool message for each of them, and nowhere else is one.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from jackfield.config import GenerateConfig
from jackfield.jsontext import dumps, loads_lenient
from jackfield.messages import ASSISTANT, FUNCTION, ContentItem, FunctionCall, Message
from jackfield.request import ChatRequest, FunctionSchema
from jackfield_openai.media import media_part, notes_of

Wire = dict[str, Any]

NO_RESULT = "(no result: the call was not carried out)"
RESULT_BELOW = "(the result is in the next message)"


@dataclass(frozen=True, slots=True)
class Dialect:
    """In what servers differ.

    Attributes:
        send_reasoning: Give the history's reasoning back, as `reasoning_content`.
        stream_usage: Ask for token counts in the stream.
        max_tokens_key: What the limit of the answer's length is called.
    """

    send_reasoning: bool = True
    stream_usage: bool = True
    max_tokens_key: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"


def request_bytes(request: ChatRequest, dialect: Dialect) -> bytes:
    """The body of the HTTP request.

    Raises:
        UnsupportedInputError: A local image is missing or none.
    """
    body = request_body(request, dialect)
    try:
        return msgspec.json.encode(body)
    except UnicodeEncodeError:
        # Half a surrogate pair, from a cut text or an odd file name: no UTF-8 has it, and one must not cost the answer.
        return json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")


def request_body(request: ChatRequest, dialect: Dialect) -> Wire:
    """The request as a dict; what `extra_body` says wins over everything else."""
    body: Wire = {
        "model": request.model,
        "messages": wire_messages(request.messages, send_reasoning=dialect.send_reasoning),
        "stream": True,
    }
    if dialect.stream_usage:
        body["stream_options"] = {"include_usage": True}
    if request.functions:
        body |= _tool_options(request.functions, request.config)
    return body | _options(request.config, dialect) | request.config.extra_body


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
        "repetition_penalty": config.repetition_penalty,
        dialect.max_tokens_key: config.max_tokens,
        "seed": config.seed,
        "stop": list(config.stop) or None,
        "response_format": config.response_format,
        "reasoning_effort": config.reasoning_effort,
    }
    return {key: value for key, value in options.items() if value is not None}


# --- messages ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Call:
    """A call of the history under the id it has in this request; `given_id` is the one in the history."""

    id: str
    given_id: str | None
    function: FunctionCall


def wire_messages(messages: Sequence[Message], *, send_reasoning: bool = True) -> list[Wire]:
    """The history as Chat Completions takes it."""
    wire: list[Wire] = []
    taken_ids: set[str] = set()
    unanswered: list[_Call] = []
    for role, run in itertools.groupby(messages, key=lambda message: message.role):
        group = list(run)
        if role == FUNCTION:
            wire += _results(group, unanswered)
            unanswered = []
            continue
        wire += _results([], unanswered)
        unanswered = []
        if role == ASSISTANT:
            unanswered = _calls(group, taken_ids)
            wire.append(_answer(group, unanswered, send_reasoning=send_reasoning))
        else:
            wire += [{"role": role, "content": _content(message)} for message in group]
    return wire + _results([], unanswered)


def _content(message: Message) -> str | list[Wire]:
    """Text as one string where there is nothing else: some servers know no lists."""
    content = message.content
    if isinstance(content, str):
        return content
    if all(item.text is not None for item in content):
        return message.get_text_content()
    return [_part(item) for item in content]


def _part(item: ContentItem) -> Wire:
    if item.text is not None:
        return {"type": "text", "text": item.text}
    if item.file is not None:
        return {"type": "text", "text": notes_of([item])[0]}
    return media_part(item)


def _answer(group: Sequence[Message], calls: Sequence[_Call], *, send_reasoning: bool) -> Wire:
    texts = [text for message in group if (text := _text(message.content))]
    answer: Wire = {"role": ASSISTANT, "content": "\n".join(texts)}
    if send_reasoning:
        reasoning = [text for message in group if (text := _text(message.reasoning_content))]
        if reasoning:
            answer["reasoning_content"] = "\n".join(reasoning)
    if calls:
        answer["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.function.name, "arguments": _arguments(call.function.arguments)},
            }
            for call in calls
        ]
    return answer


def _text(content: str | list[ContentItem] | None) -> str:
    """The texts of a content, and a note in place of everything else: only users may send media."""
    if content is None or isinstance(content, str):
        return content or ""
    return "\n".join([*(item.text for item in content if item.text), *notes_of(content)])


def _arguments(text: str) -> str:
    """The arguments as a JSON object: servers that parse them would refuse the whole history for one broken call."""
    try:
        if isinstance(msgspec.json.decode(text), dict):
            return text
        value = None
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        value = _mended(text)
    return dumps(value if isinstance(value, dict) else {"invalid_arguments": text} if text.strip() else {})


def _mended(text: str) -> Any:
    try:
        return loads_lenient(text)
    except ValueError:
        return None


# --- calls and their results ------------------------------------------------------------------------------------------


def _calls(group: Sequence[Message], taken_ids: set[str]) -> list[_Call]:
    calls = []
    for message in group:
        if message.function_call is not None:
            given_id = message.function_id
            calls.append(_Call(_unique_id(given_id, taken_ids), given_id, message.function_call))
    return calls


def _unique_id(given_id: str | None, taken: set[str]) -> str:
    """The id itself if it is new. It depends on older calls only: a longer history begins with the same text."""
    call_id = given_id or ""
    if not call_id or call_id in taken:
        numbers = itertools.count(len(taken) + 1)
        call_id = next(name for number in numbers if (name := f"call_{number}") not in taken)
    taken.add(call_id)
    return call_id


def _results(results: Sequence[Message], calls: Sequence[_Call]) -> list[Wire]:
    """A tool message for each call, then what tool messages cannot carry: media, and results that no call asked for."""
    matched, strays = _matched(results, calls)
    tools: list[Wire] = []
    more: list[Wire] = []
    for call, result in zip(calls, matched, strict=True):
        text, media = (NO_RESULT, []) if result is None else _split(result.content)
        tools.append({"role": "tool", "tool_call_id": call.id, "content": text})
        if media:
            more.append(_as_user(call.function.name, media))
    for stray in strays:
        text, media = _split(stray.content)
        more.append(_as_user(stray.name or "", [{"type": "text", "text": text}, *media]))
    return tools + more


def _matched(results: Sequence[Message], calls: Sequence[_Call]) -> tuple[list[Message | None], list[Message]]:
    """For each call its result, by id and name, then by id, then by name; and the results that are left."""
    matched: list[Message | None] = [None] * len(calls)
    left = list(results)
    for belongs in (_same_id_and_name, _same_id, _same_name):
        for number, call in enumerate(calls):
            if not left:
                return matched, left
            if matched[number] is None:
                found = next((result for result in left if belongs(call, result)), None)
                if found is not None:
                    matched[number] = found
                    left = [result for result in left if result is not found]
    return matched, left


def _same_id_and_name(call: _Call, result: Message) -> bool:
    return _same_id(call, result) and _same_name(call, result)


def _same_id(call: _Call, result: Message) -> bool:
    return call.given_id is not None and call.given_id == result.function_id


def _same_name(call: _Call, result: Message) -> bool:
    return call.function.name == result.name


def _split(content: str | list[ContentItem]) -> tuple[str, list[Wire]]:
    """The text of a result, and its media as parts of a user's message."""
    if isinstance(content, str):
        return content, []
    texts = [item.text if item.text is not None else notes_of([item])[0] for item in content if not _is_media(item)]
    media = [media_part(item) for item in content if _is_media(item)]
    return "\n".join(texts) or (RESULT_BELOW if media else ""), media


def _is_media(item: ContentItem) -> bool:
    return item.text is None and item.file is None


def _as_user(tool: str, parts: list[Wire]) -> Wire:
    label = f"Result of the tool {tool}:"
    if all(part["type"] == "text" for part in parts):
        return {"role": "user", "content": "\n".join([label, *(part["text"] for part in parts)])}
    return {"role": "user", "content": [{"type": "text", "text": label}, *parts]}
