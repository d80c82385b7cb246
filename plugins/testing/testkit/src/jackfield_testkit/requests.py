"""Requests recorded by the fake server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class RecordedRequest:
    """A request both as received and in the form of Chat Completions, which tests read.

    For a server that speaks Chat Completions, the two are identical. For other protocols, a `Dialect` translates.

    Attributes:
        number: The number of the request on this server, from 1.
        connection: The number of its connection, from 1.
        path: The translated path.
        headers: The translated headers, with lower-case names.
        body: The bytes received.
        json: The translated body, or None if it is not JSON.
        request_id: The `x-request-id` of the response.
        native: The body as received, or None if it is not JSON.
        native_path: The path as received.
        native_headers: The headers as received, with lower-case names.
    """

    number: int
    connection: int
    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    json: Any
    request_id: str
    native: Any = None
    native_path: str = ""
    native_headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def streams(self) -> bool:
        """True if the request asks for a stream."""
        return isinstance(self.json, Mapping) and self.json.get("stream") is True

    @property
    def wants_usage(self) -> bool:
        """True if the request asks for usage at the end of the stream."""
        options = self.json.get("stream_options") if isinstance(self.json, Mapping) else None
        return isinstance(options, Mapping) and options.get("include_usage") is True

    @property
    def model(self) -> str:
        """The name of the requested model, or '' if there is none."""
        return str(self.json.get("model", "")) if isinstance(self.json, Mapping) else ""
