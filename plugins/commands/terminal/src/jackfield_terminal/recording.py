"""Record runs unless the user has disabled recording, without losing an answer when a store fails."""

from __future__ import annotations

import logging
import secrets
import sys
import time
from collections.abc import Awaitable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from jackfield.cli import escape_line
from jackfield.defaults import STORE
from jackfield.errors import JackfieldError, PluginBlockedError, PluginNotFoundError, RunBusyError, StoreError
from jackfield.plugins import Plugins
from jackfield.stores import RUNNING, Store, StoredRun, load_store
from jackfield_records import RecordingStore

T = TypeVar("T")

ONE_SHOT = "run:"
"""Prefix of the sessions of `jackfield run`."""
_CHAT = "chat-"
_TIMEOUT_S = 3.0  # an answer must not wait long for its record
_log = logging.getLogger(__name__)


class BestEffortStore(RecordingStore):
    """Store that forwards to another one. If that fails, the run continues unrecorded.

    The first failure of each run is logged as a warning.

    Args:
        store: The underlying store.
    """

    patience_s = 0.0

    def __init__(self, store: Store) -> None:
        super().__init__()
        self.content = store.content
        self._store = store
        self._unrecorded: set[str] = set()

    def has_recorded(self, run_id: str) -> bool:
        """Return False if the run's record is missing or incomplete."""
        return run_id not in self._unrecorded

    async def create(self, run: StoredRun, entries: Sequence[str]) -> int:
        """See `Store`. Return 0 if the run cannot be recorded."""
        hold = await self._attempt(run.run_id, self._store.create(run, entries))
        return hold or 0

    async def hold(self, run_id: str) -> int:
        """See `Store`."""
        return await self._store.hold(run_id)

    async def append(self, run_id: str, hold: int, entries: Sequence[str], *, state: str = RUNNING) -> None:
        """See `Store`. After a failure, further entries are dropped, and the final state becomes `failed` if possible.

        With any other state, the run would seem interrupted and be resumed, although it has already been answered.
        """
        if self.has_recorded(run_id):
            await self._attempt(run_id, self._store.append(run_id, hold, entries, state=state))
        if not self.has_recorded(run_id) and state != RUNNING and hold:
            with suppress(StoreError):
                await self._store.append(run_id, hold, [], state="failed")
            await self._store.release(run_id, hold)

    async def _attempt(self, run_id: str, work: Awaitable[T]) -> T | None:
        try:
            return await work
        except RunBusyError:  # another process has resumed the run, so this one must stop
            raise
        except StoreError as error:
            self._unrecorded.add(run_id)
            _log.warning("this run is not recorded: %s (JACKFIELD_RECORD=0 switches recording off)", error)
            return None

    async def release(self, run_id: str, hold: int) -> None:
        """See `Store`."""
        if hold:
            await self._store.release(run_id, hold)

    async def read(self, run_id: str, *, after: int = 0) -> tuple[StoredRun, list[str]]:
        """See `Store`."""
        return await self._store.read(run_id, after=after)

    async def runs(
        self, *, session: str | None = None, owner: str | None = None, state: str | None = None, limit: int = 100
    ) -> list[StoredRun]:
        """See `Store`."""
        return await self._store.runs(session=session, owner=owner, state=state, limit=limit)

    async def search(self, text: str, *, owner: str | None = None, limit: int = 20) -> list[StoredRun]:
        """See `Store`."""
        return await self._store.search(text, owner=owner, limit=limit)

    async def rename(self, run_id: str, title: str) -> None:
        """See `Store`."""
        await self._store.rename(run_id, title)

    async def delete(self, run_id: str) -> None:
        """See `Store`."""
        await self._store.delete(run_id)

    async def foreign_file(self) -> Path | None:
        """See `Store`."""
        return await self._store.foreign_file()

    async def aclose(self) -> None:
        """See `Store`."""
        await self._store.aclose()


def configure_store(name: str | None, host: Plugins) -> dict[str, object]:
    """Return the name and settings of a store. If `name` is None, use the default store with the user's settings."""
    settings = host.settings.record
    if name in (None, STORE) and isinstance(settings, Mapping):
        return {"name": STORE, **settings}
    return {"name": name or STORE}


def open_store(name: str | None, host: Plugins) -> Store:
    """Open the store described by `configure_store`.

    Raises:
        ConfigError: A setting of the store is invalid.
        PluginError: The store is not installed or cannot be loaded.
    """
    return load_store(configure_store(name, host), host)


def open_recording(host: Plugins) -> BestEffortStore | None:
    """Return the store that records the command line's runs.

    Returns:
        The store, or None if recording is disabled, no store is installed or allowed, or the store cannot be loaded.
        Only a failure to load it is reported.
    """
    if host.settings.record is False:
        return None
    try:
        settings = configure_store(None, host)
        if settings["name"] == STORE:
            settings.setdefault("timeout_s", _TIMEOUT_S)
        return BestEffortStore(load_store(settings, host))
    except (PluginNotFoundError, PluginBlockedError):
        return None
    except JackfieldError as error:
        sys.stderr.write(f"jackfield: nothing is recorded: {escape_line(str(error))}\n")
        return None


def name_session(prefix: str = _CHAT) -> str:
    """Return a new session name that contains the current time."""
    return f"{prefix}{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(2)}"


def was_recorded(store: Store | None, run_id: str) -> bool:
    """Return True if the complete run is in the store."""
    return store is not None and (not isinstance(store, BestEffortStore) or store.has_recorded(run_id))
