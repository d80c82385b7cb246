"""Kernels that are started ahead: as many as wanted, each handed out once, and none left."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from jackfield.errors import ToolServiceError
from jackfield_code_interpreter import warm
from jackfield_code_interpreter.warm import WarmSessions

PATIENCE_S = 60


class Session:
    """Starts as a session does, without a kernel."""

    def __init__(self, *, error: Exception | None = None, wait_for: threading.Event | None = None) -> None:
        self.is_warm = False
        self.is_closed = threading.Event()
        self._error = error
        self._wait_for = wait_for

    async def warm_up(self) -> None:
        if self._wait_for is not None:
            await asyncio.to_thread(self._wait_for.wait, PATIENCE_S)
        if self._error is not None:
            raise self._error
        self.is_warm = True

    async def aclose(self) -> None:
        self.is_warm = False
        self.is_closed.set()


class Made(list[Any]):
    """Makes sessions, and keeps them."""

    def __init__(self, **settings: Any) -> None:
        super().__init__()
        self._settings = settings

    def __call__(self) -> Any:
        self.append(Session(**self._settings))
        return self[-1]


def wait_until(holds: Callable[[], bool]) -> None:
    give_up = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < give_up
        time.sleep(0.002)


def full(most: int, made: Made) -> WarmSessions:
    sessions = WarmSessions(most, made)
    sessions.refill()
    assert sessions.wait_until_full(PATIENCE_S)
    return sessions


def test_as_many_are_started_as_are_wanted_and_no_more() -> None:
    made = Made()
    sessions = full(3, made)
    sessions.refill()
    assert len(made) == 3
    assert not any(one.is_closed.is_set() for one in made)


def test_each_is_handed_out_once_and_another_takes_its_place() -> None:
    made = Made()
    sessions = full(2, made)
    first = sessions.take()
    assert sessions.wait_until_full(PATIENCE_S)
    taken = [first, sessions.take()]
    assert sessions.wait_until_full(PATIENCE_S)
    taken += [sessions.take(), sessions.take()]
    assert len({id(one) for one in taken}) == 4
    assert None not in taken


@pytest.mark.parametrize("survivor", range(3))
def test_those_that_have_died_are_not_handed_out(survivor: int) -> None:
    made = Made()
    sessions = full(3, made)
    for one in made:
        one.is_warm = one is made[survivor]
    assert sessions.take() is made[survivor]
    assert sessions.wait_until_full(PATIENCE_S)
    assert len(made) == 6


def test_none_is_handed_out_where_none_is_ready_and_one_is_started() -> None:
    may_start = threading.Event()
    made = Made(wait_for=may_start)
    sessions = WarmSessions(1, made)
    assert sessions.take() is None
    assert not sessions.wait_until_full(0)
    may_start.set()
    assert sessions.wait_until_full(PATIENCE_S)
    assert sessions.take() in made


@pytest.mark.parametrize("error", [ToolServiceError("no sandbox"), OSError("full"), RuntimeError("no loop")])
def test_one_that_does_not_start_is_closed_and_the_next_call_tries_again(error: Exception) -> None:
    made = Made(error=error)
    sessions = WarmSessions(1, made)
    for number in range(2):
        sessions.refill()
        wait_until(lambda number=number: len(made) > number)
        assert made[number].is_closed.wait(PATIENCE_S)
    assert sessions.take() is None


def test_one_that_cannot_be_made_does_not_keep_the_others_from_starting() -> None:
    made, failed = Made(), threading.Event()

    def make() -> Any:
        if failed.is_set():
            return made()
        failed.set()
        raise OSError("no room for its folder")

    sessions = WarmSessions(1, make)
    sessions.refill()
    assert failed.wait(PATIENCE_S)
    wait_until(lambda: sessions.take() is not None)
    assert made


def test_closing_ends_those_that_wait_and_those_that_are_being_started() -> None:
    made = Made()
    sessions = full(2, made)
    asyncio.run(sessions.aclose())
    assert all(one.is_closed.is_set() for one in made)
    sessions.refill()
    assert sessions.take() is None
    assert len(made) == 2
    may_start = threading.Event()
    late = Made(wait_for=may_start)
    starting = WarmSessions(1, late)
    starting.refill()
    wait_until(lambda: len(late) > 0)
    asyncio.run(starting.aclose())
    may_start.set()
    assert late[0].is_closed.wait(PATIENCE_S)
    assert starting.take() is None


def test_a_forked_child_leaves_those_of_its_parent_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Made()
    sessions = full(1, made)
    monkeypatch.setattr(warm.os, "getpid", lambda: -1)
    assert sessions.take() is None
    asyncio.run(sessions.aclose())
    assert not made[0].is_closed.is_set()
    assert len(made) == 1
