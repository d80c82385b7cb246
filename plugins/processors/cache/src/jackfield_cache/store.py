"""Answers in an SQLite file shared by threads and processes."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from jackfield_local_state.cachefile import BUSY_S, CacheFile

APPLICATION_ID = 0x4A464341


class Store(CacheFile):
    """Stores answers by key; see `CacheFile`."""

    def __init__(
        self,
        path: Path,
        *,
        ttl_s: float | None,
        max_bytes: int,
        clock: Callable[[], float] = time.time,
        busy_s: float = BUSY_S,
    ) -> None:
        super().__init__(
            path,
            application_id=APPLICATION_ID,
            owner="jackfield-cache",
            what="answers",
            instead="models are asked instead",
            ttl_s=ttl_s,
            max_bytes=max_bytes,
            clock=clock,
            busy_s=busy_s,
        )
