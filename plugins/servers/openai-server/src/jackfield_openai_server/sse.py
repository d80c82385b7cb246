"""Server-sent events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from jackfield.streams import closing
from jackfield_serving import ClientLeftError, while_connected

_HEADERS = {"cache-control": "no-cache", "x-accel-buffering": "no"}


class EventStream(StreamingResponse):
    """A response of server-sent events. It ends with its client, without the task group of `StreamingResponse`.

    Args:
        pieces: The events as they are sent.
        on_leave: Called if the client goes away, or the events fail, before the end.
    """

    def __init__(self, pieces: AsyncIterator[bytes], on_leave: Callable[[], Awaitable[None]] | None) -> None:
        super().__init__(pieces, media_type="text/event-stream", headers=_HEADERS)
        self._pieces = pieces
        self._on_leave = on_leave

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        """Send the events."""
        try:
            async with closing(self._pieces):
                await while_connected(receive, self.stream_response(send))
        except BaseException as error:
            if self._on_leave is not None:
                # This task may be being cancelled: what must happen now happens in another one.
                await asyncio.shield(asyncio.ensure_future(self._on_leave()))
            if not isinstance(error, ClientLeftError):
                raise
