"""A backend whose SDK blocks is asked like any other one."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Iterator

import pytest

from jackfield.errors import ModelRequestError
from jackfield.events import ModelEvent, ModelFinished, TextDelta
from jackfield.request import ChatRequest
from jackfield_backends.blocking import BlockingChatModel

ASK = [{"role": "user", "content": "q"}]
DONE = ModelFinished("stop")


class Blocking(BlockingChatModel):
    """Waits inside its SDK until it is let go."""

    backend = "blocking"

    def __init__(self) -> None:
        super().__init__({"model": "m"})
        self.inside = threading.Event()
        self.let_go = threading.Event()
        self.closed = threading.Event()

    def stream_blocking(self, request: ChatRequest) -> Iterator[ModelEvent]:
        try:
            yield TextDelta("a")
            self.inside.set()
            self.let_go.wait(30)
            yield DONE
        finally:
            time.sleep(0.05)  # as closing a connection takes
            self.closed.set()


def test_a_blocking_backend_is_asked_like_any_other() -> None:
    model = Blocking()
    model.let_go.set()
    assert model.ask("q").text == "a"
    assert model.closed.is_set()


def test_a_blocking_backend_does_not_block_the_loop_and_is_closed_when_left() -> None:
    async def leave_early(model: Blocking) -> None:
        events = model.astream(ASK)
        await anext(events)
        await events.aclose()  # type: ignore[attr-defined]
        assert model.closed.is_set(), "it waits for the SDK to let go of its connection"

    class Kept(Blocking):
        events: Iterator[ModelEvent]

        def stream_blocking(self, request: ChatRequest) -> Iterator[ModelEvent]:
            self.events = super().stream_blocking(request)  # so that collecting garbage does not close it
            return self.events

    for model in (Blocking(), Kept()):
        asyncio.run(leave_early(model))


def test_the_sdk_runs_in_a_worker_thread_and_an_error_of_it_is_raised() -> None:
    threads: set[threading.Thread] = set()

    class Failing(Blocking):
        def stream_blocking(self, request: ChatRequest) -> Iterator[ModelEvent]:
            try:
                threads.add(threading.current_thread())
                yield TextDelta("a")
                threads.add(threading.current_thread())
                raise ModelRequestError("no", backend="blocking")
            finally:
                threads.add(threading.current_thread())
                self.closed.set()

    model = Failing()

    async def read() -> tuple[ModelEvent, str]:
        events = model.stream(ChatRequest("m", ()))
        first = await anext(events)
        with pytest.raises(ModelRequestError) as caught:
            await anext(events)
        return first, str(caught.value)

    assert asyncio.run(read()) == (TextDelta("a"), "no")
    assert model.closed.is_set()
    assert threads
    assert threading.current_thread() not in threads


def test_an_iterator_that_cannot_be_closed_is_enough() -> None:
    class Plain(Blocking):
        def stream_blocking(self, request: ChatRequest) -> Iterator[ModelEvent]:
            return iter([TextDelta("a"), DONE])

    assert Plain().ask("q").text == "a"


def test_cancelling_a_blocking_backend_while_it_blocks_is_a_cancellation() -> None:
    async def cancelled(model: Blocking) -> bool:
        task = asyncio.ensure_future(model.acomplete(ASK))
        while not model.inside.is_set():
            await asyncio.sleep(0.001)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        return task.cancelled()

    model = Blocking()
    try:
        assert asyncio.run(asyncio.wait_for(cancelled(model), 20))
    finally:
        model.let_go.set()
    assert model.closed.wait(20)
