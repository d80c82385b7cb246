"""Requests whose clients may go away, and addresses that clients may send."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, TypeVar
from urllib.parse import urlsplit

from jackfield.servers import Receive

T = TypeVar("T")


class ClientLeftError(Exception):
    """The client closed the connection before its answer was complete."""


async def while_connected(receive: Receive, work: Coroutine[Any, Any, T]) -> T:
    """Return the result of work, and cancel it if the client goes away.

    Args:
        receive: That of the request, whose body was read.
        work: The answer.

    Raises:
        ClientLeftError: The client went away.
    """
    task = asyncio.ensure_future(work)
    listener = asyncio.ensure_future(_disconnected(receive))
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


def is_public_url(url: str) -> bool:
    """Return True for web addresses and `data:` URIs; False for all that may name a file of the server."""
    try:
        return urlsplit(url).scheme.lower() in ("http", "https", "data")
    except ValueError:
        return False


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
