"""From a request to the JSON that the Messages protocol takes. Pure, except that local images are read."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from jackfield.config import GenerateConfig
from jackfield.errors import UnsupportedInputError
from jackfield.media import address_of, notes_of, path_of, pdf_of
from jackfield.messages import ASSISTANT, SYSTEM, USER, ContentItem, Message, basename_of
from jackfield.request import ChatRequest, FunctionSchema
from jackfield_anthropic.config import AnthropicConfig
from jackfield_backends.history import Answer, Call, parts_of, text_of
from jackfield_http import Wire

MAX_IMAGE_BYTES = 3_750_000  # in base64, the five million that Anthropic takes
_MARK = {"cache_control": {"type": "ephemeral"}}
_NOT_OF_THE_PROTOCOL = ("seed", "presence_penalty", "frequency_penalty", "repetition_penalty")
_CHOICES = {"auto": "auto", "none": "none", "required": "any"}


def request_body(request: ChatRequest, config: AnthropicConfig) -> Wire:
    """The request as a dict; `extra_body` wins.

    Raises:
        UnsupportedInputError: An option is set that the protocol does not have, or a local image cannot be sent.
    """
    messages = wire_messages(request.messages, config, request.server)
    body: Wire = {
        "model": request.model,
        "max_tokens": request.config.max_tokens or config.default_max_tokens,
        "messages": messages,
        "stream": True,
        **_options(request.config),
        **_thinking(config),
        **_tools(request, messages),
    }
    system = itertools.chain.from_iterable(_blocks(message) for message in request.messages if message.role == SYSTEM)
    if blocks := list(system):
        body["system"] = blocks
    if config.cache_control is not None:
        _mark_for_the_cache(body, everything=config.cache_control == "history")
    return body | request.config.extra_body


# --- options ----------------------------------------------------------------------------------------------------------


def _options(config: GenerateConfig) -> Wire:
    for option in _NOT_OF_THE_PROTOCOL:
        if getattr(config, option) is not None:
            raise UnsupportedInputError(f"Anthropic's Messages protocol has no {option}: leave it out for this model")
    options: Wire = {
        "temperature": config.temperature,
        "top_p": config.top_p,
        "top_k": config.top_k,
        "stop_sequences": list(config.stop) or None,
        "output_config": {**_format(config.response_format), **_effort(config.reasoning_effort)} or None,
    }
    return {key: value for key, value in options.items() if value is not None}


def _effort(effort: str | None) -> Wire:
    return {"effort": effort} if effort else {}


def _format(wanted: Mapping[str, Any] | None) -> Wire:
    if not wanted or wanted.get("type") == "text":
        return {}
    schema = (wanted.get("json_schema") or {}).get("schema")
    if wanted.get("type") != "json_schema" or schema is None:
        raise UnsupportedInputError(
            f"Anthropic's Messages protocol has no response_format of type {wanted.get('type')!r}: "
            "give a json_schema, or ask for JSON in the prompt"
        )
    return {"format": {"type": "json_schema", "schema": schema}}


def _thinking(config: AnthropicConfig) -> Wire:
    kind = config.thinking or ("enabled" if config.thinking_budget else None)
    if kind is None:
        return {}
    if kind != "enabled":
        return {"thinking": {"type": kind}}
    return {"thinking": {"type": kind, "budget_tokens": config.thinking_budget or 1024}}


def _tools(request: ChatRequest, messages: Sequence[Wire]) -> Wire:
    if not request.functions:
        return _tools_of_the_history(messages)
    tools, choice = {"tools": [_tool(function) for function in request.functions]}, _choice(request.config)
    return tools if choice == {"type": "auto"} else {**tools, "tool_choice": choice}


def _choice(config: GenerateConfig) -> Wire:
    wanted, parallel = config.function_choice, config.parallel_function_calls
    choice: Wire = {"type": _CHOICES[wanted]} if wanted in _CHOICES else {"type": "tool", "name": wanted}
    if parallel is not None and wanted != "none":
        choice["disable_parallel_tool_use"] = not parallel
    return choice


def _tools_of_the_history(messages: Sequence[Wire]) -> Wire:
    """Servers refuse calls in the history if no tools are declared."""
    called = {block["name"]: None for m in messages for block in m["content"] if block["type"] == "tool_use"}
    known = [{"name": name, "input_schema": {"type": "object"}} for name in called]
    return {"tools": known, "tool_choice": {"type": "none"}} if known else {}


def _tool(function: FunctionSchema) -> Wire:
    named = {"name": "name", "description": "description", "parameters": "input_schema", "strict": "strict"}
    return {"input_schema": {"type": "object"}} | {
        wire: function[key] for key, wire in named.items() if function.get(key) is not None
    }


def _mark_for_the_cache(body: Wire, *, everything: bool) -> None:
    # What is kept is the beginning of the prompt: tools, then the system message, then the history.
    ends = [body.get("system") or body.get("tools")]
    if everything and body["messages"]:
        ends.append(body["messages"][-1]["content"])
    for blocks in ends:
        if blocks and blocks[-1].get("type") not in ("thinking", "redacted_thinking"):
            blocks[-1] = {**blocks[-1], **_MARK}


# --- messages ---------------------------------------------------------------------------------------------------------


def wire_messages(messages: Sequence[Message], config: AnthropicConfig, server: str = "") -> list[Wire]:
    """The history in the protocol's form: blocks, alternating roles, and no empty text.

    Args:
        messages: System messages among them are left out.
        config: Decides whether the model gets its thoughts back.
        server: The server's address. Signed thoughts only go back to the server they came from.
    """
    said: list[tuple[str, list[Wire]]] = []
    for part in parts_of([message for message in messages if message.role != SYSTEM]):
        if isinstance(part, Message):
            said.append((USER, _blocks(part)))
        else:
            said += [(ASSISTANT, _answer(part, config, server)), (USER, _results(part))]
    wire = _in_turn(said)
    if wire and wire[-1]["role"] == ASSISTANT:  # an answer that was begun
        wire[-1]["content"][-1] = _without_space_behind(wire[-1]["content"][-1])
    return wire


def _without_space_behind(block: Wire) -> Wire:
    """A block as it may stand last: servers refuse space at its end."""
    return {**block, "text": block["text"].rstrip() or block["text"]} if block["type"] == "text" else block


def _in_turn(said: Sequence[tuple[str, list[Wire]]]) -> list[Wire]:
    """Messages whose roles take turns, none of them empty."""
    wire: list[Wire] = []
    for role, blocks in said:
        if wire and wire[-1]["role"] == role:
            wire[-1]["content"] += blocks
        elif blocks:
            wire.append({"role": role, "content": blocks})
    return wire


def _blocks(message: Message) -> list[Wire]:
    if isinstance(message.content, str):
        return _text(message.content)
    return _items(message.content)


def _items(items: Sequence[ContentItem]) -> list[Wire]:
    return [block for item in items for block in _item(item)]


def _item(item: ContentItem) -> list[Wire]:
    if item.text is not None:
        return _text(item.text)
    if item.image:
        return [_image(item.image)]
    document = _document(item.file) if item.file else None
    return [document] if document else _text(notes_of([item])[0])


def _text(text: str) -> list[Wire]:
    return [{"type": "text", "text": text}] if text else []


def _image(value: str) -> Wire:
    address = address_of(value, "image", max_bytes=MAX_IMAGE_BYTES)
    if address[:5].lower() != "data:":
        return {"type": "image", "source": {"type": "url", "url": address}}
    head, _, data = address[5:].partition(",")
    return {"type": "image", "source": {"type": "base64", "media_type": head.partition(";")[0], "data": data}}


def _document(address: str) -> Wire | None:
    """A PDF, by its URL or with its content; None for any other file."""
    if path_of(address) is None and address[:5].lower() != "data:":
        return {"type": "document", "source": {"type": "url", "url": address}}
    pdf = pdf_of(address)
    if pdf is None:
        return None
    source = {"type": "base64", "media_type": pdf.media_type, "data": pdf.base64}
    title = {} if address[:5].lower() == "data:" else {"title": basename_of(address)}
    return {"type": "document", "source": source, **title}


def _results(answer: Answer) -> list[Wire]:
    """The results of an answer's calls, which must stand first, then those that no call asked for."""
    results = list(map(_result, answer.calls))
    for stray in answer.strays:
        results += [*_text(f"{stray.label}\n{stray.text}"), *_items(stray.media)]
    return results


def _result(call: Call) -> Wire:
    text, images = call.result.text, _items(call.result.media)
    return {"type": "tool_result", "tool_use_id": call.id, "content": [*_text(text), *images] if images else text}


def _answer(answer: Answer, config: AnthropicConfig, server: str) -> list[Wire]:
    blocks: list[Wire] = []
    for messages, calls in answer.by_origin():
        kept = kept_blocks(messages, calls, server) if config.send_reasoning else None
        blocks += _rendered(messages, calls) if kept is None else kept
    return blocks


def _rendered(messages: Sequence[Message], calls: Sequence[Call]) -> Iterator[Wire]:
    for message in messages:
        yield from _text(text_of(message.content))
    yield from map(_call, calls)


def _call(call: Call) -> Wire:
    arguments = json.loads(call.function.arguments)
    return {"type": "tool_use", "id": call.id, "name": call.function.name, "input": arguments}


def kept_blocks(messages: Sequence[Message], calls: Sequence[Call], server: str) -> list[Wire] | None:
    """The original blocks of an answer, with thoughts; None if they came from another server or were changed.

    Args:
        messages: All that is left of the answer, with one `origin`.
        calls: Its calls, as they are to be sent.
        server: The server's address.
    """
    origin = messages[0].origin
    data = origin.data if origin is not None else None
    if not data or data.get("server") != server:
        return None
    try:
        blocks = [dict(block) for block in data["content"]]
        kept = _seen_of(blocks)
    except (KeyError, TypeError, ValueError):
        return None  # a history that was edited by hand: what is seen of it counts
    seen = "".join(text_of(message.content) for message in messages), [call.function.name for call in calls]
    return _with_calls(blocks, calls) if kept == seen else None


def _seen_of(blocks: Sequence[Wire]) -> tuple[str, list[str]]:
    """What a history shows of blocks: the text, and the names of the calls."""
    text = "".join(block["text"] for block in blocks if block["type"] == "text")
    return text, [block["name"] for block in blocks if block["type"] == "tool_use"]


def _with_calls(blocks: Sequence[Wire], calls: Sequence[Call]) -> list[Wire]:
    """The blocks with ids that are unique in this request, and the arguments that the history has now."""
    own = iter(calls)
    return [_call(next(own)) if block["type"] == "tool_use" else block for block in blocks]
