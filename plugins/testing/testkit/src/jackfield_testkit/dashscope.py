"""Let the fake server speak DashScope's native protocol, with replies and requests in the form of Chat Completions.

```python
with FakeDashScope() as server:
    server.reply(text("hello"))
    ...  # talk to server.url, natively
    assert server.requests[0].json["messages"][0]["content"] == "hi"
    assert server.requests[0].native["parameters"]["incremental_output"] is True
```

Scripted replies and incoming requests are translated, so a test written for Chat Completions can run against a
DashScope backend. Only the standard library is required.

Embeddings work the same way: answers of `jackfield_testkit.embeddings` are translated. Without a script, the server
answers embedding requests itself, and ranking requests by `relevance`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from jackfield_testkit import replies
from jackfield_testkit.dialects import Dialect, object_in
from jackfield_testkit.embeddings import embeddings_of, tokens_in
from jackfield_testkit.replies import RESPONSE_ID, Chunk, Reply, Writer, folded, wire_json
from jackfield_testkit.requests import RecordedRequest
from jackfield_testkit.server import FakeOpenAI

__all__ = ["DashScope", "DashScopeRequest", "FakeDashScope", "relevance"]

_TEXT_PATH = "/services/aigc/text-generation/generation"
_MULTIMODAL_PATH = "/services/aigc/multimodal-generation/generation"
_CHAT_PATH = "/chat/completions"
_EMBEDDING_PATH = "/services/embeddings/text-embedding/text-embedding"
_RERANK_PATH = "/services/rerank/text-rerank/text-rerank"
_PATHS = {
    _TEXT_PATH: _CHAT_PATH,
    _MULTIMODAL_PATH: _CHAT_PATH,
    _EMBEDDING_PATH: "/embeddings",
    _RERANK_PATH: "/rerank",
}
_WORD = re.compile(r"[\u2e80-\uffff]|[^\W_\u2e80-\uffff]+")
_OF_THE_PROTOCOL = ("result_format", "incremental_output")  # parameters of every request

# Chat Completions error codes that a test may use, and DashScope's equivalents.
_CODES = {
    "content_filter": "DataInspectionFailed",
    "context_length_exceeded": "InvalidParameter",
    "invalid_api_key": "InvalidApiKey",
    "rate_limit_exceeded": "Throttling.RateQuota",
}
_CODES_BY_STATUS = {
    400: "InvalidParameter",
    401: "InvalidApiKey",
    403: "AccessDenied",
    404: "ModelNotFound",
    429: "Throttling.RateQuota",
    503: "ServiceUnavailable",
}


@dataclass(frozen=True)
class DashScopeRequest(RecordedRequest):
    """A recorded request; see `RecordedRequest`."""

    @property
    def is_multimodal(self) -> bool:
        """True if the request was sent to the endpoint whose messages are lists of parts."""
        return self.asks_for(_MULTIMODAL_PATH)

    @property
    def wants_usage(self) -> bool:
        """Always True, because DashScope includes usage in every answer."""
        return True

    def asks_for(self, path: str) -> bool:
        """Return True if the request was sent to this path below the base URL."""
        return self.native_path.partition("?")[0].endswith(path)


class DashScope(Dialect):
    """DashScope's native protocol.

    If a request has the `X-DashScope-SSE` header, an error is sent as an event in a response with the error's
    status, as on the real server.
    """

    name = "dashscope"
    base_path = "/api/v1"

    def request(self, arrived: RecordedRequest) -> RecordedRequest:
        known = {field.name: getattr(arrived, field.name) for field in fields(arrived)}
        streams = arrived.headers.get("x-dashscope-sse") == "enable"
        translated = {"json": _chat_request(arrived.native, streams=streams), "path": _chat_path(arrived.native_path)}
        return DashScopeRequest(**{**known, **translated})

    def writer(self, reply: Reply, request: RecordedRequest) -> Writer:
        return _Writer(reply, request.model, multimodal=isinstance(request, DashScopeRequest) and request.is_multimodal)

    def error(self, status: int, problem: Mapping[str, Any], request: RecordedRequest) -> bytes:
        code = problem.get("code") or _CODES_BY_STATUS.get(status, "InternalError")
        said = {"code": _CODES.get(code, code), "message": problem.get("message", ""), "request_id": request.request_id}
        native = wire_json(said)
        return b"id:1\nevent:error\n:HTTP_STATUS/%d\ndata:%b\n\n" % (status, native) if request.streams else native

    def body(self, reply: Reply, request: RecordedRequest) -> Reply:
        """Convert an error or embeddings to DashScope's format. Other bytes are sent unchanged."""
        said = object_in(reply.body or b"")
        if reply.status < 400 and isinstance(said.get("data"), list):
            return replace(reply, body=wire_json({**_native_embeddings(said), "request_id": request.request_id}))
        native = super().body(reply, request)
        if native is reply or not request.streams:
            return native
        return native.written(headers={"Content-Type": "text/event-stream;charset=UTF-8"})

    def list_models(self, names: Sequence[str], query: Mapping[str, str]) -> bytes:
        """Return a page of at most 100 models."""
        number, size = int(query.get("page_no", 1)), min(int(query.get("page_size", 10)), 100)
        page = names[(number - 1) * size : number * size]
        listed = [{"model": name, "provider": "testkit"} for name in page]
        output = {"total": len(names), "page_no": number, "page_size": size, "models": listed}
        return wire_json({"success": True, "request_id": "req_list", "output": output})

    def unscripted(self, request: RecordedRequest) -> Reply | None:
        if not isinstance(request, DashScopeRequest):
            return None
        if request.asks_for(_RERANK_PATH):
            return _ranking(request)
        return embeddings_of(request) if request.asks_for(_EMBEDDING_PATH) else None


class FakeDashScope(FakeOpenAI):
    """Model server that speaks DashScope's protocol. `FakeOpenAI` describes its methods."""

    def __init__(self, *, default: Reply | None = None, models: Sequence[str] = ("test-model",)) -> None:
        super().__init__(default=default, models=models, dialect=DashScope())


# --- requests ---------------------------------------------------------------------------------------------------------


def _chat_path(path: str) -> str:
    native = next((native for native in _PATHS if native in path), None)
    return path.replace(native, _PATHS[native]) if native else path


def _chat_request(native: object, *, streams: bool) -> object:
    """Convert a body to Chat Completions. Fields that DashScope does not define stay unchanged."""
    if not (isinstance(native, dict) and isinstance(native.get("input"), dict)):
        return native
    asked, parameters = native["input"], native.get("parameters", {})
    body = {"model": native.get("model")}
    if "texts" in asked:
        dimension = parameters.get("dimension")
        return {**body, "input": asked["texts"], **({"dimensions": dimension} if dimension else {})}
    if "documents" in asked:
        return {**body, **asked, **parameters}
    body["messages"] = [_chat_message(message) for message in asked.get("messages", ())]
    body |= {key: value for key, value in parameters.items() if key not in _OF_THE_PROTOCOL}
    return {**body, "stream": True} if streams else body


def _chat_message(message: Mapping[str, object]) -> dict[str, object]:
    content = message.get("content")
    if not isinstance(content, list):
        return dict(message)
    return {**message, "content": [_chat_part(part) for part in content]}


def _chat_part(part: Mapping[str, Any]) -> dict[str, object]:
    if "image" in part:
        return {"type": "image_url", "image_url": {"url": part["image"]}}
    if "audio" in part:
        return {"type": "input_audio", "input_audio": _chat_audio(part["audio"])}
    if "video" in part:
        frames = isinstance(part["video"], list)
        return {"type": "video", **part} if frames else {"type": "video_url", "video_url": {"url": part["video"]}}
    return {"type": "text", **part}


def _chat_audio(address: str) -> dict[str, str]:
    head, comma, data = address.partition(";base64,")
    if not (comma and head.startswith("data:audio/")):
        return {"data": address}
    return {"data": data, "format": head.removeprefix("data:audio/")}


# --- replies ----------------------------------------------------------------------------------------------------------


class _Writer(Writer):
    """Writes answers in DashScope's format."""

    malformed = b'id:0\nevent:result\n:HTTP_STATUS/200\ndata:{"output":{"choices":[{"message":{"content":"c\n\n'

    def __init__(self, reply: Reply, model: str, *, multimodal: bool) -> None:
        super().__init__(reply, model)
        self._multimodal = multimodal
        self._number = 0

    def event(self, chunk: Chunk) -> bytes:
        self._number += 1
        if isinstance(chunk, str):
            return self._frame("result", 200, chunk.encode())
        if "error" in chunk:
            problem = chunk["error"]
            native = {"code": problem.get("code"), "message": problem.get("message"), "request_id": "req_in_stream"}
            return self._frame("error", 500, wire_json(native))
        # The usage grows with the answer, so only the last report is correct.
        usage = _usage(self.reply.usage, share=self._number / len(self.reply.chunks))
        return self._frame("result", 200, wire_json(self._answer(chunk.get("choices", ()), "delta", usage)))

    def whole(self) -> bytes:
        message, finish_reason = folded(self.reply.chunks)
        choices = [{"message": message, "finish_reason": finish_reason}]
        return wire_json(self._answer(choices, "message", _usage(self.reply.usage)))

    def _frame(self, kind: str, status: int, data: bytes) -> bytes:
        head = (b"id:%d" % self._number, b"event:" + kind.encode(), b":HTTP_STATUS/%d" % status, b"data:" + data)
        return b"\n".join(head) + b"\n\n"

    def _answer(self, choices: Any, key: str, usage: Mapping[str, Any]) -> dict[str, object]:
        native = [
            {"finish_reason": choice.get("finish_reason") or "null", "message": self._message(choice.get(key) or {})}
            for choice in choices
        ]
        return {"output": {"choices": native}, **usage, **({"request_id": RESPONSE_ID} if self.reply.fill else {})}

    def _message(self, said: Mapping[str, Any]) -> dict[str, object]:
        text = said.get("content") or ""
        message: dict[str, object] = {"role": "assistant", "content": text}
        if self._multimodal:
            message["content"] = [{"text": text}] if text else []
        if reasoning := said.get("reasoning_content") or said.get("reasoning"):
            message["reasoning_content"] = reasoning
        if calls := said.get("tool_calls"):
            message["tool_calls"] = [{"id": "", **call} for call in calls]
        return message


def _usage(usage: Mapping[str, Any] | None, *, share: float = 1.0) -> dict[str, object]:
    if usage is None:
        return {}
    output = int(usage.get("completion_tokens", 0) * share)
    counts: dict[str, object] = {
        "input_tokens": usage.get("prompt_tokens", 0),
        "output_tokens": output,
        "total_tokens": usage.get("prompt_tokens", 0) + output,
    }
    if details := usage.get("prompt_tokens_details"):
        counts["prompt_tokens_details"] = details
    if details := usage.get("completion_tokens_details"):
        counts["output_tokens_details"] = details
    return {"usage": counts}


# --- embeddings and rankings ------------------------------------------------------------------------------------------


def relevance(query: str, document: str) -> float:
    """Return the fraction of the query's words that a document contains, from 0 to 1."""
    wanted = _words(query)
    return len(wanted & _words(document)) / len(wanted) if wanted else 0.0


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.lower()))


def _ranking(request: DashScopeRequest) -> Reply:
    """Rank the documents of a request by relevance, best first."""
    asked = request.json if isinstance(request.json, dict) else {}
    query, documents = asked.get("query"), asked.get("documents")
    if not (query and documents):
        return replies.error(400, "query and documents must not be empty")
    results = [
        {"index": index, "relevance_score": relevance(query, document)} for index, document in enumerate(documents)
    ]
    best = sorted(results, key=lambda result: -result["relevance_score"])[: asked.get("top_n")]
    usage = {"total_tokens": tokens_in([query, *documents])}
    return replies.raw(wire_json({"output": {"results": best}, "usage": usage, "request_id": request.request_id}))


def _native_embeddings(said: Mapping[str, Any]) -> dict[str, object]:
    items = [
        {"text_index": item.get("index"), "embedding": item.get("embedding")} if isinstance(item, dict) else item
        for item in said["data"]
    ]
    return {
        "output": {"embeddings": items},
        "usage": {"total_tokens": (said.get("usage") or {}).get("total_tokens", 0)},
    }
