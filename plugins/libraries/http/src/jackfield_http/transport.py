"""Low-overhead HTTP to one server from one event loop, with connection reuse.

TLS, proxies and HTTP/1.1 itself come from httpcore2. Two of its parts are replaced through its public interfaces
because of their cost: the anyio network layer (half of a short call), and the connection pool, which examines every
connection for every request (half of a call beside 200 others).
"""

from __future__ import annotations

import asyncio
import logging
import math
import select
import socket
import ssl
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast
from urllib.parse import urlsplit

import httpcore2

from jackfield.errors import ConfigError
from jackfield_http.addresses import proxy_for
from jackfield_http.sse import PATIENCE

CONNECT_TIMEOUT_S = 15.0
KEEPALIVE_S = 4.0  # less than the five seconds after which many servers close an idle connection
REST_S = 1.0
GRACE_S = 0.1  # for a connection that is about to be free; a new one to another continent costs as much
MAX_REST_BYTES = 1_000_000
MAX_KNOWN_URLS = 64
MAX_BUFFERED_BYTES = 1_000_000  # read ahead of a slow consumer
MAX_HEAD_BYTES = 256 * 1024  # of headers, with all interim answers (`100 Continue`) before them
MAX_PARTS = 1024
"""The maximum number of chunks, header lines and events per read, since each costs far more than its bytes."""
_MARKS = (b"\r\n", b"data:")  # each part has one of them

_log = logging.getLogger(__name__)
_LAST_CHUNK = b"\r\n0"  # the beginning of its first line, after the end of another chunk or of the headers
_JSON = "application/json"
_LAST_BYTES = b"0\r\n\r\n"


class NoAnswerError(httpcore2.ReadError):
    """The connection ended, or became unusable, before the first byte of a response."""


@dataclass(frozen=True, slots=True)
class Route:
    """The route to a server: its origin, and a proxy or TLS context if needed.

    Attributes:
        origin: The scheme, host and port.
        host: The `Host` header.
    """

    origin: httpcore2.Origin
    host: bytes
    proxy: httpcore2.Proxy | None = field(default=None, repr=False)
    ssl_context: ssl.SSLContext | None = None

    @classmethod
    def to(cls, url: str) -> Route:
        """Return the route to a URL's server, using the environment: `HTTPS_PROXY`, `NO_PROXY`, `SSL_CERT_FILE` …

        Raises:
            ConfigError: The proxy or the certificates cannot be used.
        """
        logging.getLogger("httpcore2.http11").addFilter(_without_headers)
        parts = urlsplit(url)
        proxy_url = proxy_for(url)
        wants_tls = parts.scheme == "https" or (proxy_url or "").startswith("https:")
        return cls(
            origin=httpcore2.URL(url).origin,
            host=parts.netloc.rpartition("@")[2].encode(),
            proxy=_proxy(proxy_url) if proxy_url else None,
            ssl_context=_ssl_context() if wants_tls else None,
        )


def _without_headers(record: logging.LogRecord) -> bool:
    """Keep response headers out of the HTTP library's log, because a server may have echoed a key in them."""
    if "headers.complete" in str(record.msg):
        record.msg, record.args = str(record.msg).partition(" ")[0], ()
    return True


def _ssl_context() -> ssl.SSLContext:
    try:
        return httpcore2.default_ssl_context()
    except (OSError, ValueError) as error:  # those of TLS are OSErrors
        raise ConfigError(
            f"the certificates cannot be loaded ({type(error).__name__}): check SSL_CERT_FILE and SSL_CERT_DIR"
        ) from error


def _proxy(url: str) -> httpcore2.Proxy:
    import httpx2  # here, because without a proxy nothing needs it: it takes as long to load as the rest of this module

    try:
        proxy = httpx2.Proxy(url)
    except (ValueError, httpx2.InvalidURL):
        # Without the cause: it may show the password.
        raise ConfigError("the proxy in the environment has an invalid URL: use http://host:port") from None
    raw = httpcore2.URL(
        scheme=proxy.url.raw_scheme, host=proxy.url.raw_host, port=proxy.url.port, target=proxy.url.raw_path
    )
    return httpcore2.Proxy(raw, auth=proxy.raw_auth, headers=proxy.headers.raw)


@dataclass(slots=True)
class Response:
    """An HTTP response with an unread body. Header names are lowercase."""

    status: int
    headers: Mapping[str, str]
    pieces: AsyncIterator[bytes]
    is_released: bool = field(default=False, init=False)

    def release(self) -> None:
        """Declare that everything relevant has been read, so that the connection can be reused.

        The caller does not wait for the response to end. A server that holds it open, as some do after `[DONE]`, has
        one more second in the background before the connection is closed.
        """
        self.is_released = True

    async def read(self, *, limit: int | None = None) -> bytes:
        """Return the body, or roughly its first `limit` bytes."""
        body = bytearray()
        async for piece in self.pieces:
            body += piece
            if limit is not None and len(body) >= limit:
                break
        return bytes(body)

    async def rest(self) -> bytes:
        """Read the rest of a response, so that the connection can be reused.

        If nothing can follow, prefer `release`, which does not wait. If the server breaks off or does not end its
        response soon, its connection is closed.
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
    """A pool of connections to a server for one event loop, without a size limit. Closed when the loop ends.

    A server may close an idle connection at any time. So a connection is checked before it is reused, and if it still
    ends before the first byte of a response, the request is sent again on a new one (RFC 9112, section 9.3.1).
    """

    def __init__(self, route: Route) -> None:
        self._route = route
        # Used only to create connections, because it knows which class a proxy or TLS needs.
        self._factory = httpcore2.AsyncConnectionPool(
            ssl_context=route.ssl_context,
            proxy=route.proxy,
            keepalive_expiry=KEEPALIVE_S,
            network_backend=_AsyncioBackend(),
        )
        self._urls: dict[str, httpcore2.URL] = {}
        self._idle: deque[httpcore2.AsyncConnectionInterface] = deque()
        self._keeper: AsyncGenerator[None, None] | None = None
        self._finishing: set[asyncio.Task[None]] = set()
        self._holds_open = False  # True if the last wait for a connection to become free was in vain

    async def send(
        self, method: str, url: str, body: bytes, headers: Sequence[tuple[bytes, bytes]], *, timeout_s: float
    ) -> Answering:
        """Send a request and wait for the response headers. Must be followed by `finish`.

        Raises:
            ValueError: The URL is on another server.
        """
        length = [(b"content-length", b"%d" % len(body))] if body or method != "GET" else []
        request = httpcore2.Request(
            method,
            self._urls.get(url) or self._parsed(url),
            headers=[(b"host", self._route.host), *headers, *length],
            content=body,
            extensions={"timeout": {"connect": min(timeout_s, CONNECT_TIMEOUT_S), "read": timeout_s}},
        )
        connection, is_kept = await self._take()
        try:
            response = await connection.handle_async_request(request)  # closes the connection if it fails
        except NoAnswerError as error:
            if not is_kept:
                raise
            _log.debug("a reused connection to %s was closed (%s): retrying on a new one", self._route.origin, error)
            connection = self._factory.create_connection(self._route.origin)
            response = await connection.handle_async_request(request)
        return Answering(connection, response)

    async def finish(self, answering: Answering) -> None:
        """Keep the connection if the whole response has been read, or soon will be. Otherwise close it."""
        is_released = answering.answer.is_released
        if is_released and answering.may_wait():
            task = asyncio.ensure_future(self._finish_later(answering))
            self._finishing.add(task)
            task.add_done_callback(self._finishing.discard)
            return
        try:
            await answering.aclose(read_on=is_released)
        finally:
            await self._give_back(answering.connection)

    async def _finish_later(self, answering: Answering) -> None:
        try:
            async with asyncio.timeout(REST_S):
                await answering.aclose(read_on=True)
            self._holds_open = False
        except TimeoutError:
            self._holds_open = True
        finally:
            await self._give_back(answering.connection)

    def _parsed(self, url: str) -> httpcore2.URL:
        parsed = httpcore2.URL(url)
        if parsed.origin != self._route.origin:
            raise ValueError(f"these connections lead to {self._route.origin}, not to {parsed.origin}")
        if len(self._urls) < MAX_KNOWN_URLS:  # a backend has a few; generated URLs are not all stored
            self._urls[url] = parsed
        return parsed

    async def _take(self) -> tuple[httpcore2.AsyncConnectionInterface, bool]:
        """Return a connection, and True if it was used before."""
        if self._keeper is None:
            self._keeper = _close_at_the_end(self._idle)
            await anext(self._keeper)
        if not self._idle and self._finishing and not self._holds_open:
            done, _ = await asyncio.wait(self._finishing, timeout=GRACE_S, return_when=asyncio.FIRST_COMPLETED)
            self._holds_open = not done
        while self._idle:
            connection = self._idle.pop()
            if not connection.has_expired():
                return connection, True
            await connection.aclose()
        return self._factory.create_connection(self._route.origin), False

    async def _give_back(self, connection: httpcore2.AsyncConnectionInterface) -> None:
        while self._idle and self._idle[0].has_expired():
            await self._idle.popleft().aclose()
        if connection.is_available() and self._keeper is not None:  # not closed meanwhile
            self._idle.append(connection)  # at the end, because it was just in use; it is checked when taken
        else:
            await connection.aclose()

    async def aclose(self) -> None:
        """Close the idle connections. Those in use close when their responses end."""
        if self._keeper is not None:
            await self._keeper.aclose()
            self._keeper = None
        for task in self._finishing:
            task.cancel()
        if self._finishing:
            await asyncio.wait(self._finishing)


class Answering:
    """A connection on which a response is arriving.

    Attributes:
        connection: The connection.
        answer: The response, for its reader.
    """

    def __init__(self, connection: httpcore2.AsyncConnectionInterface, response: httpcore2.Response) -> None:
        self.connection = connection
        self._response = response
        self._pieces = aiter(cast("AsyncIterable[bytes]", response.stream))
        self._socket = cast("_Socket", response.extensions["network_stream"])
        headers = _as_text(response.headers)
        self.answer = Response(response.status, headers, self._pieces)
        self._socket.expect(
            chunks=headers.get("transfer-encoding") == "chunked",  # in lower case: h11 normalizes it
            stream=response.status == 200 and not headers.get("content-type", "").startswith(_JSON),
        )

    def may_wait(self) -> bool:
        """Return True if the next read may wait for the server."""
        return not self._socket.is_at_end

    async def aclose(self, *, read_on: bool = False) -> None:
        """Close the response, along with its connection unless the whole response was read."""
        try:
            if read_on:
                await self._read_on()
        finally:
            if isinstance(self._pieces, AsyncGenerator):
                await self._pieces.aclose()
            await self._response.aclose()

    async def _read_on(self) -> None:
        size = 0
        try:
            async for piece in self._pieces:
                size += len(piece)
                if size > MAX_REST_BYTES:
                    return
        except (httpcore2.NetworkError, httpcore2.ProtocolError, httpcore2.TimeoutException):
            return


async def _close_at_the_end(idle: deque[httpcore2.AsyncConnectionInterface]) -> AsyncGenerator[None, None]:
    """Close connections when this generator is closed, which an event loop does with all generators when it ends.

    The generator is also closed, on its own loop, once it is no longer referenced, so a forgotten model leaves no open
    sockets.
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
    """Connects using asyncio directly."""

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
                # If a name has several addresses, a dead one costs a quarter of a second.
                _, stream = await loop.create_connection(_Socket, host, port, happy_eyeballs_delay=0.25)
        except TimeoutError as error:
            raise httpcore2.ConnectTimeout("connection timed out") from error
        except (OSError, ValueError, OverflowError) as error:  # the latter two for impossible names and ports
            raise httpcore2.ConnectError(str(error)) from error
        return stream

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class _Socket(httpcore2.AsyncNetworkStream, asyncio.Protocol):
    """A connected socket, with or without TLS, for one reading task at a time."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._received = bytearray()
        self._tail = b""  # the last bytes that were read
        self._is_chunked = False  # True once the response is known to come in chunks
        self._may_end = False  # True once the last chunk may have begun
        self._unsent = b""
        self._was_sent = False  # True once anything was sent
        self._heard = False  # True if anything was received since the last send
        self._transport: asyncio.Transport | None = None
        self._reader: asyncio.Future[None] | None = None
        self._answer_by = math.inf  # the deadline for a response that is not a stream, in the loop's time
        self._silent_at = 0.0  # the deadline of the pending read, in the loop's time
        self._alarm: asyncio.TimerHandle | None = None
        self._head_bytes = 0
        self._has_head = False  # True once the response headers have arrived
        self._is_crowded = False  # True if the last read left parts behind
        self._ended = False
        self._error: Exception | None = None
        self._paused = False
        self._watch: _Watch | None = None

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
            self._send(timeout)
        if not self._received and not self._ended:
            await self._more(timeout)
        elif self._is_crowded:
            await asyncio.sleep(0)
        if not self._received:
            return self._nothing_more()
        self._heard = True
        size = self._size_of_next(max_bytes)
        data = bytes(self._received[:size])
        self._is_crowded = False
        if size > MAX_PARTS:
            for mark in _MARKS:
                parts = data.split(mark, MAX_PARTS)
                if len(parts) > MAX_PARTS:
                    self._is_crowded = True
                    data = data[: len(data) - len(parts[-1])]
            size = len(data)
        if not self._has_head:
            self._count_head(size)
        self._tail = (self._tail + data[-4:])[-4:]
        del self._received[:size]
        if self._paused and len(self._received) < MAX_BUFFERED_BYTES:
            self._paused = False
            self._connected().resume_reading()
        return data

    def _size_of_next(self, max_bytes: int) -> int:
        """Return the size of the next read.

        Where a response may end, its last byte is reserved for a separate read. Data after the end is therefore never
        returned in full, and `is_readable` detects it. Otherwise httpcore2 would mistake it for the beginning of the
        next response.
        """
        if not self._may_end:
            across = self._tail[-2:] + self._received[:2]
            self._may_end = _LAST_CHUNK in across or self._received.find(_LAST_CHUNK, 0, max_bytes) >= 0
        if self._is_chunked and not self._may_end:
            return max_bytes
        return min(max_bytes, len(self._received) - 1) or 1

    def _send(self, timeout_s: float | None) -> None:
        if self._was_sent and self._received:
            raise NoAnswerError("the server sent something without a request")
        self._connected().write(self._unsent)
        self._unsent = b""
        self._was_sent = True
        self._heard = self._is_chunked = self._may_end = self._has_head = False
        self._head_bytes = 0
        self._answer_by = math.inf if timeout_s is None else self._loop.time() + PATIENCE * timeout_s

    def _count_head(self, size: int) -> None:
        self._head_bytes += size
        if self._head_bytes > MAX_HEAD_BYTES:
            raise httpcore2.RemoteProtocolError(f"sent more than {MAX_HEAD_BYTES:,} bytes of headers")

    def _nothing_more(self) -> bytes:
        if not self._heard:
            raise NoAnswerError(str(self._error or "it closed without a response")) from self._error
        if self._error is not None:
            raise httpcore2.ReadError(str(self._error)) from self._error
        return b""

    async def _more(self, timeout_s: float | None) -> None:
        self._reader = self._loop.create_future()
        if timeout_s is None:
            self._stop_alarm()
        else:
            now = self._loop.time()
            if now > self._answer_by:
                self._reader = None
                raise httpcore2.ReadTimeout(f"did not finish its response in {PATIENCE * timeout_s:g} s")
            self._silent_at = now + timeout_s
            # Never late: an alarm set for an earlier read notices that the deadline has moved. Setting one per read
            # would cost more than reading.
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
            self._wake(httpcore2.ReadTimeout())

    def _stop_alarm(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ARG002, ASYNC109 - as above
        # Buffered until the response is awaited, so that headers and body leave in one packet.
        self._unsent += buffer

    async def aclose(self) -> None:
        # Not close(), which waits for unsent data, and with TLS for the other side.
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
            raise httpcore2.ConnectTimeout("the TLS handshake did not finish in time") from error
        except OSError as error:
            self._connected().abort()
            raise httpcore2.ConnectError(str(error)) from error
        return self

    def get_extra_info(self, info: str) -> Any:
        if info == "is_readable":  # checked on idle connections, where any data means the end, or is not HTTP
            return self._ended or bool(self._received) or self._has_news()
        names = {"client_addr": "sockname", "server_addr": "peername"}
        return self._connected().get_extra_info(names.get(info, info))

    def _has_news(self) -> bool:
        """Return True if the peer has sent data or closed, even if a busy event loop has not noticed yet.

        The check also works below TLS. A connection on which a server sends unsolicited data should not be reused.
        """
        transport = self._connected()
        if transport.is_closing():
            return True
        if self._watch is None:
            connection = transport.get_extra_info("socket")
            self._watch = None if connection is None else _Watch(connection)
        return self._watch is None or self._watch.has_news()

    # Called by connections.

    def expect(self, *, chunks: bool, stream: bool) -> None:
        """Set how the rest of the response will arrive. Called once its headers are complete.

        Args:
            chunks: True if it arrives in chunks, so that only the last chunk can end it.
            stream: True if it may take any time while data keeps arriving, because its reader enforces its own limits.
        """
        self._is_chunked = chunks
        self._has_head = True
        if stream:
            self._answer_by = math.inf

    @property
    def is_at_end(self) -> bool:
        """True if the end of a chunked response or of the connection has arrived, so that a read does not wait."""
        return self._ended or (self._tail + self._received).endswith(_LAST_BYTES)

    def _connected(self) -> asyncio.Transport:
        if self._transport is None:
            raise httpcore2.ConnectError("the connection was closed while it was being made")
        return self._transport


class _Watch:
    """Polls a socket without waiting. Created once per socket."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._poll: Any = None
        if hasattr(select, "poll"):  # Windows has none
            self._poll = select.poll()
            self._poll.register(connection, select.POLLIN)

    def has_news(self) -> bool:
        """Return True if data can be read, or the peer has closed the connection."""
        if self._poll is None:
            return bool(select.select([self._connection], [], [], 0)[0])
        return bool(self._poll.poll(0))
