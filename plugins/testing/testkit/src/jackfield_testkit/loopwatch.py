"""Watch an event loop, and identify code that blocks it.

Elapsed time says little on a busy machine, so only the code's own time is measured: the CPU time of the loop's thread,
and the time it spent waiting without being ready to run. Blocking calls that raise audit events (`time.sleep`,
connecting a blocking socket, resolving a name) are detected however short they are.
"""

from __future__ import annotations

import asyncio
import gc
import ipaddress
import linecache
import os
import selectors
import socket
import sys
import sysconfig
import threading
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from types import FrameType
from typing import Any

import pytest

from jackfield_testkit.effects import hearing

MOST_WAITING_S = 0.03
"""The longest time that a loop's thread may wait between two ticks."""
MOST_COMPUTING_S = 0.03
"""The longest time that a loop's thread may compute between two ticks, on a machine of normal speed."""
TRIES = 3
_SAMPLE_S = 0.003
_SWITCH_S = 0.0001  # how long another thread may hold the interpreter; waiting for that is not the loop's fault
_LOOP_OF_STEPS = 200_000
_USUAL_S = 0.008  # the time of that loop on a machine of normal speed
_REMEDY = "use an async call instead, or run the work in a thread (jackfield.sync.in_worker)"


@dataclass(frozen=True, slots=True)
class Pause:
    """A period during which a loop was blocked.

    Attributes:
        what: The blocking call, or how long the thread waited or computed.
        where: The file, line and function, or '' if they were not observed.
    """

    what: str
    where: str

    def __str__(self) -> str:
        return f"the event loop is blocked: {self.what}{f', at {self.where}' if self.where else ''}: {_REMEDY}"


@dataclass(slots=True)
class _Reading:
    """The clocks of the loop's thread, in seconds."""

    wall: float
    computed: float
    queued: float  # runnable, but waiting for a CPU


class _Clocks:
    """Reads the clocks of the thread that created it."""

    def __init__(self) -> None:
        try:
            self._file = os.open("/proc/thread-self/schedstat", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:  # not Linux: the time in the queue counts as waiting, and a pause must show three times
            self._file = -1

    def read(self) -> _Reading:
        queued = int(os.pread(self._file, 99, 0).split()[1]) / 1e9 if self._file >= 0 else 0.0
        return _Reading(time.perf_counter(), time.thread_time(), queued)

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)


@dataclass
class _Watch:
    """Records a loop's longest pauses, and the position of its thread during them."""

    clocks: _Clocks = field(default_factory=_Clocks)
    thread: int = field(default_factory=threading.get_ident)
    step: int = 0
    is_busy: bool = False
    blocking: list[Pause] = field(default_factory=list)
    longest: dict[str, tuple[float, int]] = field(default_factory=dict)  # seconds and step, by kind of pause
    seen: dict[int, Counter[str]] = field(default_factory=dict)  # places by step
    _began: _Reading | None = None

    def begin(self) -> None:
        """Note that the loop has woken up."""
        self.step += 1
        self._began = self.clocks.read()
        self.is_busy = True

    def end(self) -> None:
        """Note that the loop is going to sleep."""
        self.is_busy = False
        if self._began is None:
            return
        now, began = self.clocks.read(), self._began
        computed = now.computed - began.computed
        waited = now.wall - began.wall - computed - (now.queued - began.queued)
        for what, seconds in (("computes", computed), ("waits", waited)):
            if seconds > self.longest.get(what, (0.0, 0))[0]:
                self.longest[what] = seconds, self.step

    def hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Handle an audit event."""
        if self.is_busy and threading.get_ident() == self.thread and (what := _blocking_call(event, arguments)):
            self.blocking.append(Pause(what, _place_of(sys._getframe())))

    def sample(self) -> None:
        """Record the thread's current position."""
        if self.is_busy and (frame := sys._current_frames().get(self.thread)):
            self.seen.setdefault(self.step, Counter())[_place_of(frame)] += 1

    def pauses(self) -> list[Pause]:
        """Return all pauses of the loop that are too long, and all blocking calls."""
        found = list(self.blocking)
        most = {"computes": MOST_COMPUTING_S * slowness(), "waits": MOST_WAITING_S}
        for what, (seconds, step) in self.longest.items():
            if seconds > most[what]:
                places = self.seen.get(step, Counter[str]()).most_common(1)
                where = places[0][0] if places else ""
                found.append(Pause(f"its thread {what} for {seconds * 1000:.0f} ms without a tick", where))
        return found


class _WatchedSelector(selectors.DefaultSelector):
    """Notifies a watch when its loop goes to sleep and wakes up."""

    watch: _Watch

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self.watch.end()
        try:
            return super().select(timeout)
        finally:
            self.watch.begin()


def pauses_of(make: Callable[[], Coroutine[Any, Any, object]], *, tries: int = TRIES) -> list[Pause]:
    """Run a coroutine on its own event loop several times, and return the pauses if every run has some.

    Args:
        make: Returns a new coroutine, and is called before each loop starts.
        tries: The number of runs. If any of them has no pause, the cause was external, such as a busy disk or another
            process.
    """
    pauses: list[Pause] = []
    for _ in range(tries):
        pauses = _pauses_once(make())
        if not pauses:
            break
    return pauses


def check_loop(make: Callable[[], Coroutine[Any, Any, object]]) -> None:
    """Fail the current test if the coroutine blocks its event loop; see `pauses_of`."""
    if pauses := pauses_of(make):
        pytest.fail("\n".join(map(str, pauses)))


def _pauses_once(work: Coroutine[Any, Any, object]) -> list[Pause]:
    watch = _Watch()

    def new_loop() -> asyncio.AbstractEventLoop:
        selector = _WatchedSelector()
        selector.watch = watch
        return asyncio.SelectorEventLoop(selector)

    async def whole() -> None:
        await asyncio.sleep(0)  # the previous step includes the start of the loop
        watch.longest.clear()
        await work
        watch.end()

    try:
        with _sampling(watch), hearing(watch), asyncio.Runner(loop_factory=new_loop) as runner:
            runner.run(whole())
            watch.is_busy = False
            return watch.pauses()
    finally:
        watch.clocks.close()


@contextmanager
def _sampling(watch: _Watch) -> Iterator[None]:
    is_over = threading.Event()

    def sample() -> None:
        while not is_over.wait(_SAMPLE_S):
            watch.sample()

    sampler = threading.Thread(target=sample, name="loopwatch", daemon=True)
    switching_s, collects = sys.getswitchinterval(), gc.isenabled()
    sys.setswitchinterval(_SWITCH_S)
    gc.disable()  # a garbage collection would scan everything that the tests have created
    sampler.start()
    try:
        yield
    finally:
        is_over.set()
        sampler.join()
        sys.setswitchinterval(switching_s)
        if collects:
            gc.enable()


@cache
def slowness() -> float:
    """Return the factor, at least 1, by which this machine or a coverage tool slows Python down."""

    def once() -> float:
        began = time.thread_time()
        for _ in range(_LOOP_OF_STEPS):
            pass
        return time.thread_time() - began

    return max(1.0, min(once() for _ in range(5)) / _USUAL_S)


def _blocking_call(event: str, arguments: tuple[Any, ...]) -> str:
    """Describe the blocking call that an event reports, or return '' for any other event."""
    match event, arguments:
        case "time.sleep", (seconds,) if seconds:
            return f"time.sleep({seconds!r}) is called in its thread"
        case "socket.connect", (socket.socket() as connecting, address) if connecting.gettimeout() != 0:
            return f"a blocking socket connects to {address!r}"
        case ("socket.getaddrinfo" | "socket.gethostbyname", (host, *_)) if host and not _is_number(host):
            return f"host name {host!r} is resolved"
    return ""


def _is_number(host: object) -> bool:
    try:
        ipaddress.ip_address(host if isinstance(host, str) else os.fsdecode(host))  # type: ignore[arg-type]
    except (ValueError, TypeError):
        return False
    return True


@cache
def _stdlib() -> tuple[str, ...]:
    return tuple({f"{sysconfig.get_paths()[name]}{os.sep}" for name in ("stdlib", "platstdlib")})


def _is_own(file: str) -> bool:
    """Return True if a file is neither part of the standard library nor this module."""
    if file.startswith("<") or file in (__file__, hearing.__wrapped__.__code__.co_filename):  # type: ignore[attr-defined]
        return False
    return "site-packages" in file or not file.startswith(_stdlib())


def _place_of(frame: FrameType) -> str:
    """Return the innermost line outside the standard library."""
    innermost: FrameType | None = frame
    while innermost is not None:
        # Between two lines, another thread's frame may have no line number, whatever its type says.
        file, line = innermost.f_code.co_filename, innermost.f_lineno or 0
        if _is_own(file):
            source = linecache.getline(file, line).strip()
            return f"{file}:{line} in {innermost.f_code.co_name} ({source})"
        innermost = innermost.f_back
    return ""
