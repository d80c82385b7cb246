"""The server that requests go to: where it is, how one is let in, and the connections to it."""

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
from jackfield_http.client import MAX_REPLY_BYTES, HTTPClient, Reply, checked_url
from jackfield_http.failures import Failures
from jackfield_http.headers import HeaderPairs, header_pairs
from jackfield_http.keys import FoundKey, KeyRule

if TYPE_CHECKING:  # it loads the HTTP stack, which the first request does
    from jackfield_http.transport import Response

HEADERS: Mapping[str, str] = {
    "content-type": "application/json",
    "accept": "text/event-stream",
    "accept-encoding": "identity",  # what arrives is read as it is
    "user-agent": "jackfield",
}
"""The headers of every request, unless its server has others."""


@dataclass(frozen=True, slots=True)
class Server:
    """Where requests go, and with what.

    Attributes:
        url: Of the endpoint, whole: `https://api.acme.example/v1/chat/completions`.
        headers: Those of every request, the key's among them, over `HEADERS`.
        key: The key in the headers, which is taken out of errors, or why there is none.
    """

    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    key: FoundKey = field(default_factory=FoundKey)


ServerT = TypeVar("ServerT", bound=Server)


@dataclass(frozen=True, slots=True)
class Post:
    """What one request sends.

    Attributes:
        body: JSON.
        url: Where it goes, if that is not the URL of the server.
        headers: Those of this request, over the server's.
        method: GET, where a whole answer is asked for with a query alone.
    """

    body: bytes = field(repr=False)
    url: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    method: str = "POST"


@dataclass(frozen=True, slots=True)
class Opened(Generic[ServerT]):
    """A server that has been found, and the connections to it.

    Attributes:
        server: Where and with what.
        client: The connections.
    """

    server: ServerT
    client: HTTPClient
    _headers: HeaderPairs = field(repr=False)
    _secrets: SentSecrets

    @classmethod
    def at(cls, server: ServerT, client: HTTPClient) -> Opened[ServerT]:
        """The server with what all requests send made once."""
        secrets = SentSecrets(server.key.value, headers=server.headers)
        return cls(server, client, header_pairs(HEADERS, server.headers), secrets)

    def post(self, post: Post, *, extra: Mapping[str, str], timeout_s: float) -> AbstractAsyncContextManager[Response]:
        """Send a request; see `HTTPClient.request`.

        Args:
            post: What is sent.
            extra: Headers that a user has set; see `header_pairs`.
            timeout_s: Seconds the server may be silent.
        """
        with ForgetLocals():  # a key may be among them
            url, headers = post.url or self.server.url, self._pairs(post, extra)
            return self.client.post(url, post.body, headers, timeout_s=timeout_s)

    async def exchange(
        self, post: Post, *, extra: Mapping[str, str], timeout_s: float, max_bytes: int = MAX_REPLY_BYTES
    ) -> Reply:
        """Send a request and read the whole answer, whatever its status.

        Args:
            post, extra, timeout_s: As for `post`.
            max_bytes: The longest answer.
        """
        with ForgetLocals():  # a key may be among them
            url, headers = post.url or self.server.url, self._pairs(post, extra)
            return await self.client.exchange(
                post.method, url, post.body, headers, timeout_s=timeout_s, max_bytes=max_bytes
            )

    def failures(self, backend: str, headers: Mapping[str, str], *, extra: Mapping[str, str]) -> Failures:
        """The errors of a request.

        Args:
            backend: The name of the backend.
            headers: The headers of the response.
            extra: Headers that the user has set; they may be secret, too.
        """
        server = self.server
        secrets = SentSecrets(server.key.value, headers={**server.headers, **extra}) if extra else self._secrets
        return Failures(backend, secrets, headers, server.key)

    def _pairs(self, post: Post, extra: Mapping[str, str]) -> HeaderPairs:
        if not (post.headers or extra):
            return self._headers
        return header_pairs(HEADERS, self.server.headers, post.headers, extra=extra)


class Access(Generic[ServerT]):
    """Finds a server at the first request, with the API key as it is then, and again after closing.

    Args:
        find: Returns the server; called in a worker thread.
        backend: The name of the backend, for errors.
    """

    def __init__(self, find: Callable[[], ServerT], *, backend: str) -> None:
        self._find = find
        self._backend = backend
        self._lock = threading.Lock()
        self._opened: Opened[ServerT] | None = None

    def __reduce__(self) -> tuple[object, ...]:
        return partial(Access, backend=self._backend), (self._find,)  # another process finds the server itself

    async def opened(self) -> Opened[ServerT]:
        """The server.

        Raises:
            ConfigError: There is no address or no key, or something does not fit.
        """
        opened = self._opened
        # In a thread: it may import an SDK, which takes most of a second, in which the event loop has others to serve.
        return opened if opened is not None else await sync.shared_in_worker(self._open)

    def change(self, opened: Opened[ServerT], server: ServerT) -> Opened[ServerT]:
        """Ask a server otherwise from now on, over the same connections.

        Args:
            opened: As it was asked.
            server: The same server, with other words.
        """
        changed = replace(opened, server=server)
        with self._lock:
            if self._opened is opened:
                self._opened = changed
        return changed

    async def aclose(self) -> None:
        """Close the idle connections of this event loop; the next request looks up the server again."""
        with self._lock:
            opened, self._opened = self._opened, None
        if opened is not None:
            await opened.client.aclose()

    def _open(self) -> Opened[ServerT]:
        with ForgetLocals(), self._lock:  # a key is among them
            if self._opened is None:
                server = self._find()
                self._opened = Opened.at(server, HTTPClient(server.url, backend=self._backend))
            return self._opened


def given_url(configured: str | None, rule: KeyRule, *, setting: str = "base_url") -> str | None:
    """The base URL from the configuration, else from the environment, without a final slash; None if neither has one.

    Args:
        configured: The URL in the configuration.
        rule: The rule that names the environment variable.
        setting: The name of the setting, for the error.

    Raises:
        ConfigError: HTTP cannot reach it.
    """
    with ForgetLocals():  # one that is refused may have a password in it
        url = configured or (os.environ.get(rule.url_variable) if rule.url_variable else None)
        return checked_url(url, setting=setting) if url else None
