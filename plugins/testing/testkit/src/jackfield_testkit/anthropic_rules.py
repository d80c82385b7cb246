"""Check requests against the rules of Anthropic's Messages protocol, to reject what the provider's servers reject.

Sources: the provider's API reference and its pages on tool use, thinking, structured outputs, vision and prompt
caching, as of November 2026.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Wire = Mapping[str, Any]

MIN_BUDGET_TOKENS = 1024
MAX_CACHE_MARKS = 4
IMAGE_TYPES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
ROLES = frozenset({"user", "assistant"})

_ID = re.compile(r"[a-zA-Z0-9_-]+")
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_THOUGHTS = ("thinking", "redacted_thinking")
_ADAPTIVE_ONLY = re.compile(r"claude-(opus-(4-[78]|5)|sonnet-5|haiku-5|fable-|mythos-)")
_ALWAYS_THINKS = re.compile(r"claude-(opus-5-5|sonnet-5-5|fable-|mythos-)")
_REFUSES_FORCED_CALLS = re.compile(r"claude-(opus-5-5|sonnet-5-5|(fable|mythos)-5-[12])")
_REFUSES_PREFILL = re.compile(r"claude-(opus-4-[678]|sonnet-4-6|opus-5|sonnet-5|haiku-5|fable-|mythos-)")
_SCHEMA_KEYS = frozenset(
    [
        "type",
        "enum",
        "const",
        "anyOf",
        "allOf",
        "$ref",
        "$defs",
        "description",
        "title",
        "properties",
        "required",
        "additionalProperties",
        "items",
        "format",
        "minItems",
    ]
)
_FORMATS = frozenset(["date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"])


def problem_in(body: Wire) -> str:
    """Return an error message for the first rule that a request to `/v1/messages` breaks, or '' if it is valid."""
    for check in (
        _problems_in_options,
        _problems_in_thinking,
        _problems_in_choice,
        _problems_in_tools,
        _problems_in_messages,
        _problems_in_cache_marks,
    ):
        for problem in check(body):
            return problem
    return ""


# --- options ----------------------------------------------------------------------------------------------------------


def _problems_in_options(body: Wire) -> Iterator[str]:
    model, limit = str(body.get("model") or ""), body.get("max_tokens")
    if not isinstance(limit, int) or limit < 1:
        yield "max_tokens: must be at least 1"
    if _ADAPTIVE_ONLY.match(model) and not {"temperature", "top_p", "top_k"}.isdisjoint(body):
        yield f"temperature, top_p and top_k: not supported by {model}"
    wanted = (body.get("output_config") or {}).get("format")
    if wanted is not None:
        yield from _problems_in_schema(wanted["schema"], wanted["schema"].get("$defs", {}), ())


def _problems_in_thinking(body: Wire) -> Iterator[str]:
    model = str(body["model"])
    thinking = body.get("thinking") or {}
    kind = thinking.get("type")
    if kind == "enabled":
        budget = thinking.get("budget_tokens", 0)
        if budget < MIN_BUDGET_TOKENS:
            yield f"thinking.enabled.budget_tokens: must be at least {MIN_BUDGET_TOKENS}"
        if budget >= body["max_tokens"]:
            yield "max_tokens: must be greater than thinking.budget_tokens"
        if body.get("temperature", 1) != 1:
            yield "temperature: may only be set to 1 when thinking is enabled"
        if "top_k" in body or body.get("top_p", 1) < 0.95:
            yield "top_k must be unset and top_p at least 0.95 when thinking is enabled"
        if _ADAPTIVE_ONLY.match(model):
            yield f"thinking.type.enabled: not supported by {model}"
    if kind == "disabled" and _ALWAYS_THINKS.match(model):
        yield f"thinking.type.disabled: not supported by {model}"


def _problems_in_choice(body: Wire) -> Iterator[str]:
    kind = (body.get("tool_choice") or {}).get("type")
    if kind in ("any", "tool"):
        if (body.get("thinking") or {}).get("type") == "enabled":
            yield "Thinking may not be enabled when tool_choice forces tool use"
        if _REFUSES_FORCED_CALLS.match(str(body["model"])):
            yield f"tool_choice: {body['model']} takes auto and none only"


def _problems_in_schema(  # noqa: C901 - a list of rules
    schema: Wire, definitions: Wire, inside: tuple[str, ...]
) -> Iterator[str]:
    where = "output_config.format.schema"
    if unknown := set(schema) - _SCHEMA_KEYS:
        yield f"{where}: property '{min(unknown)}' is not supported"
    if "$ref" in schema:
        name = schema["$ref"].removeprefix("#/$defs/")
        if name in inside:
            yield f"{where}: recursive definition '{name}' is not supported"
        elif name not in definitions:
            yield f"{where}: no definition '{name}'"
        else:
            yield from _problems_in_schema(definitions[name], definitions, (*inside, name))
        return
    if not {"type", "enum", "const", "anyOf", "allOf"} & set(schema):
        yield f"{where}: a type is required"
    if isinstance(schema.get("type"), list):
        yield f"{where}: use anyOf for several types"
    if schema.get("type") == "object" and schema.get("additionalProperties") is not False:
        yield f"{where}: For 'object' type, 'additionalProperties' must be explicitly set to false"
    if schema.get("type") == "array" and "items" not in schema:
        yield f"{where}: an array needs items"
    if schema.get("format", "date") not in _FORMATS or schema.get("minItems", 0) > 1:
        yield f"{where}: format or minItems has an unsupported value"
    parts = [*schema.get("properties", {}).values(), *schema.get("anyOf", ()), *schema.get("allOf", ())]
    for part in [*parts, *([schema["items"]] if "items" in schema else [])]:
        yield from _problems_in_schema(part, definitions, inside)


# --- tools ------------------------------------------------------------------------------------------------------------


def _problems_in_tools(body: Wire) -> Iterator[str]:
    tools = body.get("tools", [])
    names = [tool.get("name") for tool in tools]
    for tool, name in zip(tools, names, strict=True):
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            yield f"tools.name: {name!r} should match '^[a-zA-Z0-9_-]{{1,128}}$'"
        if tool.get("type", "custom") == "custom" and tool.get("input_schema", {}).get("type") != "object":
            yield "tools.input_schema.type: must be 'object'"
    if len(set(names)) < len(names):
        yield "tools: Tool names must be unique."
    choice = body.get("tool_choice")
    if choice is not None and not tools:
        yield "tool_choice: may only be specified while providing tools"
    if choice is not None and choice["type"] == "tool" and choice["name"] not in names:
        yield f"tool_choice: no tool {choice['name']!r}"


# --- messages ---------------------------------------------------------------------------------------------------------


def _problems_in_messages(body: Wire) -> Iterator[str]:
    messages = body.get("messages") or []
    if not messages:
        yield "messages: at least one message is required"
        return
    if messages[0]["role"] != "user":
        yield 'messages: first message must use the "user" role'
    for block in _blocks(body.get("system") or []):
        yield from _problems_in_block(block)
    pending: list[str] = []
    seen_ids: set[str] = set()
    for message in messages:
        blocks = _blocks(message["content"])
        if message["role"] not in ROLES or not blocks:
            yield "messages: a role or a content is missing or not valid"
        for block in blocks:
            yield from _problems_in_block(block)
        yield from _problems_in_results(blocks, pending)
        pending = [block["id"] for block in blocks if block["type"] == "tool_use"]
        if len(set(pending)) < len(pending) or seen_ids & set(pending):
            yield "messages: `tool_use` ids must be unique"
        seen_ids |= set(pending)
        if pending and not body.get("tools"):
            yield "tools: must be defined for requests with `tool_use` blocks"
    if pending:
        yield "messages: `tool_use` ids were found without `tool_result` blocks immediately after"
    yield from _problems_at_the_end(body, messages)


def _problems_in_results(blocks: Sequence[Wire], pending: Sequence[str]) -> Iterator[str]:
    results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
    if sorted(results) != sorted(pending):
        yield "messages: each `tool_result` block must have a corresponding `tool_use` block in the previous message"
    if any(block["type"] != "tool_result" for block in blocks[: len(results)]):
        yield "messages: `tool_result` blocks must come first"


def _problems_at_the_end(body: Wire, messages: Sequence[Wire]) -> Iterator[str]:
    thinks = (body.get("thinking") or {}).get("type") == "enabled"
    last = _blocks(messages[-1]["content"])
    is_paused = last[-1]["type"] not in ("text", "thinking")  # an answer that waits for a server tool
    if messages[-1]["role"] == "assistant" and not is_paused:
        if last[-1].get("text", "").endswith((" ", "\n")):
            yield "messages: final assistant content cannot end with trailing whitespace"
        if thinks or _REFUSES_PREFILL.match(str(body["model"])):
            yield "messages: the conversation must end with a user message"
    if thinks and last[0]["type"] == "tool_result" and _blocks(messages[-2]["content"])[0]["type"] not in _THOUGHTS:
        yield "messages: Expected `thinking` or `redacted_thinking`, but found `tool_use`"


def _blocks(content: object) -> list[Any]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)  # type: ignore[call-overload]


def _problems_in_block(block: Wire) -> Iterator[str]:
    match block["type"]:
        case "text" if not block["text"].strip():
            yield "messages: text content blocks must contain non-whitespace text"
        case "tool_use" if not _ID.fullmatch(block["id"]) or not _NAME.fullmatch(block["name"]):
            yield "messages.tool_use: id and name should match '^[a-zA-Z0-9_-]+$'"
        case "tool_use" if not isinstance(block["input"], dict):
            yield "messages.tool_use.input: must be an object"
        case "tool_result" if not isinstance(block.get("content", ""), str):
            for inner in block["content"]:
                yield from _problems_in_block(inner)
        case "image" if block["source"].get("media_type", "image/png") not in IMAGE_TYPES:
            yield "messages.image.source.media_type: must be 'image/jpeg', 'image/png', 'image/gif' or 'image/webp'"
        case "thinking" if not block.get("signature"):
            yield "messages.thinking.signature: Field required"


def _problems_in_cache_marks(body: Wire) -> Iterator[str]:
    blocks = [*_blocks(body.get("system") or []), *body.get("tools", [])]
    for message in body["messages"]:
        blocks += _blocks(message["content"])
    marked = [block for block in blocks if block.get("cache_control")]
    if len(marked) > MAX_CACHE_MARKS:
        yield f"A maximum of {MAX_CACHE_MARKS} blocks with cache_control may be provided"
    if any(block.get("type") in _THOUGHTS for block in marked):
        yield "cache_control cannot be set for thinking blocks"
