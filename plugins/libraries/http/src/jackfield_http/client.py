"""Send requests to one server, reusing connections per event loop."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
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
from jackfield_http.failures import translate_error
from jackfield_http.headers import HeaderPairs, with_outgoing
from jackfield_http.jsonbytes import json_value

if TYPE_CHECKING:  # it loads the HTTP stack, which the first request does
    from jackfield_http.transport import Answering, Connections, Response, Route

MAX_REPLY_BYTES = 100_000_000


def check_url(url: str, *, setting: str = "base_url") -> str:
    """Validate a server's URL, and return it without trailing slashes.

    Args:
        url: The configured URL.
        setting: The setting's name, for the error.

    Raises:
        ConfigError: The URL is invalid, or contains a user name. The message does not quote the URL.
    """
    if not url.startswith(("http://", "https://")):
        raise ConfigError(f"{setting} must start with http:// or https://, got {url.partition(':')[0]!r}")
    if not has_server(url) or "?" in url or "#" in url:
        if "?" in url or "#" in url:
            fault = "remove everything from '?' or '#' on"
        elif not (url.isascii() and url.isprintable() and " " not in url):
            fault = "it contains a space or a non-ASCII character"
        else:
            fault = "it needs a valid host, and any port must be at most 65535"
        raise ConfigError(f"{setting} is not a valid server URL, such as http://127.0.0.1:8000/v1: {fault}")
    if "@" in urlsplit(url).netloc:
        raise ConfigError(
            f"{setting} must not contain a user name or a password: set api_key, or a header in extra_headers"
        )
    return url.rstrip("/")


@dataclass(frozen=True, slots=True)
class Reply:
    """A complete HTTP response, with header names in lowercase. `backend` is the requesting backend, for errors."""

    backend: str
    status: int
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)

    def json(self, key: str | SentSecrets = "") -> Any:
        """Return the body's JSON value.

        Args:
            key: The secrets that were sent, which the error must not show.

        Raises:
            ModelResponseError: The body is not JSON.
        """
        try:
            return json_value(self.body)
        except ValueError as error:
            sent = quote_text(self.body[:1000].decode("utf-8", "replace"), key, 80)
            raise ModelResponseError(
                f"{self.backend}: the server sent {sent!r}, which is not valid JSON: check the server's URL",
                backend=self.backend,
                status=self.status,
            ) from error


class HTTPClient:
    """Sends requests to one server. An instance handles concurrent calls from any thread and any event loop.

    Creating an instance opens and loads nothing. Each event loop has its own connections, as many as it has concurrent
    requests. They are reused, and closed when the loop ends or the client is garbage collected. Proxies and
    certificates come from the environment (`HTTPS_PROXY`, `NO_PROXY`, `SSL_CERT_FILE` …). Redirects are not followed.

    Args:
        url: Any URL on the server. Only the scheme, host and port matter.
        backend: The backend's name, for errors.

    Raises:
        ConfigError: The URL is not a valid server address.
    """

    def __init__(self, url: str, *, backend: str) -> None:
        if not has_server(url):
            raise ConfigError(f"{backend}: the server URL has no valid host")
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
        """Send a POST request; see `request`."""
        return self.request("POST", url, body, headers, timeout_s=timeout_s)

    def request(
        self, method: str, url: str, body: bytes, headers: HeaderPairs, *, timeout_s: float
    ) -> AbstractAsyncContextManager[Response]:
        """Return a context manager that sends a request, and on entry waits for the response headers.

        The body is left unread. Leaving the context early closes the connection. Errors raised by the context have no
        local variables in their frames, because those may hold keys.

        Args:
            method: The HTTP method: GET, POST …
            url: A URL on this server.
            body: The body, which may be empty.
            headers: See `header_pairs`. The host and the length are added.
            timeout_s: The maximum silence from the server, in seconds. Connecting may take at most 15.

        Raises:
            ModelServiceError: The network failed, now or while reading the body. HTTP error statuses raise no error.
            ValueError: The URL belongs to another server.
        """
        return _SentRequest(self, method, url, body, headers, timeout_s)

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
        """Send a request and read the complete response, whatever its status.

        Args:
            method, url, body, headers, timeout_s: See `request`.
            max_bytes: The maximum body size.

        Raises:
            ModelServiceError: See `request`. A longer body raises `ModelResponseError`.
        """
        async with self.request(method, url, body, headers, timeout_s=timeout_s) as response:
            content = await self.body_of(response, max_bytes=max_bytes)
            return Reply(self._backend, response.status, response.headers, content)

    async def body_of(self, response: Response, *, max_bytes: int = MAX_REPLY_BYTES) -> bytes:
        """Read a response's whole body.

        Raises:
            ModelServiceError: See `request`. A longer body raises `ModelResponseError`.
        """
        body = await response.read(limit=max_bytes + 1)
        if len(body) > max_bytes:
            raise ModelResponseError(
                f"{self._backend}: {self.address} sent more than {max_bytes:,} bytes: request less at once",
                backend=self._backend,
                status=response.status,
            )
        return body

    async def aclose(self) -> None:
        """Close this event loop's idle connections; other loops close their own. The client may be used again."""
        with self._lock:
            connections, self._connections = self._connections, {}
        own = connections.pop(asyncio.get_running_loop(), None)
        if own is not None:
            await own.aclose()
        # The connections of other loops close there when they are garbage collected.

    async def connections(self) -> Connections:
        """Return this event loop's connections."""
        connections = self._connections.get(asyncio.get_running_loop())
        if connections is None:
            # In a thread, because loading the HTTP stack and certificates would block the event loop.
            connections = self._open_connections(await sync.shared_in_worker(self._find_route))
        return connections

    def translate_error(self, error: BaseException, url: str, headers: HeaderPairs, timeout_s: float) -> BaseException:
        """Translate an error from the HTTP stack to the one a request raises. Other errors are returned unchanged."""
        translated = translate_error(
            error, self._backend, self.address, timeout_s=timeout_s, secrets=partial(_secrets_in, url, headers)
        )
        return error if translated is None else translated

    def _find_route(self) -> Route:
        from jackfield_http.transport import Route

        with self._lock:
            if self._route is None:
                self._route = Route.to(self._url)
            return self._route

    def _open_connections(self, route: Route) -> Connections:
        from jackfield_http.transport import Connections

        loop = asyncio.get_running_loop()
        with self._lock:
            by_loop = {other: kept for other, kept in self._connections.items() if not other.is_closed()}
            # Another task on this loop may have been faster.
            connections = by_loop.get(loop) or Connections(route)
            self._connections = {**by_loop, loop: connections}
        return connections


@dataclass(slots=True, eq=False, repr=False)
class _SentRequest(AbstractAsyncContextManager["Response"]):
    """See `HTTPClient.request`. A class, because nested generators would cost as much as a short response."""

    client: HTTPClient
    method: str
    url: str
    body: bytes
    headers: HeaderPairs
    timeout_s: float
    connections: Connections = field(init=False)
    answering: Answering = field(init=False)
    outside: BaseException | None = field(init=False, default_factory=sys.exception)

    async def __aenter__(self) -> Response:
        try:
            self.connections = await self.client.connections()
            self.answering = await self.connections.send(
                self.method, self.url, self.body, with_outgoing(self.headers), timeout_s=self.timeout_s
            )
        except BaseException as error:  # noqa: BLE001 - it is raised, as it is or translated
            raise self._translate(error)  # noqa: B904 - it has its cause
        return self.answering.answer

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.connections.finish(self.answering)
        if error is not None and (translated := self._translate(error)) is not error:
            raise translated

    def _translate(self, error: BaseException) -> BaseException:
        """Return the error to raise, translated if necessary, without local variables in its frames."""
        translated = self.client.translate_error(error, self.url, self.headers, self.timeout_s)
        forget_locals(translated, outside=self.outside)
        return translated


def _secrets_in(url: str, headers: HeaderPairs) -> SentSecrets:
    """Collect the keys in a request's headers and query."""
    sent = {name.decode("latin-1"): value.decode("latin-1") for name, value in headers}
    return SentSecrets(headers={**sent, **dict(parse_qsl(urlsplit(url).query))})


def _host(parts: SplitResult) -> str:
    return parts.netloc.rpartition("@")[2]
