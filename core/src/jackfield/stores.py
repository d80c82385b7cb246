"""Stores, which hold run records."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from jackfield.config import Configured
from jackfield.errors import ConfigError, StoreError
from jackfield.plugins import Plugins
from jackfield.plugins._host import checked_host

if TYPE_CHECKING:
    from jackfield.runs._run import AgentLike, Recorder

RUNNING = "running"
"""The state of a run that has not ended. If no process holds the run, it was interrupted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRun:
    """A run as listed by a store.

    Attributes:
        run_id: The run's id.
        agent: The agent's name, or its kind if it has no name.
        model: The model, as `backend:model`. If the agent specified a server, the server's address follows after a
            space.
        session: The run's conversation, or '' if it has none.
        parent: The run from which this run was forked, or '' if it was not forked.
        owner: The user for whom a service started the run, or '' if there is none.
        title: The start of the question.
        state: `running` until the run ends, then the reason why it ended, as in `RunFinished`, or `failed`.
        is_held: True if a process holds the run.
        began, changed: The times when the run started and when its state last changed, as Unix timestamps in seconds
            from the store's clock. Only use them for display, because clocks may be set back.
        entries: The number of entries in the run's record.
    """

    run_id: str
    agent: str = ""
    model: str = ""
    session: str = ""
    parent: str = ""
    owner: str = ""
    title: str = ""
    state: str = RUNNING
    is_held: bool = False
    began: float = 0.0
    changed: float = 0.0
    entries: int = 0


class Signal(NamedTuple):
    """A message to the processes that use a store. An empty signal only says that something may have changed.

    Attributes:
        run_id: The run that the signal concerns, or '' for any run.
        text: The message, or '' if there is none.
    """

    run_id: str = ""
    text: str = ""


class Store(Configured, ABC):
    """Store for run records. A record is an append-only list of strings.

    One instance serves many runs, tasks, threads and event loops concurrently, and many processes may use the same
    data. At most one process *holds* a run: the process that created the run, or a process that took the hold later. A
    hold ends with the run, or at the latest with the process. Ending a hold requires neither a timeout nor a write.
    Holds are numbered in ascending order. A process whose hold is outdated has lost the run and can no longer change
    it.

    Stores never interpret entries. The `jackfield-records` library writes and reads entries. The library's
    `RecordingStore` adds a `recorder` to this class.

    Attributes:
        content: True if the text of runs may be written. If False, records only contain names, times and usage, and
            runs cannot be resumed.
        patience_s: The number of seconds that a run waits while the store raises `StoreUnavailableError`.
        recover: True if agents resume their interrupted runs when their first run starts; see
            `jackfield_records.recover`.
        reports_writes: True if `listen` yields an empty signal after each write by another process, which makes sending
            empty signals unnecessary.
    """

    content: bool = True
    patience_s: float = 30.0
    recover: bool = False
    reports_writes: bool = False

    @abstractmethod
    async def create(self, run: StoredRun, entries: Sequence[str]) -> int:
        """Create a record and return its hold's number. The times, `is_held` and `entries` in `run` are ignored.

        Raises:
            StoreError: A run with this id exists, or the record cannot be written.
        """

    @abstractmethod
    async def hold(self, run_id: str) -> int:
        """Take hold of a run that no process holds, and return the hold's number.

        The run's state and entries do not change until the first `append`.

        Raises:
            RunNotFoundError: No run has this id.
            RunBusyError: Another process or task holds the run.
            StoreUnavailableError: The store is temporarily unavailable.
            StoreError: The record cannot be written.
        """

    @abstractmethod
    async def append(self, run_id: str, hold: int, entries: Sequence[str], *, state: str = RUNNING) -> None:
        """Append the entries atomically and set the state.

        Once this method returns, both survive a crash of the process.

        Without entries, the call only confirms that the hold is still valid. Runs do this before they act. After an
        error, the same entries may be passed again and are still stored only once. Writing any state other than
        `running` ends the hold.

        Raises:
            RunBusyError: The hold was lost because a newer hold has started or because the hold was released.
            RunNotFoundError: The run was deleted.
            StoreUnavailableError: The store is temporarily unavailable.
            StoreError: The record cannot be written.
        """

    @abstractmethod
    async def release(self, run_id: str, hold: int) -> None:
        """End a hold if it has not ended yet, even if the store is unavailable. The record does not change.

        Other processes can take the hold immediately, or as soon as they can use the store again. This method never
        raises or waits, because a run that ends while the store is unavailable must be free for the next process.
        """

    @abstractmethod
    async def read(self, run_id: str, *, after: int = 0) -> tuple[StoredRun, list[str]]:
        """Return a run and its entries, oldest first, skipping the first `after` entries.

        Raises:
            RunNotFoundError: No run has this id.
            StoreError: The record cannot be read.
        """

    @abstractmethod
    async def runs(
        self, *, session: str | None = None, owner: str | None = None, state: str | None = None, limit: int = 100
    ) -> list[StoredRun]:
        """Return the most recent runs, newest first, optionally filtered by session, owner or state.

        Raises:
            StoreError: The runs cannot be read.
        """

    async def search(
        self,
        text: str,  # noqa: ARG002 - for overrides
        *,
        owner: str | None = None,  # noqa: ARG002
        limit: int = 20,  # noqa: ARG002
    ) -> list[StoredRun]:
        """Return the runs that contain every word in `text`, newest first, optionally filtered by owner.

        The search covers questions and answers, ignores case, and also finds words inside longer words. Implementing
        this method is optional.

        Raises:
            StoreError: The store does not support search, or cannot be read.
        """
        raise StoreError(f"the store {getattr(self, 'name', type(self).__name__)} does not support searching runs")

    async def rename(self, run_id: str, title: str) -> None:  # noqa: ARG002 - for overrides
        """Change a run's title, even while a process holds the run. Implementing this method is optional.

        Raises:
            RunNotFoundError: No run has this id.
            StoreError: The store does not support renaming, or cannot be written.
        """
        raise StoreError(f"the store {getattr(self, 'name', type(self).__name__)} does not support renaming runs")

    @abstractmethod
    async def delete(self, run_id: str) -> None:
        """Delete a run.

        Raises:
            RunNotFoundError: No run has this id.
            RunBusyError: Another process or task holds the run.
            StoreError: The record cannot be written.
        """

    async def send(self, run_id: str, text: str = "") -> None:  # noqa: ARG002 - for overrides
        """Send a signal to all other processes that are listening. Signals may get lost and are not recorded.

        Implementing this method is optional.

        Args:
            run_id: The run that the signal concerns.
            text: The message, at most 4,000 bytes in UTF-8.

        Raises:
            StoreError: The store does not support signals, or is unavailable.
        """
        raise StoreError(f"the store {getattr(self, 'name', type(self).__name__)} does not support signals")

    def listen(self) -> AsyncIterator[Signal]:
        """Yield an empty signal once listening has started, then other processes' signals as they arrive.

        After a store outage, listening resumes with an empty signal. Implementing this method is optional.

        Raises:
            StoreError: The store does not support signals, or is unavailable.
        """
        raise StoreError(f"the store {getattr(self, 'name', type(self).__name__)} does not support signals")

    @abstractmethod
    def recorder(self, agent: AgentLike) -> Recorder:
        """Return a recorder for an agent's runs in this store. Each agent calls this method once."""

    async def foreign_file(self) -> Path | None:
        """Return the file with the records if another user or another machine created it, otherwise None.

        Pending calls in such a file are not trusted, so the command line asks before it resumes them.

        Raises:
            StoreError: The record cannot be read.
        """
        return None

    async def aclose(self) -> None:
        """End all holds and close all open resources. The next call reopens them."""


def load_store(entry: object, host: Plugins) -> Store:
    """Resolve an entry to a store. The entry is a store object, a name, or a dict with `name` and settings.

    Raises:
        ConfigError: The entry is not in one of these forms, or a setting is not valid.
        PluginError: The store is not installed or cannot be loaded.
    """
    if isinstance(entry, Store):
        return entry
    settings = {"name": entry} if isinstance(entry, str) else entry
    if not isinstance(settings, dict) or not isinstance(settings.get("name"), str):
        raise ConfigError("store must be a store, a store's name, or a dict with `name` and settings")
    host = checked_host(host)
    row = host.find("store", settings["name"])
    given = {key: value for key, value in settings.items() if key != "name"}
    made: Store = host.make(row, {**host.settings.options_of(row.kind, row.address), **given}, Store)
    return made
