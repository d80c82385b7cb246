"""Start kernels in advance so that a run does not have to wait for one."""

from __future__ import annotations

import logging
import os
import threading
from collections import deque
from collections.abc import Callable

from jackfield import sync
from jackfield.errors import JackfieldError
from jackfield_code_interpreter.session import KernelSession

_log = logging.getLogger(__name__)


class WarmSessions:
    """A pool of sessions with fresh kernels. Each session is handed out once and never returned.

    Sessions start in the background, on the event loop that outlives all runs.

    Args:
        most: The target number of ready sessions.
        make: Factory for a session whose kernel has not been started.
    """

    def __init__(self, most: int, make: Callable[[], KernelSession]) -> None:
        self._most = most
        self._make = make
        self._ready: deque[KernelSession] = deque()
        self._starting = 0
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._is_closed = False
        self._pid = os.getpid()

    def take(self) -> KernelSession | None:
        """Return a ready session, or None if there is none, and start a replacement."""
        with self._lock:
            if self._pid != os.getpid():  # in a forked child, the sessions belong to the parent
                return None
            self._ready = deque(one for one in self._ready if one.is_warm)  # dropping a dead session removes its folder
            taken = self._ready.popleft() if self._ready else None
        self.refill()
        return taken

    def refill(self) -> None:
        """Start the missing sessions in the background."""
        with self._lock:
            missing = 0 if self._is_closed else self._most - len(self._ready) - self._starting
            self._starting += missing
        for _ in range(missing):
            threading.Thread(target=self._start, name="jackfield-warm-kernel", daemon=True).start()

    def wait_until_full(self, timeout_s: float) -> bool:
        """Wait until the pool is full. Return False if `timeout_s` expires first."""
        with self._changed:
            return self._changed.wait_for(lambda: len(self._ready) >= self._most, timeout_s)

    def _start(self) -> None:
        session: KernelSession | None = None
        try:
            session = self._make()
            sync.run(session.warm_up())
        except (JackfieldError, OSError, RuntimeError):  # a call that needs a kernel starts its own, and gets the error
            _log.info("could not start a kernel in advance", exc_info=True)
        with self._changed:
            self._starting -= 1
            unused = session
            if session is not None and session.is_warm and not self._is_closed:
                self._ready.append(session)
                unused = None
            self._changed.notify_all()
        if unused is not None:
            sync.run(unused.aclose())

    async def aclose(self) -> None:
        """Close the ready sessions. Sessions that are still starting close as soon as they are up."""
        with self._lock:
            self._is_closed = True
            ready, self._ready = [*self._ready], deque()
        if self._pid == os.getpid():
            for session in ready:
                await session.aclose()
