"""Server-sent events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

from jackfield.servers import Receive, Scope, Send
from jackfield.streams import closing
from jackfield_serving.connections import ClientLeftError, while_connected

_HEADERS: Sequence[tuple[bytes, bytes]] = (
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
)
_SILENCE_S = 15.0  # proxies close connections that are silent for a minute
_COMMENT = b":\n\n"


class EventStream:
    """A server-sent events response, as an ASGI application, which ends when its client disconnects.

    A comment is sent after every 15 seconds of silence, so that proxies do not consider the connection dead.

    Args:
        events: The events, each with its lines and the blank line that follows. The iterator is closed at the end.
        on_leave: Called if the client disconnects or the events fail before the end.
    """

    def __init__(self, events: AsyncIterator[bytes], on_leave: Callable[[], Awaitable[None]] | None = None) -> None:
        self._events = events
        self._on_leave = on_leave

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        """Send the events."""
        try:
            async with closing(self._events):
                await while_connected(receive, self._send_events(send))
        except BaseException as error:
            if self._on_leave is not None:
                # This task may be in cancellation, so the cleanup runs in another one.
                await asyncio.shield(asyncio.ensure_future(self._on_leave()))
            if not isinstance(error, ClientLeftError):
                raise

    async def _send_events(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": list(_HEADERS)})
        keep_alive = _KeepAlive(send)
        try:
            async for event in self._events:
                keep_alive.note_event()
                await send({"type": "http.response.body", "body": event, "more_body": True})
        finally:
            await keep_alive.stop()
        await send({"type": "http.response.body", "body": b"", "more_body": False})


class _KeepAlive:
    """Sends a comment after each silence, using a timer, and a task only while sending."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._loop = asyncio.get_running_loop()
        self._latest = self._loop.time()
        self._timer = self._loop.call_at(self._latest + _SILENCE_S, self._look)
        self._comment: asyncio.Future[None] | None = None

    def note_event(self) -> None:
        self._latest = self._loop.time()

    async def stop(self) -> None:
        self._timer.cancel()
        if self._comment is not None:
            self._comment.cancel()
            await asyncio.gather(self._comment, return_exceptions=True)

    def _look(self) -> None:
        now = self._loop.time()
        if now >= self._latest + _SILENCE_S:
            self._latest = now
            if self._comment is None or self._comment.done():  # otherwise the client does not read
                self._comment = asyncio.ensure_future(self._send_comment())
        self._timer = self._loop.call_at(self._latest + _SILENCE_S, self._look)

    async def _send_comment(self) -> None:
        await self._send({"type": "http.response.body", "body": _COMMENT, "more_body": True})
