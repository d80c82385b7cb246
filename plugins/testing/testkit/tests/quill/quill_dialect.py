"""Speak Quill's protocol in place of its servers, so that the whole `LLMBackendSuite` tests the backend."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, ClassVar

from jackfield_testkit.dialects import RESPONSE_ID, Chunk, Dialect, Writer, as_json
from jackfield_testkit.replies import Reply, folded
from jackfield_testkit.requests import RecordedRequest

ROLES = {"house": "system", "guest": "user", "quill": "assistant", "skill": "tool"}
CHOICES = {"may": "auto", "never": "none", "must": "required"}
REASONS = {"stop": "rested", "length": "dry", "tool_calls": "summons", "content_filter": "censored"}
OPTIONS = {"heat": "temperature", "top": "top_p", "ink": "max_tokens"}
CODES = {"context_length_exceeded": "too long", "content_filter": "censored"}


class QuillDialect(Dialect):
    """`POST /v1/pages`, with the key in `x-quill-token`."""

    name = "quill"
    finish_reasons: ClassVar[Mapping[str, str]] = {word: reason for reason, word in REASONS.items()}

    def request(self, arrived: RecordedRequest) -> RecordedRequest:
        headers = dict(arrived.native_headers)
        if "x-quill-token" in headers:
            headers["authorization"] = f"Bearer {headers.pop('x-quill-token')}"
        path = arrived.native_path.removesuffix("/pages") + "/chat/completions"
        return replace(arrived, path=path, headers=headers, json=arrived.native and chat_request(arrived.native))

    def writer(self, reply: Reply, request: RecordedRequest) -> Writer:
        return QuillWriter(reply, request.model)

    def error(self, status: int, problem: Mapping[str, Any], request: RecordedRequest) -> bytes:
        return as_json(snag(problem))


class QuillWriter(Writer):
    """Writes an answer as a stream of objects, or as one page that holds them."""

    malformed = b'data: {"is": "words", "words": "cut o\n\n'

    def event(self, chunk: Chunk) -> bytes:
        if isinstance(chunk, str):
            return b"data: " + chunk.encode() + b"\n\n"
        return b"".join(b"data: " + as_json(line) + b"\n\n" for line in self._lines(chunk))

    def whole(self) -> bytes:
        message, reason = folded(self.reply.chunks)
        chunk = {"choices": [{"delta": message, "finish_reason": reason}]}
        return as_json({"is": "page", "lines": list(self._lines(chunk))})

    def _lines(self, chunk: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        if "is" in chunk:  # an object of this protocol
            yield dict(chunk)
            return
        if "error" in chunk:
            yield {"is": "snag", **snag(chunk["error"])}
            return
        yield {"is": "title", **({"page": RESPONSE_ID, "pen": self.model} if self.reply.fill else {})}
        for choice in chunk["choices"]:
            delta = choice.get("delta") or {}
            yield {"is": "musing", "words": delta.get("reasoning_content") or delta.get("reasoning")}
            yield {"is": "words", "words": delta.get("content")}
            for number, call in enumerate(delta.get("tool_calls") or ()):
                function = call.get("function") or {}
                line = {"is": "summons", "nr": call.get("index", number), "ref": call.get("id")}
                yield {**line, "skill": function.get("name"), "with": function.get("arguments")}
            if reason := choice.get("finish_reason"):
                yield {"is": "end", "why": REASONS.get(reason, reason), **self._bill()}

    def _bill(self) -> dict[str, Any]:
        usage = self.reply.usage
        if usage is None:
            return {}
        known = (usage.get("prompt_tokens_details") or {}).get("cached_tokens")
        mused = (usage.get("completion_tokens_details") or {}).get("reasoning_tokens")
        read, wrote = usage.get("prompt_tokens"), usage.get("completion_tokens")
        return {"bill": {"read": read, "wrote": wrote, "known": known, "mused": mused}}


def snag(problem: Mapping[str, Any]) -> dict[str, Any]:
    """Return an error in Quill's words."""
    code = problem.get("code")
    return {"snag": {"name": CODES.get(str(code), code), "note": problem.get("message")}}


def chat_request(native: Mapping[str, Any]) -> dict[str, Any]:
    """Return a request of Quill as one of Chat Completions."""
    renamed = {"pen": "model", "unfold": "stream", "until": "stop"}
    kept = {renamed.get(key, key): value for key, value in native.items()}
    chat = {key: value for key, value in kept.items() if key not in ("turns", "dials", "skills", "summoning")}
    chat["messages"] = [chat_message(turn) for turn in native["turns"]]
    chat |= {OPTIONS.get(dial, dial): value for dial, value in native.get("dials", {}).items()}
    if "skills" in native:
        chat["tools"] = [{"type": "function", "function": skill} for skill in native["skills"]]
        choice = native["summoning"]
        named = {"type": "function", "function": {"name": choice["skill"]}} if isinstance(choice, dict) else choice
        chat["tool_choice"] = CHOICES.get(str(choice), named)
    return chat


def chat_message(turn: Mapping[str, Any]) -> dict[str, Any]:
    """Return one turn as a message."""
    message: dict[str, Any] = {"role": ROLES[turn["by"]], "content": turn["words"]}
    if "ref" in turn:
        message["tool_call_id"] = turn["ref"]
    if turn.get("summons"):
        message["tool_calls"] = [chat_call(call) for call in turn["summons"]]
    return message


def chat_call(call: Mapping[str, Any]) -> dict[str, Any]:
    """Return one call of a turn."""
    function = {"name": call["skill"], "arguments": json.dumps(call["with"], ensure_ascii=False)}
    return {"id": call["ref"], "type": "function", "function": function}
