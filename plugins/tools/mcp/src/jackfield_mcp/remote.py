"""A server behind an address: streamable HTTP, or SSE as older servers have it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

from jackfield_mcp.servers import ServerConfig

_CONNECT_S = 30.0


class RemoteServer:
    """A server behind an address while it is spoken to.

    Attributes:
        problem: What it last refused; '' if nothing.
        ended: Never set: whether an address still answers is known when it is asked.
        status: The last HTTP status of a refusal; 0 if there was none.
    """

    def __init__(self, server: ServerConfig, auth: httpx2.Auth | None = None) -> None:
        self._server = server
        self._auth = auth
        self.problem = ""
        self.status = 0
        self.ended = asyncio.Event()

    @asynccontextmanager
    async def streams(self, transport: str) -> AsyncIterator[Any]:
        """Its messages, and where to send some; `transport` is `http` or `sse`."""
        server = self._server
        if transport == "sse":
            async with sse_client(
                server.url, sse_read_timeout=server.sse_read_timeout, httpx_client_factory=self._client
            ) as streams:
                yield streams
            return
        async with (
            self._client() as client,
            streamable_http_client(
                server.url, http_client=client, max_sse_event_size=server.max_message_bytes
            ) as streams,
        ):
            yield streams

    def _client(self, headers: Any = None, timeout: Any = None, auth: Any = None) -> httpx2.AsyncClient:  # noqa: ARG002 - the SDK's form of such a function
        return httpx2.AsyncClient(
            # What is compressed could be far more than it says.
            headers={"Accept-Encoding": "identity", **self._server.headers},
            timeout=httpx2.Timeout(_CONNECT_S, read=self._server.sse_read_timeout),
            auth=self._auth,
            transport=_Bounded(self._server.max_message_bytes),
            event_hooks={"response": [self._note]},
        )

    async def _note(self, response: httpx2.Response) -> None:
        # Streams for notifications (GET) are optional; only a request's own answer says why it failed.
        if response.request.method == "POST" and response.status_code >= httpx2.codes.BAD_REQUEST:
            self.status = response.status_code
            self.problem = f"answered HTTP {response.status_code}"

    def told(self) -> str:
        """What it has printed for people: nothing that reaches us."""
        return ""


class _Bounded(httpx2.AsyncBaseTransport):
    """Ends answers that are larger than a message may be. A stream of events has its own bound."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._inner = httpx2.AsyncHTTPTransport()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        response = await self._inner.handle_async_request(request)
        if response.headers.get("content-encoding", "identity") != "identity":
            await response.aclose()
            raise httpx2.DecodingError("the server compressed its answer, which it was asked not to", request=request)
        if not response.headers.get("content-type", "").startswith("text/event-stream"):
            stream: Any = response.stream
            response.stream = _BoundedStream(stream, self._most)
        return response

    async def aclose(self) -> None:
        await self._inner.aclose()


class _BoundedStream(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream, most: int) -> None:
        self._stream = stream
        self._most = most

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for piece in self._stream:
            size += len(piece)
            if size > self._most:
                raise httpx2.StreamError(f"the answer has more than {self._most} bytes")
            yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()
