"""HTTP to one server from one event loop, by httpx, which the SDK stands on: bytes out, bytes in."""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

import httpx

CONNECT_TIMEOUT_S = 15.0
KEEPALIVE_S = 4.0  # less than the time after which many servers close an idle connection
REST_S = 1.0


@dataclass(frozen=True, slots=True)
class Response:
    """An HTTP answer, its body not yet read; header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    pieces: AsyncIterator[bytes]

    async def read(self, *, limit: int | None = None) -> bytes:
        """The body, or at most about `limit` bytes of it."""
        body = bytearray()
        async for piece in self.pieces:
            body += piece
            if limit is not None and len(body) >= limit:
                break
        return bytes(body)

    async def rest(self) -> bytes:
        """What follows a complete answer, so that the connection can be used again.

        A server that does not end its response soon, or breaks off, has nothing more to say: the connection is closed.
        """
        body = bytearray()
        try:
            async with asyncio.timeout(REST_S):
                async for piece in self.pieces:
                    body += piece
        except (TimeoutError, httpx.TransportError):
            return b""
        return bytes(body)


class Connections:
    """The connections of one event loop; as many as there are calls at once. They are closed when the loop ends.

    Each is a client of its own: httpx's pool looks at all its connections for every request, which at 200 of them costs
    ten times what the request does.
    """

    def __init__(self, ssl_context: ssl.SSLContext, *, keepalive_s: float = KEEPALIVE_S) -> None:
        self._ssl_context = ssl_context  # shared: making one takes longer than a call
        self._keepalive_s = keepalive_s
        self._idle: deque[tuple[float, httpx.AsyncClient]] = deque()  # since when, in the loop's time; oldest first
        self._keeper: AsyncGenerator[None, None] | None = None

    @asynccontextmanager
    async def post(
        self, url: str, body: bytes, headers: list[tuple[bytes, bytes]], *, timeout_s: float
    ) -> AsyncIterator[Response]:
        """Send a body; the answer is there once its headers are. Leaving early closes the connection."""
        if self._keeper is None:
            self._keeper = _closing_at_the_end(self._idle)
            await anext(self._keeper)
        client = self._take()
        try:
            # Silence is limited, not the length of an answer.
            timeout = httpx.Timeout(timeout_s, connect=min(timeout_s, CONNECT_TIMEOUT_S))
            request = client.build_request("POST", url, content=body, headers=headers, timeout=timeout)
            response = await client.send(request, stream=True, follow_redirects=False)
            try:
                yield Response(response.status_code, response.headers, response.aiter_raw())
            finally:
                await response.aclose()
        except BaseException:
            await client.aclose()
            raise
        await self._give_back(client)

    def _take(self) -> httpx.AsyncClient:
        if self._idle:
            return self._idle.pop()[1]
        # The proxies are those of the environment.
        limits = httpx.Limits(max_connections=1, keepalive_expiry=self._keepalive_s)
        return httpx.AsyncClient(verify=self._ssl_context, limits=limits)

    async def _give_back(self, client: httpx.AsyncClient) -> None:
        now = asyncio.get_running_loop().time()
        if self._keeper is None:  # closed meanwhile
            await client.aclose()
        else:
            self._idle.append((now, client))
        while self._idle and self._idle[0][0] + self._keepalive_s < now:
            await self._idle.popleft()[1].aclose()

    async def aclose(self) -> None:
        """Close the idle ones; those in use close when their answers end."""
        keeper, self._keeper = self._keeper, None
        if keeper is not None:
            await keeper.aclose()


async def _closing_at_the_end(idle: deque[tuple[float, httpx.AsyncClient]]) -> AsyncGenerator[None, None]:
    """Close the clients with this generator, as an event loop does that ends; forgetting it does the same."""
    try:
        yield
    finally:
        while idle:
            await idle.pop()[1].aclose()
