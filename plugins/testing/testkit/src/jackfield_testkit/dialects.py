"""Dialects, which let the fake server speak other protocols by translating from and to Chat Completions.

Tests script replies and inspect requests in a single form, that of Chat Completions. A dialect translates scripted
replies into the bytes of another protocol, and incoming requests into Chat Completions. This lets a backend for the
other protocol run the whole `LLMBackendSuite`:

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

`jackfield new llm NAME --dialect` generates a skeleton. For complete examples, see `ChatCompletions`,
`jackfield_testkit.dashscope` and `jackfield_testkit.responses`.
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
    """A protocol that can be translated from and to Chat Completions. A single stateless instance serves all requests.

    Attributes:
        name: The protocol's name, used in errors and thread names.
        base_path: The path of a backend's base URL.
        request_id_header: The response header that contains the request id.
        stream_type: The media type of a stream.
        required_options: Options that every request must include, even if the caller did not set them.
        counts_reasoning: True if the protocol reports reasoning tokens separately in its usage.
        finish_reasons: The protocol's finish reasons, mapped to Jackfield's. A scripted reply may use one of these or
            any other, which the writer must send unchanged.
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
        """Convert a request to the form of Chat Completions.

        Replace `json`, `path` (which must end in `/chat/completions`) and `headers` (with the key in `authorization`,
        as `Bearer KEY`). Leave anything that is not part of the protocol unchanged, so that a test looking for it
        fails.

        Args:
            arrived: The request, in which `json` equals `native`, `path` equals `native_path`, and `headers` equals
                `native_headers`.
        """

    @abstractmethod
    def writer(self, reply: Reply, request: RecordedRequest) -> Writer:
        """Create a writer for one answer to a request."""

    @abstractmethod
    def error(self, status: int, problem: Mapping[str, object], request: RecordedRequest) -> bytes:
        """Return the body of an error response.

        Args:
            status: The response status, at least 400.
            problem: `message`, `type` and `code`. The latter two may be None. Send a code without an equivalent in the
                protocol unchanged.
            request: The rejected request.
        """

    def list_models(self, names: Sequence[str], query: Mapping[str, str]) -> bytes:  # noqa: ARG002 - for pages
        """Return the response to `GET …/models` as a single page in OpenAI's format.

        Args:
            names: The model names.
            query: The request's query parameters.
        """
        listed = [{"id": name, "object": "model", "created": 0, "owned_by": "testkit"} for name in names]
        return as_json({"object": "list", "data": listed})

    def body(self, reply: Reply, request: RecordedRequest) -> Reply:
        """Return a reply that is not a model's answer: an error in the protocol's format, or other bytes unchanged."""
        problem = object_in(reply.body or b"").get("error")
        if reply.status < 400 or not isinstance(problem, dict):
            return reply
        return replace(reply, body=self.error(reply.status, problem, request))

    def refuse(self, request: RecordedRequest) -> Reply | None:  # noqa: ARG002 - for a protocol with rules
        """Return an error reply to a request that violates the protocol, or None if the request is valid.

        A rejected request does not consume a scripted reply.
        """
        return None

    def unscripted(self, request: RecordedRequest) -> Reply | None:  # noqa: ARG002 - for subclasses
        """Answer a request after the script has ended, or return None to report that the script is over."""
        return None


class ChatCompletions(Dialect):
    """OpenAI's Chat Completions, which require no translation."""

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
    """Encode server-sent events as one byte string, using each event's `type` as its name."""
    frames = (b"event: " + event["type"].encode() + b"\ndata: " + as_json(event) + b"\n\n" for event in events)
    return b"".join(frames)


def object_in(body: bytes) -> dict[str, object]:
    """Parse a JSON object, or return an empty dict if the bytes are not one."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
