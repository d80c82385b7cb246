"""HTTP to one server from one event loop: connections that are kept, over sockets that cost little.

TLS, proxies and HTTP/1.1 itself are httpcore2's. Two parts of it are replaced through its public interfaces, because of
what they cost: its network layer on anyio (half of a short call), and its pool, which looks at every connection for
every request (half of a call beside 200 others).
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, cast
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import httpcore2
import httpx2

CONNECT_TIMEOUT_S = 15.0
KEEPALIVE_S = 4.0  # less than the five seconds after which many servers close an idle connection
REST_S = 1.0
MAX_REST_BYTES = 1_000_000
MAX_KNOWN_URLS = 64
MAX_BUFFERED_BYTES = 1_000_000  # read ahead of a slow consumer


@dataclass(frozen=True, slots=True)
class Route:
    """How a server is reached: its origin, and a proxy or a TLS context where they are needed.

    Attributes:
        origin: Scheme, host and port.
        host: The `Host` header.
    """

    origin: httpcore2.Origin
    host: bytes
    proxy: httpcore2.Proxy | None = field(default=None, repr=False)
    ssl_context: ssl.SSLContext | None = None

    @classmethod
    def to(cls, url: str) -> Route:
        """The route to a URL's server that the environment asks for: `HTTPS_PROXY`, `NO_PROXY`, `SSL_CERT_FILE` …"""
        logging.getLogger("httpcore2.http11").addFilter(_without_headers)
        parts = urlsplit(url)
        proxies = getproxies()
        proxy_url = proxies.get(parts.scheme) or proxies.get("all")
        if proxy_url and proxy_bypass(parts.netloc.rpartition("@")[2]):
            proxy_url = None
        wants_tls = parts.scheme == "https" or (proxy_url or "").startswith("https:")
        return cls(
            origin=httpcore2.URL(url).origin,
            host=parts.netloc.rpartition("@")[2].encode(),
            proxy=_proxy(proxy_url) if proxy_url else None,
            ssl_context=httpx2.create_ssl_context() if wants_tls else None,
        )


def _without_headers(record: logging.LogRecord) -> bool:
    """Take the headers of answers out of the HTTP library's log: a server may have repeated a key in them."""
    if "headers.complete" in str(record.msg):
        record.msg, record.args = str(record.msg).partition(" ")[0], ()
    return True


def _proxy(url: str) -> httpcore2.Proxy:
    proxy = httpx2.Proxy(url if "://" in url else f"http://{url}")
    raw = httpcore2.URL(
        scheme=proxy.url.raw_scheme, host=proxy.url.raw_host, port=proxy.url.port, target=proxy.url.raw_path
    )
    return httpcore2.Proxy(raw, auth=proxy.raw_auth, headers=proxy.headers.raw)


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
                    if len(body) > MAX_REST_BYTES:
                        break
        except (TimeoutError, httpcore2.NetworkError, httpcore2.ProtocolError, httpcore2.TimeoutException):
            return b""
        return bytes(body)


class Connections:
    """Idle connections of one event loop, and new ones without limit. They are closed when the loop ends."""

    def __init__(self, route: Route) -> None:
        self._route = route
        # It only makes connections: it knows which kind a proxy or TLS needs.
        self._factory = httpcore2.AsyncConnectionPool(
            ssl_context=route.ssl_context,
            proxy=route.proxy,
            keepalive_expiry=KEEPALIVE_S,
            network_backend=_AsyncioBackend(),
        )
        self._urls: dict[str, httpcore2.URL] = {}
        self._idle: deque[httpcore2.AsyncConnectionInterface] = deque()
        self._keeper: AsyncGenerator[None, None] | None = None

    @asynccontextmanager
    async def request(
        self, method: str, url: str, body: bytes, headers: Sequence[tuple[bytes, bytes]], *, timeout_s: float
    ) -> AsyncIterator[Response]:
        """Send a request; the answer is there once its headers are. Leaving early closes the connection.

        Raises:
            ValueError: The URL is at another server.
        """
        length = [(b"content-length", b"%d" % len(body))] if body or method != "GET" else []
        request = httpcore2.Request(
            method,
            self._urls.get(url) or self._parsed(url),
            headers=[(b"host", self._route.host), *headers, *length],
            content=body,
            extensions={"timeout": {"connect": min(timeout_s, CONNECT_TIMEOUT_S), "read": timeout_s}},
        )
        connection = await self._take()
        try:
            response = await connection.handle_async_request(request)
            pieces = aiter(cast("AsyncIterable[bytes]", response.stream))
            try:
                yield Response(response.status, _as_text(response.headers), pieces)
            finally:
                if isinstance(pieces, AsyncGenerator):
                    await pieces.aclose()
                await response.aclose()
        finally:
            await self._give_back(connection)

    def _parsed(self, url: str) -> httpcore2.URL:
        parsed = httpcore2.URL(url)
        if parsed.origin != self._route.origin:
            raise ValueError(f"these connections lead to {self._route.origin}, not to {parsed.origin}")
        if len(self._urls) < MAX_KNOWN_URLS:  # a backend has a few; addresses that are made up are not kept
            self._urls[url] = parsed
        return parsed

    async def _take(self) -> httpcore2.AsyncConnectionInterface:
        if self._keeper is None:
            self._keeper = _close_at_the_end(self._idle)
            await anext(self._keeper)
        while self._idle:
            connection = self._idle.pop()
            if not connection.has_expired():
                return connection
            await connection.aclose()
        return self._factory.create_connection(self._route.origin)

    async def _give_back(self, connection: httpcore2.AsyncConnectionInterface) -> None:
        if connection.is_available() and self._keeper is not None:  # not closed meanwhile
            self._idle.append(connection)
        else:
            await connection.aclose()
        while self._idle and self._idle[0].has_expired():
            await self._idle.popleft().aclose()

    async def aclose(self) -> None:
        """Close the idle connections; those in use close when their answers end."""
        if self._keeper is not None:
            await self._keeper.aclose()
            self._keeper = None


async def _close_at_the_end(idle: deque[httpcore2.AsyncConnectionInterface]) -> AsyncGenerator[None, None]:
    """Close connections when this generator is closed, which an event loop does for all generators when it ends.

    It is also closed, on its own loop, when nobody refers to it any more: a forgotten model leaves no socket open.
    """
    try:
        yield
    finally:
        while idle:
            await idle.pop().aclose()


def _as_text(headers: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in headers}


# --- sockets ----------------------------------------------------------------------------------------------------------


class _AsyncioBackend(httpcore2.AsyncNetworkBackend):
    """Connects by asyncio itself."""

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore2's interface
        local_address: str | None = None,  # noqa: ARG002 - as above
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,  # noqa: ARG002 - as above
    ) -> httpcore2.AsyncNetworkStream:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(timeout):
                # Where a name has several addresses, a dead one costs a quarter of a second.
                _, stream = await loop.create_connection(_Socket, host, port, happy_eyeballs_delay=0.25)
        except TimeoutError as error:
            raise httpcore2.ConnectTimeout("no connection in time") from error
        except OSError as error:
            raise httpcore2.ConnectError(str(error)) from error
        return stream

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class _Socket(httpcore2.AsyncNetworkStream, asyncio.Protocol):
    """A connected socket, with or without TLS. One task at a time reads it."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._received = bytearray()
        self._unsent = b""
        self._transport: asyncio.Transport | None = None
        self._reader: asyncio.Future[None] | None = None
        self._silent_at = 0.0  # when the read that waits has waited too long, in the loop's time
        self._alarm: asyncio.TimerHandle | None = None
        self._ended = False
        self._error: Exception | None = None
        self._paused = False

    # Called by the event loop.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._received += data
        if len(self._received) > MAX_BUFFERED_BYTES and not self._paused:
            self._paused = True
            self._connected().pause_reading()
        self._wake()

    def eof_received(self) -> None:
        self._ended = True
        self._wake()

    def connection_lost(self, error: Exception | None) -> None:
        self._ended = True
        self._error = error
        self._stop_alarm()
        self._wake()

    def _wake(self, error: Exception | None = None) -> None:
        reader = self._reader
        if reader is None or reader.done():
            return
        if error is None:
            reader.set_result(None)
        else:
            reader.set_exception(error)

    # Called by httpcore2.

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109 - as above
        if self._unsent:
            self._connected().write(self._unsent)
            self._unsent = b""
        if not self._received and not self._ended:
            await self._more(timeout)
        if not self._received and self._error is not None:
            raise httpcore2.ReadError(str(self._error)) from self._error
        data = bytes(self._received[:max_bytes])
        del self._received[:max_bytes]
        if self._paused and len(self._received) < MAX_BUFFERED_BYTES:
            self._paused = False
            self._connected().resume_reading()
        return data

    async def _more(self, timeout_s: float | None) -> None:
        self._reader = self._loop.create_future()
        if timeout_s is None:
            self._stop_alarm()
        else:
            self._silent_at = self._loop.time() + timeout_s
            # Never late: an alarm set for an earlier read finds out that there is a later one. Setting one for each
            # read costs more than reading.
            if self._alarm is None or self._alarm.when() > self._silent_at:
                self._set_alarm()
        try:
            await self._reader
        finally:
            self._reader = None

    def _set_alarm(self) -> None:
        self._stop_alarm()
        self._alarm = self._loop.call_at(self._silent_at, self._ring)

    def _ring(self) -> None:
        self._alarm = None
        if self._reader is None:
            return
        if self._loop.time() < self._silent_at:
            self._set_alarm()
        else:
            self._wake(httpcore2.ReadTimeout("silence"))

    def _stop_alarm(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ARG002, ASYNC109 - as above
        # Kept until the answer is awaited: headers and body leave in one packet.
        self._unsent += buffer

    async def aclose(self) -> None:
        # Not close(): that waits for unsent data, and with TLS for the other side.
        self._connected().abort()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - as above
    ) -> httpcore2.AsyncNetworkStream:
        try:
            async with asyncio.timeout(timeout):
                self._transport = await self._loop.start_tls(
                    self._connected(), self, ssl_context, server_hostname=server_hostname
                )
        except TimeoutError as error:
            self._connected().abort()
            raise httpcore2.ConnectTimeout("no TLS handshake in time") from error
        except OSError as error:
            self._connected().abort()
            raise httpcore2.ConnectError(str(error)) from error
        return self

    def get_extra_info(self, info: str) -> Any:
        if info == "is_readable":  # asked of idle connections: something to read is the end, or not HTTP
            return self._ended or bool(self._received)
        names = {"client_addr": "sockname", "server_addr": "peername"}
        return self._connected().get_extra_info(names.get(info, info))

    def _connected(self) -> asyncio.Transport:
        if self._transport is None:
            raise httpcore2.ConnectError("the connection was closed while it was made")
        return self._transport
