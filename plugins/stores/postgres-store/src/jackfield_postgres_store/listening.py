"""Receive PostgreSQL notifications in a background thread."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import threading
from collections.abc import AsyncIterator, Callable
from typing import TypeAlias

from jackfield.errors import ToolServiceError
from jackfield.stores import Signal
from jackfield_postgres import Database, OwnConnection

PutSignal: TypeAlias = Callable[[Signal], None]

_LOOK_EVERY_S = 1.0
_RECONNECT_AFTER_S = 0.5


class Listener:
    """A subscription to a notification channel.

    Args:
        database: The database to connect to.
        channel: The channel name.
        skip: The sender whose signals to ignore, usually this process.
    """

    def __init__(self, database: Database, channel: str, *, skip: str) -> None:
        self._database, self._channel, self._skip = database, channel, skip
        self._is_closed = threading.Event()

    async def signals(self) -> AsyncIterator[Signal]:
        """Yield signals as they arrive. An empty signal follows every connection or reconnection."""
        queue: asyncio.Queue[Signal] = asyncio.Queue()
        loop = asyncio.get_running_loop()

        def put(signal: Signal) -> None:
            with contextlib.suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(queue.put_nowait, signal)

        threading.Thread(target=self._listen, args=(put,), name="jackfield-postgres-signals", daemon=True).start()
        try:
            while True:
                yield await queue.get()
        finally:
            self._is_closed.set()

    def _listen(self, put: PutSignal) -> None:
        while not self._is_closed.is_set():
            try:
                connection = self._database.connect()
            except ToolServiceError:
                self._is_closed.wait(_RECONNECT_AFTER_S)
                continue
            try:
                connection.run(f'LISTEN "{self._channel}"')
                put(Signal())
                self._pass_on(connection, put)
            except ToolServiceError:
                self._is_closed.wait(_RECONNECT_AFTER_S)
            finally:
                connection.close()

    def _pass_on(self, connection: OwnConnection, put: PutSignal) -> None:
        while not self._is_closed.is_set():
            for message in connection.notifications(timeout_s=_LOOK_EVERY_S):
                with contextlib.suppress(ValueError):  # from another program
                    sender, signal = _unpack_signal(message)
                    if sender != self._skip:
                        put(signal)


def pack_signal(signal: Signal, sender: str) -> str:
    """Encode a signal as a notification payload. Only ASCII is used, because the driver cannot decode anything else."""
    fields = json.dumps([sender, *signal], ensure_ascii=False)
    return base64.b64encode(fields.encode("utf-8", "replace")).decode()


def _unpack_signal(message: str) -> tuple[str, Signal]:
    sender, run_id, text = json.loads(base64.b64decode(message))
    return str(sender), Signal(str(run_id), str(text))
