"""Watch an index's files: check for changes periodically, and build once they have settled."""

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
_MOST_DOUBLINGS = 30  # beyond five minutes from any pause, and within the range of a float


@dataclass(slots=True)
class Debounce:
    """Decides when changes have settled.

    Attributes:
        most_wait_s: The maximum wait for files that never stop changing.
        built: The fingerprint of the files the index was built from, or None before the first build.
    """

    most_wait_s: float
    built: str | None = None
    _last: str | None = None
    _pending_since: float | None = None

    def is_due(self, fingerprint: str, now: float) -> bool:
        """Return True if the files have changed and are now stable, or have kept changing for too long."""
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
    """Build an index whenever its files change, until cancelled.

    Files are compared by name, size and time. New, changed, renamed and deleted files are noticed, even if a whole
    folder disappears and returns. URLs are checked only by builds. Checking takes at most 5 % of one core's time,
    however many files there are.

    Args:
        index: The index, which must exist.
        build: Updates the index, and returns True on success. After a failure, it is called again after a pause that
            grows up to five minutes.
        interval_s: The pause between two checks.
        most_wait_s: The maximum wait for files that never stop changing.
        why_not: Decides which files in folders are left out; see `expand`.
        clock, sleep: The time source, for tests.

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
                failures = min(failures + 1, _MOST_DOUBLINGS)
                pause = min(_MOST_BACKOFF_S, pause * 2**failures)
        await sleep(pause)


async def _succeeds(index: KnowledgeIndex, build: Callable[[], Awaitable[bool]]) -> bool:
    try:
        return await build()
    except ConfigError:
        if not index.exists:
            raise
        return False  # such as an index that another process is building
