"""Follow the files of an index: check for changes at intervals, and build once they have settled."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from jackfield.errors import ConfigError
from jackfield.sync import in_worker
from jackfield_documents.expanding import WhyNot
from jackfield_knowledge.index import KnowledgeIndex

_SHARE = 20  # a check of many files is followed by a pause this many times as long
_MOST_BACKOFF_S = 300.0


@dataclass(slots=True)
class Debounce:
    """Decides when changes have settled.

    Attributes:
        most_wait_s: The longest wait for files that never stop changing.
        built: The fingerprint of the files that the index was built from; None before the first build.
    """

    most_wait_s: float
    built: str | None = None
    _last: str | None = None
    _pending_since: float | None = None

    def is_due(self, fingerprint: str, now: float) -> bool:
        """Return True if the files have changed but not since the last check, or keep changing for too long."""
        is_quiet, self._last = fingerprint == self._last, fingerprint
        if fingerprint == self.built:
            self._pending_since = None
            return False
        if self._pending_since is None:
            self._pending_since = now
        return is_quiet or now - self._pending_since >= self.most_wait_s

    def note_built(self, fingerprint: str) -> None:
        """Record the fingerprint taken before a successful build."""
        self.built, self._pending_since = fingerprint, None


async def watch(
    index: KnowledgeIndex,
    build: Callable[[], Awaitable[bool]],
    *,
    interval_s: float = 2.0,
    most_wait_s: float = 30.0,
    why_not: WhyNot | None = None,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> None:
    """Build an index whenever its files change, until it is cancelled.

    Files are compared by name, size and time. New, changed, renamed and deleted files count, even if a whole folder is
    deleted and comes back. URLs are checked only by each build. Checks of files take at most 5 % of the time of one
    core, however many files there are.

    Args:
        index: The index; it must exist.
        build: Brings the index up to date, and returns True if that succeeded. After a failure it is called again,
            after a pause that grows up to five minutes.
        interval_s: The pause between two checks.
        most_wait_s: The longest wait for files that never stop changing.
        why_not: Decides which files of folders are left out; see `expand`.
        clock, sleep: The time, for tests.

    Raises:
        ConfigError: The index no longer exists.
    """
    debounce, failures = Debounce(most_wait_s), 0
    while True:
        started = clock()
        fingerprint = await in_worker(index.fingerprint, why_not)
        pause = max(interval_s, _SHARE * (clock() - started))
        if debounce.is_due(fingerprint, clock()):
            if await _succeeds(index, build):
                debounce.note_built(fingerprint)
                failures = 0
            else:
                failures += 1
                pause = min(_MOST_BACKOFF_S, pause * 2**failures)
        await sleep(pause)


async def _succeeds(index: KnowledgeIndex, build: Callable[[], Awaitable[bool]]) -> bool:
    try:
        return await build()
    except ConfigError:
        if not index.exists:
            raise
        return False  # such as an index that another process is building
