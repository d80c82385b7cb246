"""The way to one server, and the connections to it, kept per event loop."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, parse_qsl, urlsplit

from jackfield import sync
from jackfield.errors import ConfigError, ModelResponseError
from jackfield.quoting import SentSecrets, quote_text
from jackfield.secrets import forget_locals
from jackfield_http.addresses import has_server
from jackfield_http.failures import translated
from jackfield_http.headers import HeaderPairs
from jackfield_http.jsonbytes import json_value

if TYPE_CHECKING:  # it loads the HTTP stack, which the first request does
    from jackfield_http.transport import Connections, Response, Route

MAX_REPLY_BYTES = 100_000_000


def checked_url(url: str, *, setting: str = "base_url") -> str:
    """The URL of a server, unchanged except for slashes at its end.

    Args:
        url: The configured URL.
        setting: The name of the setting, for the error.

    Raises:
        ConfigError: HTTP cannot reach it, or it has a user name in it. It is not shown: it may hold a password.
    """
    if not url.startswith(("http://", "https://")):
        raise ConfigError(f"{setting} must begin with http:// or https://, not {url.partition(':')[0]!r}")
    if not has_server(url) or "?" in url or "#" in url:
        raise ConfigError(
            f"{setting} is not the address of a server: it needs a host, and no query: http://127.0.0.1:8000/v1"
        )
    if "@" in urlsplit(url).netloc:
        raise ConfigError(
            f"{setting} must not contain a user name or a password: set api_key, or a header in extra_headers"
        )
    return url.rstrip("/")


@dataclass(frozen=True, slots=True)
class Reply:
    """A whole HTTP answer; header names are in lower case. `backend` is who asked, for errors."""

    backend: str
    status: int
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)

    def json(self, key: str | SentSecrets = "") -> Any:
        """The body's JSON value.

        Args:
            key: The secrets that were sent; they are taken out of what the error shows.

        Raises:
            ModelResponseError: It has none.
        """
        try:
            return json_value(self.body)
        except ValueError as error:
            sent = quote_text(self.body[:1000].decode("utf-8", "replace"), key, 80)
            raise ModelResponseError(
                f"{self.backend}: the server sent {sent!r}, which is not JSON: check its address",
                backend=self.backend,
                status=self.status,
            ) from error


class HTTPClient:
    """Sends requests to one server. One instance serves many calls at once, from any thread and any event loop.

    Making one opens nothing and loads nothing. Each event loop has its own connections: as many as it has requests at
    once, kept for the next ones, closed when the loop ends or nobody refers to the client any more. Proxies and
    certificates are those of the environment (`HTTPS_PROXY`, `NO_PROXY`, `SSL_CERT_FILE` …). Redirects are not
    followed.

    Args:
        url: Any URL at the server: only its scheme, host and port matter.
        backend: The name of the backend, for errors.

    Raises:
        ConfigError: No server can have that address.
    """

    def __init__(self, url: str, *, backend: str) -> None:
        if not has_server(url):
            raise ConfigError(f"{backend}: its URL is not the address of a server: it needs a valid host")
        parts = urlsplit(url)
        self.address = f"{parts.scheme}://{_host(parts)}"
        self._url = url
        self._backend = backend
        self._lock = threading.Lock()
        self._route: Route | None = None
        self._connections: dict[asyncio.AbstractEventLoop, Connections] = {}

    def post(
        self, url: str, body: bytes, headers: HeaderPairs, *, timeout_s: float
    ) -> AbstractAsyncContextManager[Response]:
        """`request` with POST."""
        return self.request("POST", url, body, headers, timeout_s=timeout_s)

    def request(
        self, method: str, url: str, body: bytes, headers: HeaderPairs, *, timeout_s: float
    ) -> AbstractAsyncContextManager[Response]:
        """Send a request; the answer is there, its body unread, once its headers are.

        Leaving early closes the connection. An error that leaves the context, whoever raised it, has no local
        variables in its frames: keys and a server's words are among them.

        Args:
            method: GET, POST …
            url: A URL at this server.
            body: May be empty.
            headers: See `header_pairs`; the host and the length are added.
            timeout_s: Seconds the server may be silent; connecting has at most 15 of them.

        Raises:
            ModelServiceError: The network failed, then or while the body is read. A status is never an error here.
            ValueError: The URL is at another server.
        """
        return _Sent(self._request(method, url, body, headers, timeout_s=timeout_s))

    @asynccontextmanager
    async def _request(
        self, method: str, url: str, body: bytes, headers: HeaderPairs, *, timeout_s: float
    ) -> AsyncIterator[Response]:
        connections = self._connections.get(asyncio.get_running_loop())
        if connections is None:
            # In a thread: loading the HTTP stack and certificates takes long, and the event loop has others to serve.
            connections = self._connections_here(await sync.shared_in_worker(self._way))
        with translated(self._backend, self.address, timeout_s=timeout_s, secrets=partial(_secrets_in, url, headers)):
            async with connections.request(method, url, body, headers, timeout_s=timeout_s) as response:
                yield response

    async def exchange(
        self,
        method: str,
        url: str,
        body: bytes,
        headers: HeaderPairs,
        *,
        timeout_s: float,
        max_bytes: int = MAX_REPLY_BYTES,
    ) -> Reply:
        """Send a request and read the whole answer, whatever its status.

        Args:
            method, url, body, headers, timeout_s: As for `request`.
            max_bytes: The longest body.

        Raises:
            ModelServiceError: As for `request`; `ModelResponseError` for a longer body.
        """
        async with self.request(method, url, body, headers, timeout_s=timeout_s) as response:
            content = await self.body_of(response, max_bytes=max_bytes)
            return Reply(self._backend, response.status, response.headers, content)

    async def body_of(self, response: Response, *, max_bytes: int = MAX_REPLY_BYTES) -> bytes:
        """The whole body of an answer.

        Raises:
            ModelServiceError: As for `request`; `ModelResponseError` for a longer body.
        """
        body = await response.read(limit=max_bytes + 1)
        if len(body) > max_bytes:
            raise ModelResponseError(
                f"{self._backend}: {self.address} sent more than {max_bytes:,} bytes: ask for less at once",
                backend=self._backend,
                status=response.status,
            )
        return body

    async def aclose(self) -> None:
        """Close the idle connections of this event loop; those of others close there. It may be used again."""
        with self._lock:
            connections, self._connections = self._connections, {}
        here = connections.pop(asyncio.get_running_loop(), None)
        if here is not None:
            await here.aclose()
        # Those of other loops close themselves there, as soon as nobody refers to them.

    def _way(self) -> Route:
        from jackfield_http.transport import Route

        with self._lock:
            if self._route is None:
                self._route = Route.to(self._url)
            return self._route

    def _connections_here(self, route: Route) -> Connections:
        from jackfield_http.transport import Connections

        loop = asyncio.get_running_loop()
        with self._lock:
            living = {known: kept for known, kept in self._connections.items() if not known.is_closed()}
            # Another task of this loop may have been first.
            connections = living.get(loop) or Connections(route)
            self._connections = {**living, loop: connections}
        return connections


class _Sent:
    """A request on its way, as `HTTPClient.request` gives it."""

    def __init__(self, request: AbstractAsyncContextManager[Response]) -> None:
        self._request = request
        self._outside = sys.exception()

    async def __aenter__(self) -> Response:
        # Not `ForgetLocals`, which every call would pay for.
        outside = sys.exception()
        try:
            return await self._request.__aenter__()
        except BaseException as error:
            forget_locals(error, outside=outside)
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        outside = sys.exception()
        try:
            await self._request.__aexit__(kind, error, trace)
        except BaseException as raised:
            forget_locals(raised, outside=outside)
            raise
        if error is not None:
            forget_locals(error, outside=self._outside)


def _secrets_in(url: str, headers: HeaderPairs) -> SentSecrets:
    """What a request carries that no error may show: keys in its headers, and in its query."""
    sent = {name.decode("latin-1"): value.decode("latin-1") for name, value in headers}
    return SentSecrets(headers={**sent, **dict(parse_qsl(urlsplit(url).query))})


def _host(parts: SplitResult) -> str:
    return parts.netloc.rpartition("@")[2]
