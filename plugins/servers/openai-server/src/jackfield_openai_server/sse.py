"""Server-sent events, and clients that go away."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.responses import StreamingResponse

T = TypeVar("T")
_HEADERS = {"cache-control": "no-cache", "x-accel-buffering": "no"}


def event_stream(pieces: AsyncIterator[bytes], on_leave: Callable[[], Awaitable[None]] | None) -> StreamingResponse:
    """Return a response of server-sent events.

    Args:
        pieces: The events as they are sent.
        on_leave: Called if the client goes away before the end.
    """

    async def watched() -> AsyncIterator[bytes]:
        is_complete = False
        try:
            async for piece in pieces:
                yield piece
            is_complete = True
        finally:
            if not is_complete and on_leave is not None:
                # The task of the request is being cancelled: what must happen now happens in another one.
                await asyncio.shield(asyncio.ensure_future(on_leave()))

    return StreamingResponse(watched(), media_type="text/event-stream", headers=_HEADERS)


class ClientLeftError(Exception):
    """The client closed the connection before its answer was complete."""


async def while_connected(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """Return the result of work, and cancel it if the client goes away.

    Raises:
        ClientLeftError: The client went away.
    """
    task = asyncio.ensure_future(work)
    listener = asyncio.ensure_future(_disconnected(request))
    try:
        await asyncio.wait({task, listener}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise ClientLeftError
        return task.result()
    finally:
        for one in (task, listener):
            one.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await one


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
