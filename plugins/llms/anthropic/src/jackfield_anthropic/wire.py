"""Convert requests to the JSON of the Messages protocol. The only side effect is reading local images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from jackfield.answers import asking_text
from jackfield.config import GenerateConfig
from jackfield.errors import UnsupportedInputError
from jackfield.messages import SYSTEM, Usage
from jackfield.request import ChatRequest, FunctionSchema
from jackfield_anthropic.config import AnthropicConfig, Thinking
from jackfield_anthropic.history import THOUGHTS, ask_to_continue, blocks_of, fit_name, lacks_reasoning, wire_messages
from jackfield_anthropic.schemas import enforceable_schema
from jackfield_http import Wire

DEFAULT_MAX_TOKENS = 8192
THINKING_MAX_TOKENS = 32_000
"""Default token limit with adaptive thinking, higher because the limit includes the reasoning."""
MIN_BUDGET_TOKENS = 1024
BINDING_FEATURE = "thinking-binding-controls-2026-08-01"
HOSTED_TOOLS: Mapping[str, str] = {
    "web_search": "web_search_20250305",
    "web_fetch": "web_fetch_20250910",
    "code_execution": "code_execution_20250825",
}
"""Versions of hosted tools that all of Anthropic's models support."""

_NOT_OF_THE_PROTOCOL = ("seed", "presence_penalty", "frequency_penalty", "repetition_penalty")
_SAMPLING = ("temperature", "top_p", "top_k")
_CHOICES = {"auto": "auto", "none": "none", "required": "any"}
_COUNTED = ("model", "messages", "system", "tools", "tool_choice", "thinking", "output_config")


@dataclass(frozen=True, slots=True)
class Abilities:
    """Model capabilities that only this backend uses.

    Attributes:
        thinking: The supported values of `thinking`, or None if unknown.
        thinks_unasked: True if the model thinks unless `thinking` is disabled.
        sampling: True if the model accepts `temperature`, `top_p` and `top_k`.
        prefill: True if the model continues an answer at the end of the history.
        refuses_schemas: True if the model is known not to support JSON Schema enforcement.
    """

    thinking: tuple[str, ...] | None = None
    thinks_unasked: bool = False
    sampling: bool = True
    prefill: bool = True
    refuses_schemas: bool = False

    @classmethod
    def read(cls, details: Mapping[str, Any], *, refuses_schemas: bool = False) -> Abilities:
        """Read the capabilities from a `KnownModel`'s details, ignoring all other details."""
        thinking = details.get("thinking")
        return cls(
            thinking=None if thinking is None else tuple(thinking),
            thinks_unasked=bool(details.get("thinks_unasked", False)),
            sampling=bool(details.get("sampling", True)),
            prefill=bool(details.get("prefill", True)),
            refuses_schemas=refuses_schemas,
        )


@dataclass(frozen=True, slots=True)
class Beginning:
    """The part of an answer received before the server paused it.

    Attributes:
        blocks: The blocks, as a request sends them back.
        usage: The usage of all requests so far.
        pauses: The number of pauses so far.
    """

    blocks: tuple[Wire, ...] = ()
    usage: Usage = field(default_factory=Usage)
    pauses: int = 0


@dataclass(frozen=True, slots=True)
class PausedRequest(ChatRequest):
    """A request for the rest of a paused answer, whose first part is `beginning`."""

    beginning: Beginning = field(default_factory=Beginning)


def request_body(request: ChatRequest, config: AnthropicConfig, abilities: Abilities = Abilities()) -> Wire:
    """Return the request body, in which `extra_body` takes precedence.

    Raises:
        UnsupportedInputError: The protocol or the model does not support an option, two options conflict, or a local
            image cannot be sent.
    """
    thinking = thinking_of(config)
    messages = wire_messages(
        request.messages, server=request.server, send_reasoning=config.send_reasoning, lang=request.lang
    )
    if isinstance(request, PausedRequest):
        messages.append({"role": "assistant", "content": list(request.beginning.blocks)})
    elif thinking == "enabled" or not abilities.prefill:
        ask_to_continue(messages, request.lang)
    if thinking == "enabled" and lacks_reasoning(messages):
        thinking = None
    format_, instruction = _format(request, abilities)
    if config.citations and not format_:  # servers refuse both together
        _allow_citations(messages)
    body: Wire = {
        "model": request.model,
        "max_tokens": _max_tokens(request, config, abilities),
        "messages": messages,
        "stream": True,
        **_sampling(request, abilities, thinking),
        **_options(request.config),
        **_thinking(config, abilities, thinking),
        **_tools(request, messages, config, thinking),
    }
    if output_config := {**format_, **_effort(request.config.reasoning_effort)}:
        body["output_config"] = output_config
    system = [block for message in request.messages if message.role == SYSTEM for block in blocks_of(message)]
    if system or instruction:
        body["system"] = [*system, *instruction]
    if config.cache_control is not None:
        _mark_for_the_cache(body, config)
    return body | request.config.extra_body


def countable_body(body: Wire) -> Wire:
    """Return the part of a request body that the token counter accepts."""
    return {key: body[key] for key in _COUNTED if key in body}


def drop_stale_reasoning(body: Wire) -> bool:
    """Ask the server to drop reasoning whose history has changed; return False if the request does not allow that.

    Reasoning is bound to the history only with adaptive thinking.
    """
    thinking = {"type": "adaptive", **body.get("thinking", {})}
    if thinking["type"] != "adaptive" or "block_binding" in thinking:
        return False
    body["thinking"] = {**thinking, "block_binding": {"prefix_mismatch_behavior": "drop_block"}}
    return True


def thinking_of(config: AnthropicConfig) -> Thinking | None:
    """Return the configured kind of thinking, or None to leave it to the model."""
    return config.thinking or ("enabled" if config.thinking_budget else None)


# --- options ----------------------------------------------------------------------------------------------------------


def _max_tokens(request: ChatRequest, config: AnthropicConfig, abilities: Abilities) -> int:
    """Return the token limit of the answer, including its reasoning."""
    kind = thinking_of(config)
    budget = (config.thinking_budget or MIN_BUDGET_TOKENS) if kind == "enabled" else 0
    limit = request.config.max_tokens
    if limit is None:
        thinks = kind == "adaptive" or (kind is None and abilities.thinks_unasked)
        limit = config.default_max_tokens or (THINKING_MAX_TOKENS if thinks else DEFAULT_MAX_TOKENS)
        limit += budget
        if request.facts.max_output_tokens is not None:
            limit = min(limit, request.facts.max_output_tokens)
    # Only interleaved thinking lets the reasoning between calls exceed the limit of one answer.
    is_interleaved = any(feature.startswith("interleaved-thinking") for feature in config.beta)
    if limit <= budget and not is_interleaved:
        raise UnsupportedInputError(
            f"max_tokens ({limit}) includes the reasoning, so it must be larger than thinking_budget ({budget}): "
            "raise max_tokens, or lower thinking_budget"
        )
    return limit


def _sampling(request: ChatRequest, abilities: Abilities, thinking: Thinking | None) -> Wire:
    config = request.config
    chosen = {name: getattr(config, name) for name in _SAMPLING if getattr(config, name) is not None}
    if chosen and not abilities.sampling:
        raise UnsupportedInputError(f"{request.model} does not support {', '.join(chosen)}: use its default")
    if thinking == "enabled":
        wrong = [
            name
            for name, is_allowed in (
                ("temperature", config.temperature in (None, 1)),
                ("top_p", config.top_p is None or config.top_p >= 0.95),
                ("top_k", config.top_k is None),
            )
            if not is_allowed
        ]
        if wrong:
            raise UnsupportedInputError(
                f"{', '.join(wrong)} cannot be set while thinking is enabled: use the default, or disable thinking"
            )
    return chosen


def _options(config: GenerateConfig) -> Wire:
    for option in _NOT_OF_THE_PROTOCOL:
        if getattr(config, option) is not None:
            raise UnsupportedInputError(
                f"Anthropic's Messages protocol does not support {option}: remove it for this model"
            )
    return {"stop_sequences": list(config.stop)} if config.stop else {}


def _effort(effort: str | None) -> Wire:
    return {"effort": effort} if effort else {}


def _format(request: ChatRequest, abilities: Abilities) -> tuple[Wire, list[Wire]]:
    """Return the schema for the server to enforce, or system blocks that describe it if the server cannot."""
    wanted = request.config.response_format
    if not wanted or wanted.get("type") == "text":
        return {}, []
    described = wanted.get("json_schema") or {}
    schema = described.get("schema")
    if wanted.get("type") != "json_schema" or schema is None:
        raise UnsupportedInputError(
            f"Anthropic's Messages protocol does not support a response_format of type {wanted.get('type')!r}: "
            "use a json_schema, or ask for JSON in the prompt"
        )
    enforceable = None if abilities.refuses_schemas else enforceable_schema(schema)
    if enforceable is not None:
        return {"format": {"type": "json_schema", "schema": enforceable}}, []
    return {}, [{"type": "text", "text": asking_text(schema, request.lang)}]


def _thinking(config: AnthropicConfig, abilities: Abilities, kind: Thinking | None) -> Wire:
    if kind is None or (kind == "disabled" and abilities.thinking == ()):
        return {}
    if kind != "enabled":
        return {"thinking": {"type": kind}}
    return {"thinking": {"type": kind, "budget_tokens": config.thinking_budget or MIN_BUDGET_TOKENS}}


def _allow_citations(messages: Sequence[Wire]) -> None:
    for message in messages:
        for block in message["content"]:
            if block["type"] == "document":
                block["citations"] = {"enabled": True}


# --- tools ------------------------------------------------------------------------------------------------------------


def _tools(request: ChatRequest, messages: Sequence[Wire], config: AnthropicConfig, thinking: Thinking | None) -> Wire:
    hosted = [_hosted_tool(tool) for tool in config.hosted_tools]
    if not request.functions:
        return _tools_without_functions(messages, hosted)
    tools = [_tool(function) for function in request.functions]
    if both := {tool["name"] for tool in tools} & {tool.get("name") for tool in hosted}:
        raise UnsupportedInputError(
            f"{min(both)!r} is both a hosted tool and a function: rename the function, or remove one of them"
        )
    choice = _choice(request.config)
    if choice["type"] in ("any", "tool") and (thinking == "enabled" or not request.facts.forced_calls):
        raise UnsupportedInputError(
            f"{request.model} cannot be forced to call a function"
            + (" while thinking is enabled" if thinking == "enabled" else "")
            + f", but function_choice is {request.config.function_choice!r}: set function_choice to auto"
        )
    return {"tools": [*tools, *hosted], **({} if choice == {"type": "auto"} else {"tool_choice": choice})}


def _tools_without_functions(messages: Sequence[Wire], hosted: Sequence[Wire]) -> Wire:
    """Return the hosted tools and those called in the history, since servers refuse histories with unknown tools."""
    names = {block["name"]: None for m in messages for block in m["content"] if block["type"] == "tool_use"}
    called: list[Wire] = [{"name": name, "input_schema": {"type": "object"}} for name in names]
    if hosted:
        return {"tools": [*called, *hosted]}
    return {"tools": called, "tool_choice": {"type": "none"}} if called else {}


def _hosted_tool(tool: str | Mapping[str, Any]) -> Wire:
    return {"type": HOSTED_TOOLS[tool], "name": tool} if isinstance(tool, str) else dict(tool)


def _choice(config: GenerateConfig) -> Wire:
    wanted, parallel = config.function_choice, config.parallel_function_calls
    choice: Wire = {"type": _CHOICES[wanted]} if wanted in _CHOICES else {"type": "tool", "name": fit_name(wanted)}
    if parallel is not None and wanted != "none":
        choice["disable_parallel_tool_use"] = not parallel
    return choice


def _tool(function: FunctionSchema) -> Wire:
    tool: Wire = {"name": fit_name(function["name"]), "input_schema": {"type": "object"}}
    for key, own_key in (("description", "description"), ("parameters", "input_schema"), ("strict", "strict")):
        if function.get(key) is not None:
            tool[own_key] = function[key]
    return tool


def _mark_for_the_cache(body: Wire, config: AnthropicConfig) -> None:
    # The provider caches the beginning of the prompt: tools, then the system message, then the history.
    mark: Wire = {"type": "ephemeral"} if config.cache_ttl == "5m" else {"type": "ephemeral", "ttl": config.cache_ttl}
    ends = [body.get("system") or body.get("tools")]
    if config.cache_control == "history":
        ends.append(body["messages"][-1]["content"])
    for blocks in ends:
        if blocks and blocks[-1].get("type") not in THOUGHTS:
            blocks[-1] = {**blocks[-1], "cache_control": mark}
