"""Record requests to the fake server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class RecordedRequest:
    """A request as it arrived, and in the form of Chat Completions, which tests read.

    For a server that speaks Chat Completions the two are the same; for any other its `Dialect` translates.

    Attributes:
        number: The number of the request on this server, from 1.
        connection: The number of its connection, from 1.
        path: Translated.
        headers: Translated; names in lower case.
        body: The bytes that arrived.
        json: The body, translated; None if it is not JSON.
        request_id: The response's `x-request-id`.
        native: The body as it arrived; None if it is not JSON.
        native_path: The path as it arrived.
        native_headers: The headers as they arrived; names in lower case.
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
        """True if a stream is wanted."""
        return isinstance(self.json, Mapping) and self.json.get("stream") is True

    @property
    def wants_usage(self) -> bool:
        """True if the stream is to end with its usage."""
        options = self.json.get("stream_options") if isinstance(self.json, Mapping) else None
        return isinstance(options, Mapping) and options.get("include_usage") is True

    @property
    def model(self) -> str:
        """Name of the requested model; '' if there is none."""
        return str(self.json.get("model", "")) if isinstance(self.json, Mapping) else ""
