"""Signals between processes that share a store."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from jackfield.errors import StoreError
from jackfield.stores import Signal, Store
from jackfield.streams import closing

Message: TypeAlias = Mapping[str, Any]

_log = logging.getLogger("jackfield.serving")
_MOST_IN_A_SIGNAL = 50
_GATHER_S = 0.02
_LISTEN_AGAIN_S = 1.0
_LONGEST_WAIT_S = 1.0  # a signal may get lost


class Peers:
    """Exchanges signals with other processes.

    Args:
        store: Carries the signals. A store without signals is polled every `poll_s` seconds.
        on_message: Called with a signal's run id and message.
        poll_s: The polling interval, in seconds.
    """

    def __init__(self, store: Store, on_message: Callable[[str, Message], None], *, poll_s: float) -> None:
        self._store, self._on_message, self._poll_s = store, on_message, poll_s
        self._is_listening = False
        self._waiting: set[asyncio.Future[None]] = set()
        self._written: set[str] = set()
        self._has_written = asyncio.Event()
        self._sends = type(store).send is not Store.send
        self._tasks: list[asyncio.Task[None]] = []

    def open(self) -> None:
        """Start listening."""
        if self._sends:
            self._tasks.append(asyncio.create_task(self._listen(), name="jackfield-serving-signals"))
            if not self._store.reports_writes:
                self._tasks.append(asyncio.create_task(self._report_writes(), name="jackfield-serving-writes"))

    async def aclose(self) -> None:
        """Stop listening."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def send(self, run_id: str, message: Message) -> None:
        """Send a message about a run to the process that runs it.

        Raises:
            StoreError: The store has no signals, or cannot be used.
        """
        await self._store.send(run_id, json.dumps(message))

    def note_written(self, run_id: str) -> None:
        """Schedule a signal that a record has new entries."""
        if self._sends and not self._store.reports_writes:
            self._written.add(run_id)
            self._has_written.set()

    def ring(self) -> None:
        """Wake all tasks that wait for a change."""
        waiting, self._waiting = self._waiting, set()
        for future in waiting:
            if not future.done():
                future.set_result(None)

    async def changed(self) -> None:
        """Wait until another process may have changed something."""
        future = asyncio.get_running_loop().create_future()
        self._waiting.add(future)
        try:
            async with asyncio.timeout(_LONGEST_WAIT_S if self._is_listening else self._poll_s):
                await future
        except TimeoutError:
            pass
        finally:
            self._waiting.discard(future)

    async def _listen(self) -> None:
        outage = ""
        while True:
            try:
                async with closing(self._store.listen()) as signals:
                    async for signal in signals:
                        self._is_listening, outage = True, ""
                        self._take(signal)
            except StoreError as error:
                if str(error) != outage:  # once for each outage, not for each attempt
                    _log.warning("cannot receive signals from other processes: %s", error)
                outage = str(error)
            self._is_listening = False
            await asyncio.sleep(_LISTEN_AGAIN_S)

    def _take(self, signal: Signal) -> None:
        self.ring()
        if not signal.run_id:
            return
        with contextlib.suppress(ValueError):
            message = json.loads(signal.text)
            if isinstance(message, dict):
                self._on_message(signal.run_id, message)

    async def _report_writes(self) -> None:
        while True:
            await self._has_written.wait()
            await asyncio.sleep(_GATHER_S)  # several steps make one signal
            self._has_written.clear()
            self._written.clear()
            with contextlib.suppress(StoreError):  # readers look again after a while
                await self._store.send("", "")
