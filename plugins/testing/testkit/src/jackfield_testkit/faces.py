"""Serve agents on 127.0.0.1, and send them raw HTTP."""

from __future__ import annotations

import asyncio
import selectors
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self, TypeVar

if TYPE_CHECKING:
    from jackfield.servers import ASGIApp

T = TypeVar("T")
_LIMIT_S = 60.0


@dataclass(frozen=True, kw_only=True)
class HttpRequest:
    """A request to a face.

    Attributes:
        method, path: The method and the path as sent, including the query.
        body: The request body.
        headers: The headers, except `host`, `content-length` and `authorization`.
    """

    method: str = "POST"
    path: str
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=lambda: {"content-type": "application/json"})

    def encode(self, *, token: str = "", host: str = "localhost", chunked: bool = False) -> bytes:
        """Return the request as bytes."""
        headers = {"host": host, "connection": "close", **self.headers}
        if token:
            headers["authorization"] = f"Bearer {token}"
        if chunked:
            headers["transfer-encoding"] = "chunked"
        elif self.body or self.method not in ("GET", "HEAD", "DELETE"):
            headers["content-length"] = str(len(self.body))
        lines = [f"{self.method} {self.path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
        body = b"%x\r\n%b\r\n0\r\n\r\n" % (len(self.body), self.body) if chunked and self.body else self.body
        return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


@dataclass(frozen=True, kw_only=True)
class HttpReply:
    """A face's reply.

    Attributes:
        status: The status, or 0 if the connection closed before it arrived.
        headers: The headers, with lower-case names.
        body: The body, without HTTP framing.
        is_whole: False if the connection closed before the body was complete.
    """

    status: int
    headers: Sequence[tuple[str, str]]
    body: bytes
    is_whole: bool

    def header(self, name: str) -> str:
        """Return a header's value, or '' if the header is missing."""
        return next((value for key, value in self.headers if key == name), "")

    @property
    def text(self) -> str:
        """The body, decoded as text."""
        return self.body.decode("utf-8", "replace")


class FastLoop(asyncio.SelectorEventLoop):
    """Event loop with accelerated timers: at a speed of 500, a 15-second timer fires after 30 milliseconds."""

    def __init__(self, speed: float) -> None:
        self._speed = speed
        super().__init__(_FastSelector(speed))

    def time(self) -> float:
        return time.monotonic() * self._speed


class ServedFace:
    """An application served by uvicorn on 127.0.0.1, in its own thread.

    Args:
        app: The application.
        speed: The speed of the event loop; see `FastLoop`.

    Attributes:
        app: The application.
        port: The port it listens on.
        loop: The event loop it runs in.
    """

    def __init__(self, app: ASGIApp, *, speed: float = 1.0) -> None:
        import uvicorn

        self.app = app
        config = uvicorn.Config(app, log_config=None, access_log=False, lifespan="on", timeout_graceful_shutdown=2)
        self._server = uvicorn.Server(config)
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=2048)
        self.port: int = self._socket.getsockname()[1]
        self._speed = speed
        self.loop: asyncio.AbstractEventLoop
        self._thread = threading.Thread(target=self._run, name="face", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        while not self._server.started:
            if not self._thread.is_alive():
                raise RuntimeError("the application did not start: see the log")
            threading.Event().wait(0.005)
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._thread.join(_LIMIT_S)
        self._socket.close()

    @property
    def url(self) -> str:
        """The application's URL."""
        return f"http://127.0.0.1:{self.port}"

    def ask(self, request: HttpRequest | bytes, **options: Any) -> HttpReply:
        """Send a request and return the reply. `options` are passed to `HttpRequest.encode`."""
        raw = request if isinstance(request, bytes) else request.encode(**options)
        with self.connect() as connection:
            # A server may answer and close before it has read everything; its answer can still be read.
            with suppress(BrokenPipeError, ConnectionResetError):
                connection.sendall(raw)
            return parse_reply(read_all(connection))

    @contextmanager
    def connect(self) -> Iterator[socket.socket]:
        """Open a connection."""
        with socket.create_connection(("127.0.0.1", self.port), _LIMIT_S) as connection:
            yield connection

    def tasks(self) -> list[str]:
        """Return the names of the coroutines that run as tasks in the event loop."""

        return self.inside(
            lambda: [repr(task.get_coro()) for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        )

    def inside(self, function: Callable[[], T]) -> T:
        """Call a function in the event loop and return its result. No task runs meanwhile."""

        async def call() -> T:
            return function()

        return asyncio.run_coroutine_threadsafe(call(), self.loop).result(_LIMIT_S)

    def _run(self) -> None:
        with asyncio.Runner(
            loop_factory=lambda: FastLoop(self._speed)
        ) as runner:  # this cancels tasks that a face left behind
            self.loop = runner.get_loop()
            runner.run(self._server.serve(sockets=[self._socket]))


def read_all(connection: socket.socket) -> bytes:
    """Read until the other side closes or resets the connection."""
    pieces = []
    with suppress(ConnectionResetError):
        while piece := connection.recv(1 << 16):
            pieces.append(piece)
    return b"".join(pieces)


def parse_reply(raw: bytes) -> HttpReply:
    """Parse all bytes received on a connection that has been closed."""
    head, _, rest = raw.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    words = first.split(" ", 2)
    if len(words) < 2 or not words[1].isdecimal():
        return HttpReply(status=0, headers=(), body=raw, is_whole=False)
    headers = [(name.lower(), value.strip()) for name, _, value in (line.partition(":") for line in lines)]
    of = dict(headers)
    if of.get("transfer-encoding") == "chunked":
        body, is_whole = _unchunk(rest)
    else:
        body, is_whole = rest, len(rest) == int(of.get("content-length", len(rest)))
    return HttpReply(status=int(words[1]), headers=headers, body=body, is_whole=is_whole)


def _unchunk(raw: bytes) -> tuple[bytes, bool]:
    pieces: list[bytes] = []
    while raw:
        size, newline, raw = raw.partition(b"\r\n")
        if not newline:
            break
        count = int(size, 16)
        if count == 0:
            return b"".join(pieces), True
        pieces.append(raw[:count])
        raw = raw[count + 2 :]
    return b"".join(pieces), False


class _FastSelector(selectors.DefaultSelector):
    def __init__(self, speed: float) -> None:
        super().__init__()
        self._speed = speed

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        return super().select(None if timeout is None else timeout / self._speed)
