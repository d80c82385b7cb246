"""Send requests to one server, over connections that are kept per event loop."""

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
    """Check the URL of a server, and return it without slashes at its end.

    Args:
        url: The configured URL.
        setting: The name of the setting, for the error.

    Raises:
        ConfigError: The URL is not valid, or contains a user name. The error does not show it.
    """
    if not url.startswith(("http://", "https://")):
        raise ConfigError(f"{setting} must begin with http:// or https://, not {url.partition(':')[0]!r}")
    if not has_server(url) or "?" in url or "#" in url:
        if "?" in url or "#" in url:
            fault = "leave out what follows '?' or '#'"
        elif not (url.isascii() and url.isprintable() and " " not in url):
            fault = "it has a space or a character that is not ASCII"
        else:
            fault = "it needs a valid host, and a port of at most 65535"
        raise ConfigError(f"{setting} is not the address of a server, such as http://127.0.0.1:8000/v1: {fault}")
    if "@" in urlsplit(url).netloc:
        raise ConfigError(
            f"{setting} must not contain a user name or a password: set api_key, or a header in extra_headers"
        )
    return url.rstrip("/")


@dataclass(frozen=True, slots=True)
class Reply:
    """A whole HTTP answer; header names are in lower case. `backend` is the backend that asked, for errors."""

    backend: str
    status: int
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)

    def json(self, key: str | SentSecrets = "") -> Any:
        """Return the JSON value of the body.

        Args:
            key: The secrets that were sent; the error does not show them.

        Raises:
            ModelResponseError: The body is not JSON.
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

    Creating an instance opens and loads nothing. Each event loop has its own connections, as many as it has concurrent
    requests. They are reused, and closed when the loop ends or the client is garbage collected. Proxies and
    certificates come from the environment (`HTTPS_PROXY`, `NO_PROXY`, `SSL_CERT_FILE` …). Redirects are not followed.

    Args:
        url: Any URL of the server; only its scheme, host and port matter.
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
        """Call `request` with POST."""
        return self.request("POST", url, body, headers, timeout_s=timeout_s)

    def request(
        self, method: str, url: str, body: bytes, headers: HeaderPairs, *, timeout_s: float
    ) -> AbstractAsyncContextManager[Response]:
        """Send a request; enter the context when the headers of the answer are there, with its body unread.

        Leaving the context early closes the connection. The frames of an error that leaves it have no local variables,
        because they may hold keys.

        Args:
            method: GET, POST …
            url: A URL at this server.
            body: The body, which may be empty.
            headers: See `header_pairs`; the host and the length are added.
            timeout_s: The longest silence of the server, in seconds; connecting may take at most 15.

        Raises:
            ModelServiceError: The network failed, now or while the body is read. No status is an error here.
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
        """Send a request and read the whole answer, whatever its status.

        Args:
            method, url, body, headers, timeout_s: As for `request`.
            max_bytes: The size of the longest body.

        Raises:
            ModelServiceError: As for `request`; `ModelResponseError` for a longer body.
        """
        async with self.request(method, url, body, headers, timeout_s=timeout_s) as response:
            content = await self.body_of(response, max_bytes=max_bytes)
            return Reply(self._backend, response.status, response.headers, content)

    async def body_of(self, response: Response, *, max_bytes: int = MAX_REPLY_BYTES) -> bytes:
        """Read the whole body of an answer.

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
        """Close the idle connections of this event loop; other loops close theirs. The client may be used again."""
        with self._lock:
            connections, self._connections = self._connections, {}
        own = connections.pop(asyncio.get_running_loop(), None)
        if own is not None:
            await own.aclose()
        # The connections of other loops close there when they are garbage collected.

    async def connections(self) -> Connections:
        """Return the connections of this event loop."""
        connections = self._connections.get(asyncio.get_running_loop())
        if connections is None:
            # In a thread, because loading the HTTP stack and certificates would block the event loop.
            connections = self._open_connections(await sync.shared_in_worker(self._find_route))
        return connections

    def translate_error(self, error: BaseException, url: str, headers: HeaderPairs, timeout_s: float) -> BaseException:
        """Return the error that a request to a URL raises for one of the HTTP stack; any other stays as it is."""
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
            # Another task of this loop may have been faster.
            connections = by_loop.get(loop) or Connections(route)
            self._connections = {**by_loop, loop: connections}
        return connections


@dataclass(slots=True, eq=False, repr=False)
class _SentRequest(AbstractAsyncContextManager["Response"]):
    """See `HTTPClient.request`. A class, because generators around each other cost as much as a short answer."""

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
        try:
            await self.connections.finish(self.answering)
        except BaseException as raised:  # noqa: BLE001 - as above
            raise self._translate(raised)  # noqa: B904 - as above
        if error is not None and (translated := self._translate(error)) is not error:
            raise translated

    def _translate(self, error: BaseException) -> BaseException:
        """Return an error as Jackfield raises it, without local variables."""
        translated = self.client.translate_error(error, self.url, self.headers, self.timeout_s)
        forget_locals(translated, outside=self.outside)
        return translated


def _secrets_in(url: str, headers: HeaderPairs) -> SentSecrets:
    """Collect the keys in the headers and the query of a request."""
    sent = {name.decode("latin-1"): value.decode("latin-1") for name, value in headers}
    return SentSecrets(headers={**sent, **dict(parse_qsl(urlsplit(url).query))})


def _host(parts: SplitResult) -> str:
    return parts.netloc.rpartition("@")[2]
