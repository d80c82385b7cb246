"""What holds up an event loop is found and named; what gives way is not, however busy its threads are."""

from __future__ import annotations

import asyncio
import socket
import sys
import sysconfig
import threading
import time
from collections.abc import Callable, Coroutine
from types import SimpleNamespace
from typing import Any

import pytest

from jackfield_testkit.loopwatch import MOST_COMPUTING_S, MOST_WAITING_S, check_loop, pauses_of, slowness

Work = Callable[[], Coroutine[Any, Any, object]]


def compute(seconds: float) -> None:
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


async def sleeps() -> None:
    await asyncio.sleep(0)
    time.sleep(2 * MOST_WAITING_S)


async def waits_for_an_event() -> None:
    await asyncio.sleep(0)
    threading.Event().wait(2 * MOST_WAITING_S)


async def waits_for_a_lock() -> None:
    lock = threading.Lock()
    lock.acquire()
    threading.Timer(2 * MOST_WAITING_S, lock.release).start()
    with lock:
        pass


async def waits_for_a_thread() -> None:
    thread = threading.Thread(target=time.sleep, args=(2 * MOST_WAITING_S,))
    thread.start()
    thread.join()


async def computes() -> None:
    await asyncio.sleep(0)
    compute(2 * MOST_COMPUTING_S * slowness())


async def computes_in_the_last_step() -> None:
    await asyncio.sleep(0)
    compute(2 * MOST_COMPUTING_S * slowness())


HELD_UP = [sleeps, waits_for_an_event, waits_for_a_lock, waits_for_a_thread, computes, computes_in_the_last_step]


@pytest.mark.parametrize("work", HELD_UP, ids=lambda work: work.__name__)
def test_what_holds_up_the_loop_is_found(work: Work) -> None:
    assert pauses_of(work)


def test_the_line_is_named() -> None:
    with pytest.raises(pytest.fail.Exception, match=r"test_loopwatch\.py:\d+ in waits_for_an_event"):
        check_loop(waits_for_an_event)


def test_a_frame_without_a_line_number_does_not_end_the_watch(monkeypatch: pytest.MonkeyPatch) -> None:
    # In a folder of the standard library, as on most systems.
    installed = f"{sysconfig.get_path('stdlib')}/site-packages/library.py"
    code = SimpleNamespace(co_filename=installed, co_name="between_two_lines")
    frame = SimpleNamespace(f_code=code, f_lineno=None, f_back=None)
    main = threading.get_ident()
    monkeypatch.setattr(sys, "_current_frames", lambda: {main: frame})
    with pytest.raises(pytest.fail.Exception, match=r"library\.py:0 in between_two_lines"):
        check_loop(waits_for_an_event)


@pytest.mark.parametrize("timeout_s", [None, 60])
def test_a_blocking_connection_is_found_however_quick_it_is(timeout_s: float | None) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        async def connect() -> None:
            socket.create_connection(server.getsockname(), timeout_s).close()

        (pause,) = pauses_of(connect)
    assert "blocking socket connects" in pause.what


async def sleeps_and_gives_way() -> None:
    for _ in range(20):
        await asyncio.sleep(0.005)


async def works_in_threads() -> None:
    await asyncio.gather(*(asyncio.to_thread(compute, 0.05) for _ in range(3)), asyncio.to_thread(time.sleep, 0.1))


async def computes_in_small_steps() -> None:
    for _ in range(50):
        compute(0.002)
        await asyncio.sleep(0)


async def connects_and_gives_way() -> None:
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    await reader.read()
    writer.close()
    server.close()


FREE = [sleeps_and_gives_way, works_in_threads, computes_in_small_steps, connects_and_gives_way]


@pytest.mark.parametrize("work", FREE, ids=lambda work: work.__name__)
def test_what_gives_way_is_left_alone(work: Work) -> None:
    assert pauses_of(work) == []


def test_a_pause_that_does_not_show_again_is_none() -> None:
    pauses = iter([2 * MOST_WAITING_S, 0.0, 2 * MOST_WAITING_S])

    async def pause_at_first() -> None:
        threading.Event().wait(next(pauses))

    assert pauses_of(pause_at_first) == []
    assert next(pauses), "it was tried until it did not show"
