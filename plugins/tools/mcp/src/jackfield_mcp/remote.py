"""Connect to a server at a URL by streamable HTTP, or by SSE for older servers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

from jackfield_mcp.servers import ServerConfig
from jackfield_mcp.wire import Entries, SiftedStream, repair_body

_CONNECT_S = 30.0


class RemoteServer:
    """A connection to a server at a URL.

    Attributes:
        problem: A description of the last rejected request, or '' if there was none.
        ended: Never set. Only a request can show that the URL no longer responds.
        status: The HTTP status of the last rejected request, or 0 if there was none.
        entries: Filters malformed entries out of the server's lists.
    """

    def __init__(self, server: ServerConfig, auth: httpx2.Auth | None = None) -> None:
        self._server = server
        self._auth = auth
        self.entries = Entries()
        self.problem = ""
        self.status = 0
        self.ended = asyncio.Event()

    @asynccontextmanager
    async def streams(self, transport: str) -> AsyncIterator[Any]:
        """Open the message streams. `transport` is `http` or `sse`."""
        server = self._server
        if transport == "sse":
            async with sse_client(
                server.url, sse_read_timeout=server.sse_read_timeout, httpx_client_factory=self._client
            ) as (messages, sending):
                yield SiftedStream(messages, self.entries), sending
            return
        async with (
            self._client() as client,
            streamable_http_client(server.url, http_client=client, max_sse_event_size=server.max_message_bytes) as (
                messages,
                sending,
            ),
        ):
            yield SiftedStream(messages, self.entries), sending

    def _client(self, headers: Any = None, timeout: Any = None, auth: Any = None) -> httpx2.AsyncClient:  # noqa: ARG002 - the SDK's form of such a function
        return httpx2.AsyncClient(
            # A compressed answer could be far larger than its declared size.
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
            self.problem = f"returned HTTP {response.status_code}"

    def output(self) -> str:
        """Return '', because the log of a remote server is not accessible."""
        return ""


class _Bounded(httpx2.AsyncBaseTransport):
    """An HTTP transport that aborts oversized responses and repairs messages that the SDK would fail to parse."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._inner = httpx2.AsyncHTTPTransport()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        response = await self._inner.handle_async_request(request)
        if response.headers.get("content-encoding", "identity") != "identity":
            await response.aclose()
            raise httpx2.DecodingError(
                "the server sent a compressed response despite 'Accept-Encoding: identity'", request=request
            )
        stream: Any = response.stream
        is_events = response.headers.get("content-type", "").startswith("text/event-stream")
        response.stream = _Events(stream, self._most) if is_events else _Body(stream, self._most)
        if not is_events:
            response.headers.pop("content-length", None)  # a repaired body has another length
        return response

    async def aclose(self) -> None:
        await self._inner.aclose()


class _Stream(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream, most: int) -> None:
        self._stream = stream
        self._most = most
        self._pieces: list[bytes] = []
        self._size = 0

    async def aclose(self) -> None:
        await self._stream.aclose()

    def _keep(self, piece: bytes) -> None:
        self._pieces.append(piece)
        self._size += len(piece)

    def _take(self) -> bytes:
        data, self._pieces, self._size = b"".join(self._pieces), [], 0
        return data


class _Body(_Stream):
    """A response body with a single message, buffered as a whole."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._stream:
            self._keep(piece)
            if self._size > self._most:
                raise httpx2.StreamError(f"the response is larger than {self._most} bytes")
        yield repair_body(self._take())


class _Events(_Stream):
    """A stream of server-sent events, forwarded line by line."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._stream:
            lines = []
            for part in piece.splitlines(keepends=True):
                self._keep(part)
                if self._size > self._most:  # the SDK, which reads the line next, reports it
                    lines.append(self._take())
                elif part.endswith((b"\n", b"\r")):
                    lines.append(_repair_line(self._take()))
            if lines:
                yield b"".join(lines)
        yield self._take()


def _repair_line(line: bytes) -> bytes:
    data = line.removeprefix(b"data:")
    if data == line:
        return line
    message = data.rstrip(b"\r\n")
    return b"data:" + repair_body(message) + data[len(message) :]
