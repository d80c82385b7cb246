"""Connections: as many as there are calls at once, kept for a while, closed with their loop."""

from __future__ import annotations

import asyncio
import ssl

from jackfield_dashscope.transport import Connections
from jackfield_testkit import replies
from jackfield_testkit.dashscope import FakeDashScope


def connections(keepalive_s: float = 5) -> Connections:
    return Connections(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), keepalive_s=keepalive_s)


async def ask(some: Connections, server: FakeDashScope) -> bytes:
    async with some.post(server.url, b"{}", [], timeout_s=5) as response:
        return await response.read()


def test_calls_at_once_have_a_connection_each_and_later_ones_take_those(server: FakeDashScope) -> None:
    server.default = replies.text("ok").delayed(0.05)

    async def work() -> None:
        some = connections()
        for _ in range(3):
            await asyncio.gather(*(ask(some, server) for _ in range(6)))
        await some.aclose()

    asyncio.run(work())
    assert (len(server.requests), server.connections) == (18, 6)


def test_connections_that_nobody_has_needed_for_a_while_are_closed(server: FakeDashScope) -> None:
    server.default = replies.text("ok").delayed(0.05)

    async def work() -> None:
        some = connections(keepalive_s=0.05)
        await asyncio.gather(*(ask(some, server) for _ in range(6)))
        await asyncio.sleep(0.1)
        await ask(some, server)
        assert await asyncio.to_thread(server.wait_until, lambda s: s.open_connections == 1)
        await some.aclose()

    asyncio.run(work())


def test_a_loop_that_ends_takes_its_connections_with_it(server: FakeDashScope) -> None:
    server.default = replies.text("ok")
    some = connections()
    asyncio.run(ask(some, server))
    assert server.wait_until(lambda s: s.open_connections == 0)


def test_closing_twice_and_asking_again_is_fine(server: FakeDashScope) -> None:
    server.default = replies.text("ok")

    async def work() -> None:
        some = connections()
        await some.aclose()
        assert await ask(some, server)
        await some.aclose()
        await some.aclose()

    asyncio.run(work())
    assert server.wait_until(lambda s: s.open_connections == 0)
