"""Process-wide ledgers: agents that name the same budget share its money."""

from __future__ import annotations

import os
import threading
from pathlib import Path

from jackfield_budget.account import Account
from jackfield_local_state.ledger import FileLedger, Ledger, MemoryLedger

APPLICATION_ID = 0x4A464247
"""Identifies a budget file in SQLite's application id field."""
VERSION = 1


class Ledgers:
    """Ledgers by file path, plus one in memory for the process. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ledgers: dict[Path | None, Ledger[Account]] = {}

    def ledger(self, path: Path | None) -> Ledger[Account]:
        """Return the ledger stored in a file, or the process's in-memory ledger if `path` is None."""
        with self._lock:
            if path not in self._ledgers:
                self._ledgers[path] = _file_ledger(path) if path else MemoryLedger(Account)
            return self._ledgers[path]


def _file_ledger(path: Path) -> FileLedger[Account]:
    return FileLedger(
        path, Account, application_id=APPLICATION_ID, version=VERSION, owner="jackfield-budget", what="the budget"
    )


# By process id, because a forked child has its own budget and none of its parent's locks.
_by_process: dict[int, Ledgers] = {}


def ledgers() -> Ledgers:
    """Return the ledgers of this process, creating them on first use."""
    pid = os.getpid()
    return _by_process.get(pid) or _by_process.setdefault(pid, Ledgers())
