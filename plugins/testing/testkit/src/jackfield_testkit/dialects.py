"""Translate between Chat Completions and other protocols, so that the fake server can speak them; each is a `Dialect`.

Tests script replies and inspect requests in one form, that of Chat Completions. A dialect translates scripted replies
into the bytes of another protocol, and arriving requests into that form, so that a backend for the other protocol runs
the whole `LLMBackendSuite`:

```python
from jackfield_testkit.dialects import Dialect, Writer, as_json
from jackfield_testkit.requests import RecordedRequest


class EchoWriter(Writer):
    def event(self, chunk):
        return b"data: " + as_json(chunk) + b"\\n\\n"

    def whole(self):
        return as_json({"said": [as_json(chunk).decode() for chunk in self.reply.chunks]})


class Echo(Dialect):
    name = "echo"

    def request(self, arrived):
        return arrived

    def writer(self, reply, request):
        return EchoWriter(reply, request.model)

    def error(self, status, problem, request):
        return as_json({"failed": problem["message"]})
```

`jackfield new llm NAME --dialect` writes the frame of one. `ChatCompletions`, `jackfield_testkit.dashscope` and
`jackfield_testkit.responses` are examples.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from jackfield_testkit.replies import RESPONSE_ID, ChatWriter, Chunk, Reply, Writer
from jackfield_testkit.replies import wire_json as as_json
from jackfield_testkit.requests import RecordedRequest

__all__ = ["RESPONSE_ID", "ChatCompletions", "Chunk", "Dialect", "Writer", "as_json", "named_events", "object_in"]


class Dialect(ABC):
    """A protocol, seen from Chat Completions. It holds no state: one serves all requests of a server.

    Attributes:
        name: The protocol's name in errors and threads.
        base_path: Path of a backend's base URL, after host and port.
        request_id_header: The header of a response that names its request.
        stream_type: The media type of a stream.
        required_options: Options that each request of the protocol has, set by the caller or not.
        counts_reasoning: True if its usage says how many tokens were reasoning.
        finish_reasons: The protocol's words for the reasons why an answer ends, and Jackfield's word for each. A
            scripted reply may end with one of them, or with any other, which the writer must send unchanged.
    """

    name: ClassVar[str]
    base_path: ClassVar[str] = "/v1"
    request_id_header: ClassVar[str] = "x-request-id"
    stream_type: ClassVar[str] = "text/event-stream; charset=utf-8"
    required_options: ClassVar[frozenset[str]] = frozenset()
    counts_reasoning: ClassVar[bool] = True
    finish_reasons: ClassVar[Mapping[str, str]] = {
        "stop": "stop",
        "length": "length",
        "tool_calls": "tool_calls",
        "content_filter": "content_filter",
    }

    @abstractmethod
    def request(self, arrived: RecordedRequest) -> RecordedRequest:
        """Return a request in the form of Chat Completions.

        Replace `json`, `path` (which ends in `/chat/completions`) and `headers` (the key is in `authorization`, as
        `Bearer KEY`). Anything that is not part of the protocol stays unchanged, so that a test that looks for it
        fails.

        Args:
            arrived: The request, in which `json` equals `native`, `path` equals `native_path`, and `headers` equals
                `native_headers`.
        """

    @abstractmethod
    def writer(self, reply: Reply, request: RecordedRequest) -> Writer:
        """Return a new writer for this answer to this request."""

    @abstractmethod
    def error(self, status: int, problem: Mapping[str, object], request: RecordedRequest) -> bytes:
        """Return the body of a refusal.

        Args:
            status: The status of the response, at least 400.
            problem: `message`, `type` and `code`; the latter two may be None. Keep a code without an equivalent in the
                protocol unchanged.
            request: The refused request.
        """

    def list_models(self, names: Sequence[str], query: Mapping[str, str]) -> bytes:  # noqa: ARG002 - for pages
        """Return the answer to `GET …/models` in OpenAI's form, on one page.

        Args:
            names: The names of the models.
            query: The parameters of the request.
        """
        listed = [{"id": name, "object": "model", "created": 0, "owned_by": "testkit"} for name in names]
        return as_json({"object": "list", "data": listed})

    def body(self, reply: Reply, request: RecordedRequest) -> Reply:
        """Return a reply that is not a model's answer: an error in the protocol's form, any other bytes unchanged."""
        problem = object_in(reply.body or b"").get("error")
        if reply.status < 400 or not isinstance(problem, dict):
            return reply
        return replace(reply, body=self.error(reply.status, problem, request))

    def refuse(self, request: RecordedRequest) -> Reply | None:  # noqa: ARG002 - for a protocol with rules
        """Return the reply to a request that breaks a rule of the protocol; None if it breaks none.

        The script keeps its next reply.
        """
        return None

    def unscripted(self, request: RecordedRequest) -> Reply | None:  # noqa: ARG002 - for who overrides it
        """Return the answer to a request outside the script; None to report that the script is over."""
        return None


class ChatCompletions(Dialect):
    """OpenAI's Chat Completions: nothing is translated."""

    name = "openai"

    def request(self, arrived: RecordedRequest) -> RecordedRequest:
        return arrived

    def writer(self, reply: Reply, request: RecordedRequest) -> Writer:
        return ChatWriter(reply, request.model, with_usage=request.wants_usage)

    def error(self, status: int, problem: Mapping[str, object], request: RecordedRequest) -> bytes:  # noqa: ARG002
        return as_json({"error": problem})

    def body(self, reply: Reply, request: RecordedRequest) -> Reply:  # noqa: ARG002 - as in Dialect
        return reply


def named_events(events: Iterable[Mapping[str, Any]]) -> bytes:
    """Return server-sent events as one piece, each with its `type` as its name."""
    frames = (b"event: " + event["type"].encode() + b"\ndata: " + as_json(event) + b"\n\n" for event in events)
    return b"".join(frames)


def object_in(body: bytes) -> dict[str, object]:
    """Return the JSON object in these bytes, empty if they are not one."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
