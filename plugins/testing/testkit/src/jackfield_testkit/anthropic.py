"""Translate between Anthropic's Messages protocol and Chat Completions.

Thoughts are sent with `SIGNATURE`, which must be returned unchanged.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from jackfield_testkit.anthropic_rules import problem_in
from jackfield_testkit.dialects import RESPONSE_ID, Chunk, Dialect, Writer, as_json, named_events, object_in
from jackfield_testkit.replies import Reply, error, folded
from jackfield_testkit.requests import RecordedRequest

SIGNATURE = "c2lnbmF0dXJl+/=="
Wire = dict[str, Any]
_REASONS = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use", "content_filter": "refusal"}
_CHOICES = {"auto": "auto", "none": "none", "any": "required"}
_TYPES = {400: "invalid_request_error", 401: "authentication_error", 403: "permission_error", 404: "not_found_error"}
_TYPES |= {429: "rate_limit_error", 529: "overloaded_error"}
# Equivalents of Chat Completions error codes: a type, and the start of the message.
_CODES = {
    "context_length_exceeded": ("invalid_request_error", "prompt is too long: "),
    "content_filter": ("invalid_request_error", "Output blocked by content filtering policy: "),
    "invalid_api_key": ("authentication_error", ""),
}


class AnthropicMessages(Dialect):
    """`POST /v1/messages`, with an `anthropic-version` header and the key in `x-api-key`."""

    name = "anthropic"
    request_id_header = "request-id"
    required_options: ClassVar[frozenset[str]] = frozenset({"max_tokens"})
    finish_reasons: ClassVar[Mapping[str, str]] = {
        "end_turn": "stop",
        "stop_sequence": "stop",
        "max_tokens": "length",
        "model_context_window_exceeded": "length",
        "tool_use": "tool_calls",
        "refusal": "content_filter",
    }

    def request(self, arrived: RecordedRequest) -> RecordedRequest:
        headers = dict(arrived.native_headers)
        if not (arrived.native_path.endswith("/v1/messages") and "anthropic-version" in headers and arrived.native):
            return arrived
        if "x-api-key" in headers:
            headers["authorization"] = f"Bearer {headers.pop('x-api-key')}"
        path = arrived.native_path.removesuffix("/messages") + "/chat/completions"
        return replace(arrived, path=path, headers=headers, json=_chat_request(arrived.native))

    def refuse(self, request: RecordedRequest) -> Reply | None:
        """Reject the requests that the provider's servers reject; see `anthropic_rules`."""
        if not request.native_path.endswith("/v1/messages") or not isinstance(request.native, dict):
            return None
        problem = problem_in(request.native)
        return error(400, problem, code="invalid_request_error") if problem else None

    def writer(self, reply: Reply, request: RecordedRequest) -> Writer:
        return _Writer(reply, request.model)

    def list_models(self, names: Sequence[str], query: Mapping[str, str]) -> bytes:
        """Return a page of models, with at most 100 or the `limit` in the query."""
        after = query.get("after_id", "")
        rest = names[list(names).index(after) + 1 :] if after in names else names
        page = rest[: min(int(query.get("limit", 20)), 100)]
        listed = [{"type": "model", "id": name, "display_name": name} for name in page]
        ends = {"first_id": page[0], "last_id": page[-1]} if page else {"first_id": None, "last_id": None}
        return as_json({"data": listed, "has_more": len(page) < len(rest), **ends})

    def error(self, status: int, problem: Mapping[str, object], request: RecordedRequest) -> bytes:
        return as_json({**_error(problem, _TYPES.get(status, "api_error")), "request_id": request.request_id})


def _error(problem: Mapping[str, object], otherwise: str) -> Wire:
    kind, before = _CODES.get(str(problem.get("code")), (problem.get("code") or otherwise, ""))
    return {"type": "error", "error": {"type": kind, "message": f"{before}{problem.get('message')}"}}


def _chat_request(native: Wire) -> Wire:
    renamed = {"stop_sequences": "stop"}
    body = {renamed.get(key, key): value for key, value in native.items() if key != "system"}
    system = [{"role": "system", "content": _chat_content(native["system"])}] if "system" in native else []
    body["messages"] = system + [said for message in native["messages"] for said in _chat_messages(message)]
    if "tools" in native:
        body["tools"] = [{"type": "function", "function": _chat_tool(tool)} for tool in native["tools"]]
    if choice := native.get("tool_choice"):
        named = {"type": "function", "function": {"name": choice.get("name")}}
        body["tool_choice"] = _CHOICES.get(choice["type"], named)
    return body


def _chat_tool(tool: Mapping[str, object]) -> Wire:
    return {"parameters" if key == "input_schema" else key: value for key, value in tool.items()}


def _chat_messages(message: Mapping[str, Any]) -> list[Wire]:
    results: list[Wire] = []
    calls: list[Wire] = []
    said = message["content"]
    for block in [] if isinstance(said, str) else said:
        if block["type"] == "tool_result":
            content = _chat_content(block.get("content", ""))
            results.append({"role": "tool", "tool_call_id": block["tool_use_id"], "content": content})
        elif block["type"] == "tool_use":
            function = {"name": block["name"], "arguments": json.dumps(block["input"], ensure_ascii=False)}
            calls.append({"id": block["id"], "type": "function", "function": function})
    chat = {"role": message["role"], "content": _chat_content(said)}
    if calls:
        return [{**chat, "tool_calls": calls}]
    return [*results, chat] if chat["content"] or not results else results


def _chat_content(content: Any) -> object:
    if isinstance(content, str):
        return content
    return [_chat_part(block) for block in content if block["type"] in ("text", "image", "document")]


def _chat_part(block: Mapping[str, Any]) -> Wire:
    if block["type"] == "text":
        return dict(block)
    source = block["source"]
    url = source["url"] if source["type"] == "url" else f"data:{source['media_type']};base64,{source['data']}"
    if block["type"] == "document":
        return {"type": "file", "file": {"filename": block.get("title", ""), "file_data": url}}
    return {"type": "image_url", "image_url": {"url": url}}


class _Writer(Writer):
    def __init__(self, reply: Reply, model: str) -> None:
        super().__init__(reply, model)
        self._began = False
        self._blocks = 0  # the index is the block's position in the whole answer
        self._open: dict[object, int] = {}  # blocks: the text, the thought, and each call by its index

    def event(self, chunk: Chunk) -> bytes:
        return b"data: " + chunk.encode() + b"\n\n" if isinstance(chunk, str) else named_events(self._events(chunk))

    def done(self) -> bytes:
        return named_events([{"type": "message_stop"}])

    def whole(self) -> bytes:
        said, reason = folded(self.reply.chunks)
        thought = said.get("reasoning_content") or said.get("reasoning")
        blocks = [{"type": "thinking", "thinking": thought, "signature": SIGNATURE}] if thought else []
        blocks += [{"type": "text", "text": said["content"]}] if said["content"] else []
        blocks += [_call(call, object_in((call["function"]["arguments"] or "{}").encode())) for call in _calls(said)]
        return as_json({**self._message(), "content": blocks, "stop_reason": _REASONS.get(reason or "", reason)})

    def _events(self, chunk: Mapping[str, Any]) -> Iterable[Wire]:
        if "type" in chunk:  # an event of this protocol
            yield dict(chunk)
        elif "error" in chunk:
            yield _error(chunk["error"], "api_error")
        else:
            yield {"type": "ping"} if self._began else {"type": "message_start", "message": self._message()}
            self._began = True
            for choice in chunk["choices"]:
                yield from self._said(choice.get("delta") or {})
                if reason := choice.get("finish_reason"):
                    yield from self._ended(reason)

    def _ended(self, reason: str) -> Iterable[Wire]:
        yield from self._stop(list(self._open))
        usage = {key: value for key, value in self._message().items() if key == "usage"}
        yield {"type": "message_delta", "delta": {"stop_reason": _REASONS.get(reason, reason)}, **usage}

    def _said(self, delta: Mapping[str, Any]) -> Iterable[Wire]:
        yield from self._more("thinking", "thinking", delta.get("reasoning_content") or delta.get("reasoning"))
        yield from self._more("text", "text", delta.get("content"))
        for call in _calls(delta):
            arguments = call["function"].get("arguments") or ""
            yield from self._more(call["index"], "partial_json", arguments, _call(call, {}))

    def _more(self, key: object, field: str, text: str | None, call: Wire | None = None) -> Iterable[Wire]:
        if key not in self._open and (text or call):
            yield from self._stop([other for other in self._open if isinstance(other, str)])
            self._open[key] = self._blocks
            self._blocks += 1
            block = call or _empty(field)
            yield {"type": "content_block_start", "index": self._open[key], "content_block": block}
        if text:
            kind = "input_json_delta" if call else f"{field}_delta"
            yield {"type": "content_block_delta", "index": self._open[key], "delta": {"type": kind, field: text}}

    def _stop(self, keys: list[object]) -> Iterable[Wire]:
        for key in keys:
            index = self._open.pop(key)
            if key == "thinking":
                signed = {"type": "signature_delta", "signature": SIGNATURE}
                yield {"type": "content_block_delta", "index": index, "delta": signed}
            yield {"type": "content_block_stop", "index": index}

    def _message(self) -> Wire:
        said = {"id": RESPONSE_ID, "model": self.model} if self.reply.fill else {}
        message = {**said, "type": "message", "role": "assistant", "content": []}
        usage = self.reply.usage
        if usage is None:
            return message
        cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens", 0)
        counts = {"input_tokens": usage["prompt_tokens"] - cached, "cache_read_input_tokens": cached}
        thought = (usage.get("completion_tokens_details") or {}).get("reasoning_tokens")
        details = {} if thought is None else {"output_tokens_details": {"thinking_tokens": thought}}
        return {**message, "usage": {**counts, "output_tokens": usage["completion_tokens"], **details}}


def _empty(kind: str) -> Wire:
    return {"type": kind, kind: "", "signature": ""} if kind == "thinking" else {"type": kind, kind: ""}


def _calls(said: Mapping[str, Any]) -> list[Any]:
    return said.get("tool_calls") or []


def _call(call: Mapping[str, Any], arguments: Wire) -> Wire:
    given = {"id": call["id"]} if call.get("id") else {}
    return {"type": "tool_use", **given, "name": call["function"].get("name"), "input": arguments}
