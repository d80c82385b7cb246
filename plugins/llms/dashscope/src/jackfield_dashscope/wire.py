"""From a request to the JSON that DashScope takes. Pure, but for local media, which are read.

What DashScope refuses a history for is mended: a call has an id of its own and arguments that are a JSON object; right
after the message with the calls stands one `tool` message for each of them, and nowhere else is one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from jackfield.config import GenerateConfig
from jackfield.jsontext import dumps, loads_lenient
from jackfield.messages import ASSISTANT, FUNCTION, SYSTEM, ContentItem, FunctionCall, Message
from jackfield.request import ChatRequest, FunctionSchema
from jackfield_dashscope.config import DashScopeConfig
from jackfield_dashscope.media import media_part, notes_of

Wire = dict[str, Any]

NO_RESULT = "(no result: the call was not carried out)"
RESULT_BELOW = "(the result is in the next message)"
_MARK = {"cache_control": {"type": "ephemeral"}}


@dataclass(frozen=True, slots=True)
class Dialect:
    """How this model is asked.

    Attributes:
        parameters: What every request has: the SDK's own for a stream, then what the configuration says.
        in_parts: Every content is a list of parts, as at the multimodal endpoint; else a text where it is one.
        partial: Mark an answer that stands last as one to be continued.
        send_reasoning: Give the history's reasoning back.
        cache_control: Up to where the provider is to keep the prompt.
    """

    parameters: Mapping[str, Any] = field(default_factory=dict)
    in_parts: bool = False
    partial: bool = True
    send_reasoning: bool = True
    cache_control: Literal["system", "history"] | None = None


def dialect_of(config: DashScopeConfig, parameters: Mapping[str, Any], *, in_parts: bool) -> Dialect:
    """The dialect that a configuration asks for, on top of the SDK's parameters."""
    chosen = {
        "enable_thinking": config.enable_thinking,
        "thinking_budget": config.thinking_budget,
        "enable_search": config.enable_search,
        "search_options": config.search_options,
    }
    return Dialect(
        parameters={**parameters, **_given(chosen)},
        in_parts=in_parts,
        partial=config.partial,
        send_reasoning=config.send_reasoning,
        cache_control=config.cache_control,
    )


def request_bytes(request: ChatRequest, dialect: Dialect) -> bytes:
    """The body of the HTTP request.

    Raises:
        UnsupportedInputError: A local file is missing, or not what it should be.
    """
    body = request_body(request, dialect)
    try:
        return msgspec.json.encode(body)
    except UnicodeEncodeError:
        # Half a surrogate pair, from a cut text or an odd file name: no UTF-8 has it, and one must not cost the answer.
        return json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")


def request_body(request: ChatRequest, dialect: Dialect) -> Wire:
    """The request as a dict; among the parameters, what `extra_body` says wins."""
    parameters = {**dialect.parameters, **_options(request.config)}
    if request.functions:
        parameters |= _tool_options(request.functions, request.config)
    return {
        "model": request.model,
        "input": {"messages": wire_messages(request.messages, dialect)},
        "parameters": parameters | request.config.extra_body,
    }


def _options(config: GenerateConfig) -> Wire:
    return _given(
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


def _given(options: Wire) -> Wire:
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
    return _given(options)


# --- messages ---------------------------------------------------------------------------------------------------------


def wire_messages(messages: Sequence[Message], dialect: Dialect) -> list[Wire]:
    """The history as DashScope takes it."""
    history = _History(dialect)
    for message in messages:
        history.add(message)
    wire = history.complete()
    if dialect.partial and wire and wire[-1]["role"] == ASSISTANT and messages[-1].get_text_content():
        wire[-1]["partial"] = True
    if dialect.cache_control is not None:
        _mark_for_the_cache(wire, everything=dialect.cache_control == "history")
    return wire


def _mark_for_the_cache(wire: Sequence[Wire], *, everything: bool) -> None:
    ends = [message for message in wire[:1] if message["role"] == SYSTEM] + (list(wire[-1:]) if everything else [])
    for message in ends:
        content = message["content"]
        parts = [{"text": content}] if isinstance(content, str) else content
        if parts:
            message["content"] = [*parts[:-1], {**parts[-1], **_MARK}]


@dataclass(frozen=True, slots=True)
class _Call:
    """A call that waits for its result: its id in this request, the one it has in the history, and the tool."""

    id: str
    given_id: str | None
    name: str

    def closeness(self, result: Message) -> int:
        """How much a result looks like that of this call: by id and name 3, by id 2, by name 1, else 0."""
        same_id = self.given_id is not None and self.given_id == result.function_id
        return 2 * same_id + (self.name == result.name)


class _History:
    """Takes a history message by message. An answer is open until what follows it, or its results, is over."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._wire: list[Wire] = []
        self._ids: set[str] = set()
        self._answer: list[Message] = []
        self._results: list[Message] = []

    def add(self, message: Message) -> None:
        if message.role == FUNCTION:
            self._results.append(message)
            return
        if self._results or message.role != ASSISTANT:
            self._close()
        if message.role == ASSISTANT:
            self._answer.append(message)
        else:
            self._wire.append({"role": message.role, "content": self._content(message)})

    def complete(self) -> list[Wire]:
        self._close()
        return self._wire

    def _close(self) -> None:
        """Write the open answer, and the results of its calls."""
        calls = []
        if self._answer:
            calls = [self._call(message) for message in self._answer if message.function_call]
            self._wire.append(self._assistant(calls))
        paired, strays = _paired(calls, self._results)
        more: list[Wire] = []
        for call in calls:
            text, media = _split(paired.get(call))
            self._wire.append(
                {"role": "tool", "tool_call_id": call.id, "name": call.name, "content": self._as_content(text)}
            )
            if media:
                more.append(_as_user(call.name, media))
        for stray in strays:
            text, media = _split(stray)
            more.append(_as_user(stray.name or "", [{"text": text}, *media]))
        self._wire += more if self._dialect.in_parts else [_flat(message) for message in more]
        self._answer, self._results = [], []

    def _call(self, message: Message) -> _Call:
        assert message.function_call is not None  # noqa: S101 - the caller has looked
        given_id = message.function_id
        # It depends on older calls only: a longer history begins with the same text, which the provider keeps.
        call_id = given_id or ""
        while not call_id or call_id in self._ids:
            call_id = f"call_{len(self._ids) + 1}" if not call_id.startswith("call_") else f"{call_id}_"
        self._ids.add(call_id)
        return _Call(call_id, given_id, message.function_call.name)

    def _assistant(self, calls: Sequence[_Call]) -> Wire:
        texts = [text for message in self._answer if (text := _text(message.content))]
        wire: Wire = {"role": ASSISTANT, "content": self._as_content("\n".join(texts))}
        thoughts = [text for message in self._answer if (text := _text(message.reasoning_content))]
        if thoughts and self._dialect.send_reasoning:
            wire["reasoning_content"] = "\n".join(thoughts)
        if calls:
            functions = [message.function_call for message in self._answer if message.function_call]
            wire["tool_calls"] = [
                {
                    "index": index,
                    "id": call.id,
                    "type": "function",
                    "function": {"name": function.name, "arguments": _arguments(function)},
                }
                for index, (call, function) in enumerate(zip(calls, functions, strict=True))
            ]
        return wire

    def _content(self, message: Message) -> str | list[Wire]:
        if isinstance(message.content, str):
            return self._as_content(message.content)
        if not self._dialect.in_parts and not message.is_multimodal():
            return message.get_text_content()
        return list(map(_part, message.content))

    def _as_content(self, text: str) -> str | list[Wire]:
        return [{"text": text}] if self._dialect.in_parts else text


def _part(item: ContentItem) -> Wire:
    if item.text is not None:
        return {"text": item.text}
    return media_part(item) if item.is_media_content() else {"text": notes_of([item])[0]}


def _text(content: str | list[ContentItem] | None) -> str:
    """The texts of a content, and a note in place of everything else: only users may send media."""
    if content is None or isinstance(content, str):
        return content or ""
    return "\n".join([*(item.text for item in content if item.text), *notes_of(content)])


def _arguments(call: FunctionCall) -> str:
    """The arguments as a JSON object: one broken call must not make DashScope refuse the whole history."""
    if _is_object(call.arguments):
        return call.arguments
    try:
        value = loads_lenient(call.arguments)
    except ValueError:
        value = None
    if isinstance(value, dict):
        return dumps(value)
    return dumps({"invalid_arguments": call.arguments} if call.arguments.strip() else {})


def _is_object(text: str) -> bool:
    try:
        return isinstance(msgspec.json.decode(text), dict)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return False


# --- results ----------------------------------------------------------------------------------------------------------


def _paired(calls: Sequence[_Call], results: Sequence[Message]) -> tuple[dict[_Call, Message], list[Message]]:
    """For each call its result, the closest pairs first; and the results that are left."""
    paired: dict[_Call, Message] = {}
    left = list(results)
    for wanted in (3, 2, 1):
        for call in calls:
            if call in paired:
                continue
            found = next((at for at, result in enumerate(left) if call.closeness(result) == wanted), None)
            if found is not None:
                paired[call] = left.pop(found)
    return paired, left


def _split(result: Message | None) -> tuple[str, list[Wire]]:
    """The text of a result, and its media, which a `tool` message cannot carry."""
    if result is None:
        return NO_RESULT, []
    if isinstance(result.content, str):
        return result.content, []
    media = [media_part(item) for item in result.content if item.is_media_content()]
    texts = list(_texts(result.content))
    return "\n".join(texts) or (RESULT_BELOW if media else ""), media


def _texts(items: Sequence[ContentItem]) -> Iterator[str]:
    for item in items:
        if not item.is_media_content():
            yield item.text if item.text is not None else notes_of([item])[0]


def _as_user(tool: str, parts: list[Wire]) -> Wire:
    return {"role": "user", "content": [{"text": f"Result of the tool {tool}:"}, *parts]}


def _flat(message: Wire) -> Wire:
    """A message with its texts as one, where there is nothing else."""
    if any("text" not in part for part in message["content"]):
        return message
    return {**message, "content": "\n".join(part["text"] for part in message["content"])}
