"""Work for a client that may go away."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from functools import wraps
from typing import Any, ParamSpec

import pytest

from jackfield_serving import ClientLeftError, while_connected

P = ParamSpec("P")


def in_loop(test: Callable[P, Awaitable[None]]) -> Callable[P, None]:
    """Run a test in an event loop."""

    @wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        async def inside() -> None:
            await test(*args, **kwargs)

        asyncio.run(inside())

    return run


class _Client:
    """A client that leaves when it is told to."""

    def __init__(self) -> None:
        self.left = asyncio.Event()

    async def receive(self) -> MutableMapping[str, Any]:
        await self.left.wait()
        return {"type": "http.disconnect"}


class _Work:
    """Work that waits until it is let go, and notes how it ended."""

    def __init__(self) -> None:
        self.begun, self.may_end = asyncio.Event(), asyncio.Event()
        self.end = ""

    async def run(self) -> str:
        self.begun.set()
        try:
            await self.may_end.wait()
        except asyncio.CancelledError:
            self.end = "cancelled"
            raise
        self.end = "done"
        return "result"


def _other_tasks() -> set[asyncio.Task[Any]]:
    return asyncio.all_tasks() - {asyncio.current_task()}


@in_loop
async def test_work_for_a_client_that_stays_returns_its_result_and_leaves_no_task() -> None:
    client, work = _Client(), _Work()
    work.may_end.set()
    assert await while_connected(client.receive, work.run()) == "result"
    assert not _other_tasks()


@in_loop
async def test_work_ends_when_its_client_leaves() -> None:
    client, work = _Client(), _Work()
    task = asyncio.create_task(while_connected(client.receive, work.run()))
    await work.begun.wait()
    client.left.set()
    with pytest.raises(ClientLeftError):
        await task
    assert work.end == "cancelled"
    assert not _other_tasks()


@in_loop
async def test_work_for_a_client_that_is_gone_ends_at_its_first_wait() -> None:
    client, work = _Client(), _Work()
    client.left.set()
    with pytest.raises(ClientLeftError):
        await while_connected(client.receive, work.run())
    assert work.end == "cancelled"


@in_loop
async def test_a_client_that_leaves_as_its_work_ends_changes_nothing() -> None:
    client, work = _Client(), _Work()
    problems: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, problem: problems.append(problem))
    task = asyncio.create_task(while_connected(client.receive, work.run()))
    await work.begun.wait()
    await asyncio.sleep(0)
    client.left.set()
    work.may_end.set()
    assert await task == "result"
    assert problems == []


@in_loop
async def test_a_cancelled_request_cancels_its_work_and_is_no_client_that_left() -> None:
    client, work = _Client(), _Work()
    task = asyncio.create_task(while_connected(client.receive, work.run()))
    await work.begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert work.end == "cancelled"
    assert not _other_tasks()


@pytest.mark.parametrize("error", [TimeoutError("of the work"), ValueError("of the work")])
@in_loop
async def test_an_error_of_the_work_is_raised_as_it_is(error: Exception) -> None:
    async def fail() -> None:
        raise error

    with pytest.raises(type(error), match="of the work"):
        await while_connected(_Client().receive, fail())
    assert not _other_tasks()


@in_loop
async def test_only_the_end_of_the_connection_ends_the_work() -> None:
    client, work = _Client(), _Work()
    more = [{"type": "http.request"}, {"type": "http.request"}]

    async def receive() -> MutableMapping[str, Any]:
        return more.pop() if more else await client.receive()

    task = asyncio.create_task(while_connected(receive, work.run()))
    while more or not work.begun.is_set():
        await asyncio.sleep(0)
    await asyncio.sleep(0)
    work.may_end.set()
    assert await task == "result"


@in_loop
async def test_a_connection_that_breaks_is_a_client_that_left() -> None:
    async def receive() -> MutableMapping[str, Any]:
        raise OSError("broken")

    work = _Work()
    with pytest.raises(ClientLeftError):
        await while_connected(receive, work.run())
    assert work.end == "cancelled"
