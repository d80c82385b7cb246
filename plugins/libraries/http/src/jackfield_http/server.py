"""The server that requests are sent to: its address, its credentials, and the connections to it."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Generic, TypeVar

from jackfield import sync
from jackfield.quoting import SentSecrets
from jackfield.secrets import ForgetLocals
from jackfield_http.client import MAX_REPLY_BYTES, HTTPClient, Reply, check_url
from jackfield_http.failures import Failures
from jackfield_http.headers import HeaderPairs, header_pairs
from jackfield_http.keys import FoundKey, KeyRule

if TYPE_CHECKING:  # it loads the HTTP stack, which the first request does
    from jackfield_http.transport import Response

HEADERS: Mapping[str, str] = {
    "content-type": "application/json",
    "accept": "text/event-stream",
    "accept-encoding": "identity",  # answers are not decompressed
    "user-agent": "jackfield",
}
"""The headers of every request, unless overridden by its server."""


@dataclass(frozen=True, slots=True)
class Server:
    """A server's address, and the headers of every request to it.

    Attributes:
        url: The endpoint's full URL: `https://api.acme.example/v1/chat/completions`.
        headers: The headers of every request, including the key. They override `HEADERS`.
        key: The key in the headers, which errors never show, or the reason why there is none.
    """

    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    key: FoundKey = field(default_factory=FoundKey)


ServerT = TypeVar("ServerT", bound=Server)


@dataclass(frozen=True, slots=True)
class Post:
    """One request's content.

    Attributes:
        body: The JSON body.
        url: The URL, if it differs from the server's.
        headers: Headers for this request, which override the server's.
        method: POST, or GET for a request that has only a query.
    """

    body: bytes = field(repr=False)
    url: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    method: str = "POST"


@dataclass(frozen=True, slots=True)
class Opened(Generic[ServerT]):
    """A server and the client connected to it.

    Attributes:
        server: The server.
        client: The client that holds the connections.
    """

    server: ServerT
    client: HTTPClient
    _headers: HeaderPairs = field(repr=False)
    _secrets: SentSecrets

    @classmethod
    def at(cls, server: ServerT, client: HTTPClient) -> Opened[ServerT]:
        """Prepare the data shared by all requests to a server."""
        secrets = SentSecrets(server.key.value, headers=server.headers)
        return cls(server, client, header_pairs(HEADERS, server.headers), secrets)

    def post(self, post: Post, *, extra: Mapping[str, str], timeout_s: float) -> AbstractAsyncContextManager[Response]:
        """Send a request; see `HTTPClient.request`.

        Args:
            post: The request's content.
            extra: Headers set by the user; see `header_pairs`.
            timeout_s: The maximum silence from the server, in seconds.
        """
        with ForgetLocals():  # they may include a key
            url, headers = post.url or self.server.url, self._pairs(post, extra)
            return self.client.post(url, post.body, headers, timeout_s=timeout_s)

    async def exchange(
        self, post: Post, *, extra: Mapping[str, str], timeout_s: float, max_bytes: int = MAX_REPLY_BYTES
    ) -> Reply:
        """Send a request and read the complete response, whatever its status.

        Args:
            post: The request's content, including its method.
            extra, timeout_s: See `post`.
            max_bytes: The maximum body size.
        """
        with ForgetLocals():  # they may include a key
            url, headers = post.url or self.server.url, self._pairs(post, extra)
            return await self.client.exchange(
                post.method, url, post.body, headers, timeout_s=timeout_s, max_bytes=max_bytes
            )

    def failures(self, backend: str, headers: Mapping[str, str], *, extra: Mapping[str, str]) -> Failures:
        """Return the builder for a request's errors.

        Args:
            backend: The backend's name.
            headers: The response headers.
            extra: Headers set by the user, which may also be secret.
        """
        server = self.server
        secrets = SentSecrets(server.key.value, headers={**server.headers, **extra}) if extra else self._secrets
        return Failures(backend, secrets, headers, server.key)

    def _pairs(self, post: Post, extra: Mapping[str, str]) -> HeaderPairs:
        if not (post.headers or extra):
            return self._headers
        return header_pairs(HEADERS, self.server.headers, post.headers, extra=extra, key=self.server.key.value)


class Access(Generic[ServerT]):
    """Resolves a server on the first request, with the API key valid at that time, and again after closing.

    Args:
        find: Returns the server. Called in a worker thread.
        backend: The backend's name, for errors.
    """

    def __init__(self, find: Callable[[], ServerT], *, backend: str) -> None:
        self._find = find
        self._backend = backend
        self._lock = threading.Lock()
        self._opened: Opened[ServerT] | None = None

    def __reduce__(self) -> tuple[object, ...]:
        return partial(Access, backend=self._backend), (self._find,)  # another process finds the server itself

    async def open(self) -> Opened[ServerT]:
        """Return the server, resolving it on the first call.

        Raises:
            ConfigError: The address or the key is missing or invalid.
        """
        opened = self._opened
        # In a thread, because finding it may import an SDK, which would block the event loop for most of a second.
        return opened if opened is not None else await sync.shared_in_worker(self._open)

    def change(self, opened: Opened[ServerT], server: ServerT) -> Opened[ServerT]:
        """Replace the server from now on, keeping its connections. Has no effect if another task already replaced it.

        Args:
            opened: The server as used so far.
            server: The same server with other parameters.
        """
        changed = replace(opened, server=server)
        with self._lock:
            if self._opened is opened:
                self._opened = changed
        return changed

    async def aclose(self) -> None:
        """Close this event loop's idle connections. The next request resolves the server again."""
        with self._lock:
            opened, self._opened = self._opened, None
        if opened is not None:
            await opened.client.aclose()

    def _open(self) -> Opened[ServerT]:
        with ForgetLocals(), self._lock:  # they include a key
            if self._opened is None:
                server = self._find()
                self._opened = Opened.at(server, HTTPClient(server.url, backend=self._backend))
            return self._opened


def configured_url(configured: str | None, rule: KeyRule, *, setting: str = "base_url") -> str | None:
    """Return the base URL from the configuration or the environment, without a trailing slash, or None if unset.

    Args:
        configured: The configured URL.
        rule: The rule that names the environment variable.
        setting: The setting's name, for the error.

    Raises:
        ConfigError: The URL is invalid.
    """
    with ForgetLocals():  # a refused URL may contain a password
        url = configured or (os.environ.get(rule.url_variable) if rule.url_variable else None)
        return check_url(url, setting=setting) if url else None
