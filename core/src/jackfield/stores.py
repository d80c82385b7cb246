"""Stores, which keep records of runs."""

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
"""The state of a run that has not ended. Without a hold, it was interrupted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRun:
    """A run in a list of runs.

    Attributes:
        run_id: Its id.
        agent: The name of the agent, or its kind if it has none.
        model: The model, as `backend:model`; after a space, the address of its server if the agent named one.
        session: The conversation that it belongs to; '' if it belongs to none.
        parent: The run that it was forked from; ''.
        owner: The identity that a service started it for; ''.
        title: The beginning of the question.
        state: `running`; after that, the reason why it ended, as in `RunFinished`, or `failed`.
        is_held: True if a process runs it now.
        began, changed: When it began, and when its state changed last, in seconds since 1970, UTC, by the clock of the
            store. For people: clocks are set back.
        entries: The number of entries in its record.
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
    """A message to the processes that use a store. An empty one only says that something may have changed.

    Attributes:
        run_id: The run that it is about; '' for any.
        text: The message; ''.
    """

    run_id: str = ""
    text: str = ""


class Store(Configured, ABC):
    """Keeps records of runs: for each run, texts in the order in which they were appended. They never change.

    One instance serves many runs, tasks, threads and event loops at once, and many processes may use the same data. At
    most one of them *holds* a run: the one that created it, or one that took hold of it later. A hold ends with the
    run, and with the process at the latest, without waiting for a clock and without a write. Each hold has a number,
    larger than all before it. A process with an older number has lost the run, and can change nothing.

    A store never looks into an entry. The library `jackfield-records` writes and reads entries: its `RecordingStore`
    is this class with a `recorder`.

    Attributes:
        content: True if the texts of runs may be written. Without them, records contain only names, times and usage,
            and no run can be resumed.
        patience_s: The number of seconds for which a run waits while the store raises `StoreUnavailableError`.
        recover: Agents resume their interrupted runs when their first run begins; see `jackfield_records.recover`.
        reports_writes: `listen` yields an empty signal after each write of another process, so that none must be sent.
    """

    content: bool = True
    patience_s: float = 30.0
    recover: bool = False
    reports_writes: bool = False

    @abstractmethod
    async def create(self, run: StoredRun, entries: Sequence[str]) -> int:
        """Begin a record, and return the number of the hold. Times, `is_held` and `entries` of `run` are ignored.

        Raises:
            StoreError: A run with this id exists, or it cannot be written.
        """

    @abstractmethod
    async def hold(self, run_id: str) -> int:
        """Take hold of a run that is free, and return the number of the hold.

        This changes neither the state of the run nor its entries: the first `append` does.

        Raises:
            RunNotFoundError: No run has this id.
            RunBusyError: Another process or task holds it.
            StoreUnavailableError: The store cannot be used for the moment.
            StoreError: It cannot be written.
        """

    @abstractmethod
    async def append(self, run_id: str, hold: int, entries: Sequence[str], *, state: str = RUNNING) -> None:
        """Append entries, all of them or none, and set the state. They outlast the process once this returns.

        Without entries, it confirms that the hold is still valid; runs do so before they act. After an error, the same
        entries may be sent again, and are stored only once. Any state but `running` ends the hold when it is written.

        Raises:
            RunBusyError: The hold was lost: another one has begun since, or it was released.
            RunNotFoundError: It was deleted.
            StoreUnavailableError: The store cannot be used for the moment.
            StoreError: It cannot be written.
        """

    @abstractmethod
    async def release(self, run_id: str, hold: int) -> None:
        """End a hold, if it has not ended, in whatever state the store is; the record stays as it is.

        Others can take hold of the run from then on: at once, or as soon as they can use the store again. It raises
        nothing and waits for nothing, because a run that ends for lack of a store must be free for the next process.
        """

    @abstractmethod
    async def read(self, run_id: str, *, after: int = 0) -> tuple[StoredRun, list[str]]:
        """Return a run with its entries, oldest first; without the first `after` of them.

        Raises:
            RunNotFoundError: No run has this id.
            StoreError: It cannot be read.
        """

    @abstractmethod
    async def runs(
        self, *, session: str | None = None, owner: str | None = None, state: str | None = None, limit: int = 100
    ) -> list[StoredRun]:
        """Return the runs that were created last, the newest first; only those of a session, an owner or a state.

        Raises:
            StoreError: They cannot be read.
        """

    async def search(
        self,
        text: str,  # noqa: ARG002 - for stores that can
        *,
        owner: str | None = None,  # noqa: ARG002
        limit: int = 20,  # noqa: ARG002
    ) -> list[StoredRun]:
        """Return the runs with every word of a text in their questions and answers, the newest first; of one owner.

        Upper and lower case are the same, and a word may be part of a longer one. A store need not offer this.

        Raises:
            StoreError: The store cannot search, or cannot be read.
        """
        raise StoreError(f"the store {getattr(self, 'name', type(self).__name__)} cannot search its runs")

    async def rename(self, run_id: str, title: str) -> None:  # noqa: ARG002 - for stores that can
        """Give a run another title, also while a process holds it. A store need not offer this.

        Raises:
            RunNotFoundError: No run has this id.
            StoreError: The store cannot rename runs, or cannot be written.
        """
        raise StoreError(f"the store {getattr(self, 'name', type(self).__name__)} cannot rename its runs")

    @abstractmethod
    async def delete(self, run_id: str) -> None:
        """Delete a run.

        Raises:
            RunNotFoundError: No run has this id.
            RunBusyError: Another process or task holds it.
            StoreError: It cannot be written.
        """

    async def send(self, run_id: str, text: str = "") -> None:  # noqa: ARG002 - for stores that can
        """Send a signal to every other process that listens at the moment. A signal may get lost. It is not recorded.

        A store need not offer this.

        Args:
            run_id: The run that it is about.
            text: The message, of at most 4,000 bytes in UTF-8.

        Raises:
            StoreError: The store sends no signals, or cannot be used.
        """
        raise StoreError(f"the store {getattr(self, 'name', type(self).__name__)} sends no signals")

    def listen(self) -> AsyncIterator[Signal]:
        """Yield an empty signal once it listens, and then the signals of other processes as they arrive.

        After an outage of the store it continues, with an empty signal. A store need not offer this.

        Raises:
            StoreError: The store sends no signals, or cannot be used.
        """
        raise StoreError(f"the store {getattr(self, 'name', type(self).__name__)} sends no signals")

    @abstractmethod
    def recorder(self, agent: AgentLike) -> Recorder:
        """Return a recorder of an agent's runs in this store; an agent asks for it once."""

    async def foreign_file(self) -> Path | None:
        """Return the file of the records if this user has not created it on this machine; None for all others.

        Calls that wait in such a file were planned by strangers. The command line asks before it resumes them.

        Raises:
            StoreError: It cannot be read.
        """
        return None

    async def aclose(self) -> None:
        """End all holds and close everything that is open; the next call opens it again."""


def load_store(entry: object, host: Plugins) -> Store:
    """Return the store that an entry names: a store, a name, or a dict with `name` and settings.

    Raises:
        ConfigError: It is none of these, or a setting is not valid.
        PluginError: It is not installed, or cannot be loaded.
    """
    if isinstance(entry, Store):
        return entry
    settings = {"name": entry} if isinstance(entry, str) else entry
    if not isinstance(settings, dict) or not isinstance(settings.get("name"), str):
        raise ConfigError("store must be a store, the name of one, or a dict with its `name` and settings")
    host = checked_host(host)
    row = host.find("store", settings["name"])
    given = {key: value for key, value in settings.items() if key != "name"}
    made: Store = host.make(row, {**host.settings.options_of(row.kind, row.address), **given}, Store)
    return made
