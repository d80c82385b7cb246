"""Runs of agents: the resources that they open, the observers that follow them, and the stores of their records."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackfield._lazy import fetching
from jackfield.runs._observers import Observer
from jackfield.runs._resources import RunResources

if TYPE_CHECKING:
    from jackfield.runs._records import RUNNING, Store, StoredRun, load_store

__all__ = ["RUNNING", "Observer", "RunResources", "Store", "StoredRun", "load_store"]

# Most runs have no store.
__getattr__, _ = fetching(__name__, dict.fromkeys(("RUNNING", "Store", "StoredRun", "load_store"), "runs._records"))
