"""Run a scripted model server on 127.0.0.1 that speaks Chat Completions or another dialect.

```python
with FakeOpenAI() as server:
    server.reply(text("hello"), error(429, headers={"Retry-After": "2"}), text("bye").reset_after(1))
    ...  # talk to server.url
    assert server.requests[0].json["messages"][0]["content"] == "hi"
```

The server is a thread with an event loop and plain sockets, so it can split bytes and reset connections anywhere. It
requires only the standard library, and encodes each answer once, which makes it fast enough for benchmarks.
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from http import HTTPStatus
from types import TracebackType
from typing import Any, Self, TypeAlias
from urllib.parse import parse_qsl

from jackfield_testkit import replies
from jackfield_testkit.dialects import ChatCompletions, Dialect
from jackfield_testkit.replies import (
    Reply,
    ToolCall,
    chunks,
    error,
    raw,
    reasoning,
    text,
    tool_call,
    tool_calls,
)
from jackfield_testkit.requests import RecordedRequest

__all__ = [
    "FakeOpenAI",
    "RecordedRequest",
    "Reply",
    "Respond",
    "ToolCall",
    "chunks",
    "error",
    "raw",
    "reasoning",
    "text",
    "tool_call",
    "tool_calls",
]

MAX_HEAD_BYTES = 1 << 18
_RESET_PAUSE_S = 0.03  # a reset may discard data that the client has not read yet
_CACHED_ANSWERS = 64
_LAST_CHUNK = b"0\r\n\r\n"
_COMMENT_EVERY_S = 0.01
_FLOOD = b"x" * 1_000_000
_RESET = struct.pack("ii", 1, 0)  # linger on, for 0 s, so that closing sends RST instead of FIN
_SCRIPT_IS_OVER = "no scripted reply is left for this request: add one with server.reply(...)"


Respond: TypeAlias = Callable[[RecordedRequest], Reply]


class FakeOpenAI:
    """A scripted model server, started with `with` or with `start` and `stop`. The server can be restarted.

    `GET …/models` takes the next reply from `reply_to_listing`, or else lists `models`. Any other `GET` gets a 404.
    Every `POST`, whatever its path, takes the next reply from the queue. Once the queue is empty, `default` is sent;
    without a default, a 500 reports that the script is over.

    Args:
        default: The answer to send once the queue is empty.
        models: The names listed by `GET /v1/models`.
        dialect: The protocol to speak, or None for Chat Completions.

    The counters may be updated slightly after the client has received the last byte, so read them with `wait_until`.

    Attributes:
        requests: All requests except those for the model list, oldest first.
        listings: The requests for the model list.
        connections: The number of connections opened so far.
        open_connections: The number of connections currently open.
        open_streams: The number of answers currently being sent.
        disconnects: The number of answers whose client disconnected before the end.
    """

    def __init__(
        self,
        *,
        default: Reply | None = None,
        models: Sequence[str] = ("test-model",),
        dialect: Dialect | None = None,
    ) -> None:
        self.default = default
        self.dialect: Dialect = dialect or ChatCompletions()
        self.models = tuple(models)
        self.requests: list[RecordedRequest] = []
        self.listings: list[RecordedRequest] = []
        self.connections = 0
        self.open_connections = 0
        self.open_streams = 0
        self.disconnects = 0
        self._queue: deque[Reply] = deque()
        self._listing_queue: deque[Reply] = deque()
        self._respond: Respond | None = None
        self._answers: dict[tuple[Reply, str, bool, bool], list[bytes]] = {}
        self._changed = threading.Condition()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._port = 0

    # --- script ---

    def reply(self, *replies: Reply) -> None:
        """Queue answers. Each request takes the next one."""
        self._queue.extend(replies)

    def reply_to_listing(self, *replies: Reply) -> None:
        """Queue answers to requests for the model list. Each request takes the next one."""
        self._listing_queue.extend(replies)

    def respond(self, function: Respond | None) -> None:
        """Let a function, which must not block, answer on the server's thread once the queue is empty."""
        self._respond = function

    def clear(self) -> None:
        """Discard the script and the recorded requests. Connections stay open."""
        self._queue.clear()
        self._listing_queue.clear()
        self._respond = None
        self.requests.clear()
        self.listings.clear()

    # --- life cycle ---

    @property
    def url(self) -> str:
        """The base URL, whose path depends on the dialect and is usually `/v1`."""
        return self.origin + self.dialect.base_path

    @property
    def origin(self) -> str:
        """The URL without a path."""
        if self._loop is None:
            raise RuntimeError("the server is not running: use it in a `with` block, or call start()")
        return f"http://127.0.0.1:{self._port}"

    def start(self) -> Self:
        """Start listening on a free port."""
        if self._loop is not None:
            raise RuntimeError("the server is already running")
        listener = socket.create_server(("127.0.0.1", 0), backlog=512)
        # Connections inherit this. asyncio does not set it on a socket whose protocol number is 0, like this one, and
        # each further small write would wait 40 ms for an acknowledgement.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._port = listener.getsockname()[1]
        loop = self._loop = asyncio.new_event_loop()
        ready = threading.Event()
        self._thread = threading.Thread(
            target=self._run, args=(loop, listener, ready), name=f"fake-{self.dialect.name}", daemon=True
        )
        self._thread.start()
        ready.wait()
        return self

    def stop(self) -> None:
        """Close all connections and stop listening."""
        if self._loop is None or self._thread is None:
            return
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop = self._thread = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def wait_until(self, is_so: Callable[[FakeOpenAI], bool], *, timeout_s: float = 5.0) -> bool:
        """Wait until a condition on the server is true, and return False if the time runs out.

        The condition is checked whenever a connection or an answer starts or ends.
        """
        with self._changed:
            return self._changed.wait_for(lambda: is_so(self), timeout_s)

    def _run(self, loop: asyncio.AbstractEventLoop, listener: socket.socket, ready: threading.Event) -> None:
        asyncio.set_event_loop(loop)
        server = loop.run_until_complete(asyncio.start_server(self._serve, sock=listener, limit=MAX_HEAD_BYTES))
        loop.call_soon(ready.set)
        try:
            loop.run_forever()
        finally:
            server.close()
            tasks = asyncio.all_tasks(loop)
            for task in tasks:
                task.cancel()
            loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
            # One more iteration lets closed transports close their sockets.
            loop.run_until_complete(asyncio.sleep(0))
            loop.close()

    def _count(self, **changes: int) -> None:
        with self._changed:
            for name, change in changes.items():
                setattr(self, name, getattr(self, name) + change)
            self._changed.notify_all()

    # --- one connection ---

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._count(connections=1, open_connections=1)
        connection = self.connections
        # `drain` then returns only when the last byte has reached the kernel.
        writer.transport.set_write_buffer_limits(0)
        try:
            while await self._serve_one(reader, writer, connection):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, asyncio.CancelledError):
            pass  # the client has disconnected, or the server is stopping; either way, the connection ends
        finally:
            writer.transport.abort()
            self._count(open_connections=-1)

    async def _serve_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, connection: int) -> bool:
        """Answer one request. Return False if the connection must not be reused."""
        head = await reader.readuntil(b"\r\n\r\n")
        method, path, version, headers = _parse_head(head)
        body = await _read_body(reader, headers)
        if method == "GET":
            request = RecordedRequest(0, connection, method, path, headers, body, None, "req_list", None, path, headers)
            answer = self._answer_get(path, request)
        else:
            request = self._record(method, path, headers, body, connection)
            answer = self._next_reply(request)
        surplus = None if answer.surplus is None else (answer.surplus, self._pieces(answer.surplus, request))
        sending = _Sending(
            answer, request, self._pieces(answer, request), reader, writer, surplus=surplus, dialect=self.dialect
        )
        self._count(open_streams=1)
        left = 0
        try:
            reusable = await sending.run()
        except ConnectionError:
            left = 1
            raise
        finally:
            self._count(open_streams=-1, disconnects=left)
        return reusable and version == "HTTP/1.1" and headers.get("connection", "").lower() != "close"

    def _record(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes, connection: int
    ) -> RecordedRequest:
        number = len(self.requests) + 1
        value: Any = None
        with suppress(ValueError):
            value = json.loads(body)
        known = (number, connection, method, path, headers, body, value, f"req_{number}")
        request = self.dialect.request(RecordedRequest(*known, value, path, headers))
        self.requests.append(request)
        return request

    def _next_reply(self, request: RecordedRequest) -> Reply:
        reply = self._scripted(request)
        return reply if reply.body is None else self.dialect.body(reply, request)

    def _scripted(self, request: RecordedRequest) -> Reply:
        refusal = self.dialect.refuse(request)
        if refusal is not None:
            return refusal
        if self._queue:
            return self._queue.popleft()
        if self._respond is not None:
            try:
                return self._respond(request)
            except Exception as problem:  # noqa: BLE001 - the server's answer reports it
                return error(500, f"the test's respond function failed: {type(problem).__name__}: {problem}")
        unscripted = self.default or self.dialect.unscripted(request)
        return unscripted or error(500, _SCRIPT_IS_OVER, code="script_is_over", type="server_error")

    def _answer_get(self, path: str, request: RecordedRequest) -> Reply:
        location, _, query = path.partition("?")
        if not location.endswith("/models"):
            return error(404, f"nothing at {path}")
        self.listings.append(request)
        if not self._listing_queue:
            return raw(self.dialect.list_models(self.models, dict(parse_qsl(query))))
        reply = self._listing_queue.popleft()
        return reply if reply.body is None else self.dialect.body(reply, request)

    def _pieces(self, reply: Reply, request: RecordedRequest) -> list[bytes]:
        if type(self.dialect) is not ChatCompletions:  # the function's answers may depend on anything in the request
            return self._written(reply, request)
        key = (reply, request.model, request.streams, request.wants_usage)
        pieces = self._answers.get(key)
        if pieces is None:
            if len(self._answers) >= _CACHED_ANSWERS:
                self._answers.clear()
            pieces = self._answers[key] = self._written(reply, request)
        return pieces

    def _written(self, reply: Reply, request: RecordedRequest) -> list[bytes]:
        writer = self.dialect.writer(reply, request)
        pieces = replies.pieces(reply, request.model, stream=request.streams, writer=writer)
        if replies.is_framed(reply, request.streams):
            pieces = [b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces]
            if not (replies.breaks_off(reply) or reply.holds_open or reply.end_delay_s):
                pieces[-1:] = [b"".join([*pieces[-1:], _LAST_CHUNK])]
            if not reply.pace_s:
                pieces = [b"".join(pieces)]
        return pieces


class _Sending:
    """One answer being sent."""

    def __init__(
        self,
        reply: Reply,
        request: RecordedRequest,
        pieces: Sequence[bytes],
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        *,
        surplus: tuple[Reply, Sequence[bytes]] | None = None,
        dialect: Dialect,
    ) -> None:
        self._reply = reply
        self._request = request
        self._pieces = pieces
        self._reader = reader
        self._writer = writer
        self._surplus = surplus
        self._dialect = dialect

    async def run(self) -> bool:
        """Send the answer.

        Returns:
            True if the connection can be reused.

        Raises:
            ConnectionError: The client has disconnected.
        """
        reply = self._reply
        if reply.delay_s:
            await self._be_silent(reply.delay_s)
        if reply.drops:
            return False
        head, own_length = self._head(reply, self._pieces)
        unasked = self._unasked(*self._surplus) if self._surplus else b""
        # The head is sent with the first piece, so that most clients receive one packet.
        pieces = [head + b"".join(self._pieces[:1]), *self._pieces[1:]]
        if not reply.surplus_delay_s:
            pieces[-1] += unasked
        await self._send(pieces[0])
        for piece in pieces[1:]:
            if reply.pace_s:
                await self._be_silent(reply.pace_s)
            await self._send(piece)
        await self._end()
        if reply.surplus_delay_s:
            await asyncio.sleep(reply.surplus_delay_s)
            await self._send(unasked)
        return own_length and not reply.closes

    async def _end(self) -> None:
        """Finish the answer after the last piece, in the way that the reply specifies."""
        reply = self._reply
        if replies.breaks_off(reply):
            await self._break_off()
        elif replies.is_framed(reply, self._request.streams):
            if reply.holds_open:
                await self._be_silent(None)
            if reply.end_delay_s:
                await self._be_silent(reply.end_delay_s)
                await self._send(_LAST_CHUNK)

    async def _break_off(self) -> None:
        """Fail in the way that the reply specifies, until the client disconnects."""
        reply = self._reply
        match reply.ending:
            case "stall":
                await self._be_silent(None)
            case "comment":
                comment = self._dialect.writer(reply, self._request).comment
                await self._repeat(comment.replace(b"\n", reply.newline), every_s=_COMMENT_EVERY_S)
            case "flood":
                await self._repeat(b"data: " + _FLOOD, then=_FLOOD)
            case _:
                await self._reset()

    async def _repeat(self, piece: bytes, *, then: bytes = b"", every_s: float = 0.0) -> None:
        while True:
            framed = replies.is_framed(self._reply, self._request.streams)
            await self._send(b"%x\r\n%b\r\n" % (len(piece), piece) if framed else piece)
            piece = then or piece
            if every_s:
                await self._be_silent(every_s)

    def _unasked(self, reply: Reply, pieces: Sequence[bytes]) -> bytes:
        return b"".join([self._head(reply, pieces)[0], *pieces])

    def _head(self, reply: Reply, pieces: Sequence[bytes]) -> tuple[bytes, bool]:
        """Return the status line and headers, and True if the content length in them is correct."""
        is_stream = replies.is_stream(reply, self._request.streams)
        headers = {
            "Content-Type": self._dialect.stream_type if is_stream else "application/json",
            self._dialect.request_id_header: self._request.request_id,
        }
        given = {name.lower() for name, _ in reply.headers}
        if replies.is_framed(reply, self._request.streams):
            headers["Transfer-Encoding"] = "chunked"
        else:
            missing = 1 if replies.breaks_off(reply) else 0
            headers["Content-Length"] = str(sum(map(len, pieces)) + missing)
        kept = [(name, value) for name, value in headers.items() if name.lower() not in given]
        lines = [f"{name}: {value}\r\n" for name, value in (*kept, *reply.headers)]
        status = f"HTTP/1.1 {reply.status} {_phrase(reply.status)}\r\n"
        own_length = not given & {"content-length", "transfer-encoding", "connection"}
        return (status + "".join(lines) + "\r\n").encode("latin-1"), own_length

    async def _send(self, data: bytes) -> None:
        if self._reader.at_eof() or self._writer.is_closing():
            raise ConnectionResetError("the client disconnected")
        self._writer.write(data)
        await self._writer.drain()

    async def _be_silent(self, seconds: float | None) -> None:
        """Wait some seconds, or forever if None, while watching for the client to disconnect."""
        try:
            async with asyncio.timeout(seconds):
                if not await self._reader.read(1):
                    raise ConnectionResetError("the client disconnected")
        except TimeoutError:
            return
        raise ConnectionAbortedError("the client sent more data before it received its response")

    async def _reset(self) -> None:
        await asyncio.sleep(_RESET_PAUSE_S)
        connection = self._writer.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        self._writer.transport.abort()
        raise _WasResetError


class _WasResetError(asyncio.IncompleteReadError):
    """The server itself reset the connection, so this does not count as a client that disconnected."""

    def __init__(self) -> None:
        super().__init__(b"", None)


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Unknown"


def _parse_head(head: bytes) -> tuple[str, str, str, dict[str, str]]:
    request_line, *lines = head.decode("latin-1").rstrip("\r\n").split("\r\n")
    method, _, rest = request_line.partition(" ")
    path, _, version = rest.rpartition(" ")
    headers: dict[str, str] = {}
    for name, _, value in (line.partition(":") for line in lines):
        known = headers.get(name.strip().lower())
        # Repeated headers are joined, as in HTTP, so that no value is hidden from a test.
        headers[name.strip().lower()] = value.strip() if known is None else f"{known}, {value.strip()}"
    return method, path, version, headers


async def _read_body(reader: asyncio.StreamReader, headers: Mapping[str, str]) -> bytes:
    if headers.get("transfer-encoding", "").lower() == "chunked":
        parts = []
        while size := int((await reader.readuntil(b"\r\n")).partition(b";")[0], 16):
            parts.append(await reader.readexactly(size))
            await reader.readexactly(2)
        await reader.readuntil(b"\r\n")
        return b"".join(parts)
    length = int(headers.get("content-length") or 0)
    return await reader.readexactly(length) if length else b""
