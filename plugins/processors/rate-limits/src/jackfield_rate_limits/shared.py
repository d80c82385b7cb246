"""Process-wide gates: limits belong to a server, so all agents share its queues."""

from __future__ import annotations

import os
import threading
from pathlib import Path

from jackfield_local_state.ledger import FileLedger, Ledger, MemoryLedger
from jackfield_rate_limits.gate import Clock, Gate
from jackfield_rate_limits.state import State

APPLICATION_ID = 0x4A46524C
"""Identifies a rate limits file in SQLite's application id field."""
VERSION = 1
POLL_S = 0.2
_MOST_GATES = 256


class Gates:
    """Gates by scope. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ledgers: dict[tuple[Path | None, Clock], Ledger[State]] = {}
        self._gates: dict[tuple[Path | None, Clock, str], Gate] = {}

    def gate(self, scope: str, *, path: Path | None, clock: Clock) -> Gate:
        """Return the gate for a scope. Each combination of scope, file and clock has its own gate."""
        key = (path, clock, scope)
        with self._lock:
            gate = self._gates.get(key)
            if gate is None:
                if len(self._gates) >= _MOST_GATES:
                    self._gates = {known: one for known, one in self._gates.items() if one.waiting}
                if (path, clock) not in self._ledgers:
                    self._ledgers[path, clock] = ledger_of(path)
                ledger = self._ledgers[path, clock]
                gate = self._gates[key] = Gate(ledger, scope, clock=clock, poll_s=POLL_S if path else None)
            return gate

    def close(self, path: Path) -> None:
        """Close a file. The next request reopens it."""
        with self._lock:
            ledgers = [one for (its_path, _), one in self._ledgers.items() if its_path == path]
        for ledger in ledgers:
            ledger.close()


def ledger_of(path: Path | None) -> Ledger[State]:
    """Create a ledger in a file, or in memory if `path` is None."""
    if path is None:
        return MemoryLedger(State, is_idle=lambda state: state.is_idle)
    return FileLedger(
        path,
        State,
        application_id=APPLICATION_ID,
        version=VERSION,
        owner="jackfield-rate-limits",
        what="the file of rate limits",
    )


# By process id, because a forked child has its own queues and none of its parent's locks.
_by_process: dict[int, Gates] = {}


def gates() -> Gates:
    """Return the gates of this process, creating them on first use."""
    pid = os.getpid()
    return _by_process.get(pid) or _by_process.setdefault(pid, Gates())
