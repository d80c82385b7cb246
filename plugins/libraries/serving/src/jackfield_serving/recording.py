"""A service's store as its agents see it, which hands over holds and reports every write."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from jackfield.errors import StoreUnavailableError
from jackfield.messages import Message
from jackfield.runs import AgentLike, Recorded, Recorder
from jackfield.stores import RUNNING, Store, StoredRun
from jackfield_records import RecordingStore
from jackfield_records.recording import AgentRecorder, PendingRun, recorder_of


@dataclass(slots=True)
class HeldRun:
    """A run held by this process, for the agent that will continue it."""

    run: StoredRun
    entries: list[str]
    hold: int


@dataclass(frozen=True, kw_only=True)
class ServedRecorder(AgentRecorder):
    """Records an agent's runs in a service's store.

    Attributes:
        served: The store.
    """

    served: ServedStore

    async def load(self, run_id: str | None, messages: Sequence[Message]) -> Recorded | None:  # type: ignore[override]
        """See `Recorder`. A run that has not begun is not read."""
        return self.served.take_pending(run_id) or await super().load(run_id, messages)


class ServedStore(RecordingStore):
    """Wraps a store.

    Args:
        store: The wrapped store.
        on_written: Called with a run's id and the entries just written to its record.
    """

    def __init__(self, store: Store, on_written: Callable[[str, Sequence[str]], None]) -> None:
        super().__init__()
        self.inner = store
        self.content, self.patience_s = store.content, store.patience_s
        self.name = getattr(store, "name", type(store).__name__)
        self._on_written = on_written
        self._held: dict[str, HeldRun] = {}
        self._pending: dict[str, PendingRun] = {}
        self._abandoned: set[str] = set()

    def pass_on(self, held: HeldRun) -> None:
        """Let the next `hold` of the run return this existing hold."""
        self._held[held.run.run_id] = held

    def pass_on_pending(self, pending: PendingRun) -> None:
        """Let the agent begin a run that has already been recorded."""
        self._pending[pending.run.run_id] = pending

    def take_pending(self, run_id: str | None) -> PendingRun | None:
        """Return a run that was recorded here and has not begun, or None."""
        return self._pending.pop(run_id, None) if run_id is not None else None

    def recorder(self, agent: AgentLike) -> Recorder:
        """See `Store`."""
        return ServedRecorder(**vars(recorder_of(agent, self)), served=self)

    def abandon(self, run_id: str) -> None:
        """Refuse to record the run's end from now on, so that another process continues it."""
        self._abandoned.add(run_id)

    async def create(self, run: StoredRun, entries: Sequence[str]) -> int:
        """See `Store`."""
        return await self.inner.create(run, entries)

    async def hold(self, run_id: str) -> int:
        """See `Store`."""
        held = self._held.get(run_id)
        return await self.inner.hold(run_id) if held is None else held.hold

    async def append(self, run_id: str, hold: int, entries: Sequence[str], *, state: str = RUNNING) -> None:
        """See `Store`."""
        if state != RUNNING and run_id in self._abandoned:
            raise StoreUnavailableError(f"run {run_id} is already running in another process")
        self._held.pop(run_id, None)
        await self.inner.append(run_id, hold, entries, state=state)
        if entries:
            self._on_written(run_id, entries)

    async def release(self, run_id: str, hold: int) -> None:
        """See `Store`."""
        self._held.pop(run_id, None)
        self._pending.pop(run_id, None)
        self._abandoned.discard(run_id)
        await self.inner.release(run_id, hold)

    async def read(self, run_id: str, *, after: int = 0) -> tuple[StoredRun, list[str]]:
        """See `Store`."""
        held = self._held.get(run_id)
        if held is None:
            return await self.inner.read(run_id, after=after)
        return replace(held.run, entries=len(held.entries)), held.entries[after:]

    async def runs(
        self, *, session: str | None = None, owner: str | None = None, state: str | None = None, limit: int = 100
    ) -> list[StoredRun]:
        """See `Store`."""
        return await self.inner.runs(session=session, owner=owner, state=state, limit=limit)

    async def delete(self, run_id: str) -> None:
        """See `Store`."""
        await self.inner.delete(run_id)
