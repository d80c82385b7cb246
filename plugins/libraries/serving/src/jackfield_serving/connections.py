"""Handle requests from clients that may disconnect."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping
from contextlib import suppress
from typing import TypeVar

from jackfield.servers import Receive, RequestRefusedError

T = TypeVar("T")


class ClientLeftError(Exception):
    """The client closed the connection before its answer was complete."""


async def while_connected(receive: Receive, work: Awaitable[T]) -> T:
    """Await work and return its result, or cancel it if the client disconnects.

    Args:
        receive: The request's `receive`, after its body has been read.
        work: The work that answers the request.

    Raises:
        ClientLeftError: The client disconnected.
    """
    scope = asyncio.timeout(None)
    is_working = True

    def stop(_: object) -> None:
        if is_working:  # it may have ended in the same iteration of the loop
            scope.reschedule(0)

    listener = asyncio.ensure_future(_disconnected(receive))
    try:
        async with scope:
            # Work stays in this task: a task of its own would cost each stream more than its first event.
            listener.add_done_callback(stop)
            try:
                return await work
            finally:
                is_working = False
    except TimeoutError:
        if scope.expired():
            raise ClientLeftError from None
        raise
    finally:
        listener.cancel()
        with suppress(asyncio.CancelledError, Exception):
            await listener


def read_disconnect(query: Mapping[str, str], *, cancels: bool) -> bool:
    """Return True if the run is cancelled when its client disconnects.

    Args:
        query: The request's query parameters: `on_disconnect`, set to `cancel` or `continue`, or none.
        cancels: The face's default for requests without the parameter.

    Raises:
        RequestRefusedError: There are other parameters or values.
    """
    value = query.get("on_disconnect", "cancel" if cancels else "continue")
    if query.keys() - {"on_disconnect"} or value not in ("cancel", "continue"):
        raise RequestRefusedError(
            "the only supported query parameter is on_disconnect, which must be 'cancel' or 'continue'"
        )
    return value == "cancel"


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
