"""Record runs unless the user has switched that off, and never lose an answer because a store fails."""

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
"""The beginning of the sessions of `jackfield run`."""
_CHAT = "chat-"
_TIMEOUT_S = 3.0  # an answer must not wait long for its record
_log = logging.getLogger(__name__)


class BestEffortStore(RecordingStore):
    """Records in another store while that works. A run that it cannot record continues without a record.

    The first failure of a run is logged as a warning.

    Args:
        store: The other store.
    """

    patience_s = 0.0

    def __init__(self, store: Store) -> None:
        super().__init__()
        self.content = store.content
        self._store = store
        self._unrecorded: set[str] = set()

    def has_recorded(self, run_id: str) -> bool:
        """Return True unless the record of a run has gaps."""
        return run_id not in self._unrecorded

    async def create(self, run: StoredRun, entries: Sequence[str]) -> int:
        """See `Store`; gives 0 for a run that is not recorded."""
        hold = await self._attempt(run.run_id, self._store.create(run, entries))
        return hold or 0

    async def hold(self, run_id: str) -> int:
        """See `Store`."""
        return await self._store.hold(run_id)

    async def append(self, run_id: str, hold: int, entries: Sequence[str], *, state: str = RUNNING) -> None:
        """See `Store`; entries of a run with gaps are dropped, and its state becomes `failed` if that can be written.

        Otherwise the run would look interrupted, and be resumed although it already has an answer.
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
        except RunBusyError:  # another process has resumed the run, and this one must not act for it
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
        """See `Store`; without the runs of other chats if they cannot be read."""
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
    """Return the name and settings of a store; None means the default one, to which the user's settings apply."""
    settings = host.settings.record
    if name in (None, STORE) and isinstance(settings, Mapping):
        return {"name": STORE, **settings}
    return {"name": name or STORE}


def open_store(name: str | None, host: Plugins) -> Store:
    """Return the store that `configure_store` describes.

    Raises:
        ConfigError: A setting of the store does not fit.
        PluginError: The store is not installed, or cannot be loaded.
    """
    return load_store(configure_store(name, host), host)


def open_recording(host: Plugins) -> BestEffortStore | None:
    """Return the store that records runs of the command line.

    Returns:
        None if the user has switched recording off, no store is installed or allowed, or it cannot be loaded; only
        the last is reported.
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
    """Return a new name for a session, which says when it began."""
    return f"{prefix}{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(2)}"


def was_recorded(store: Store | None, run_id: str) -> bool:
    """Return True if the whole run is in the store."""
    return store is not None and (not isinstance(store, BestEffortStore) or store.has_recorded(run_id))
