"""The base class for stores that use this library's recording."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from jackfield.errors import RunNotFoundError
from jackfield.stores import Store, StoredRun
from jackfield.sync import in_worker
from jackfield_records.searching import search_words, searched_text

if TYPE_CHECKING:
    from jackfield.runs import AgentLike, Recorder

_MOST_SEARCHED = 10_000


class RecordingStore(Store):
    """A store that leaves the format of entries to this library, so that a subclass only stores text."""

    def recorder(self, agent: AgentLike) -> Recorder:
        """Return a recorder for an agent's runs that hides the secrets of the agent and its components."""
        from jackfield_records.recording import recorder_of

        return recorder_of(agent, self)

    async def search(self, text: str, *, owner: str | None = None, limit: int = 20) -> list[StoredRun]:
        """See `Store`. Reads the newest records one by one; stores with a faster search override this method."""
        words = search_words(text)
        matches: list[StoredRun] = []
        for run in await self.runs(owner=owner, limit=_MOST_SEARCHED) if words else ():
            if len(matches) == limit:
                break
            try:
                _, entries = await self.read(run.run_id)
            except RunNotFoundError:  # deleted meanwhile
                continue
            if await in_worker(has_words, entries, words):
                matches.append(run)
        return matches


def has_words(entries: Sequence[str], words: Sequence[str]) -> bool:
    """Return True if a run's question and answers contain every word, as returned by `search_words`."""
    text = searched_text(entries)
    return all(word in text for word in words)
