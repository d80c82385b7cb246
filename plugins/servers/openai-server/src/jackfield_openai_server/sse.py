"""Server-sent events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

from starlette.responses import StreamingResponse

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
