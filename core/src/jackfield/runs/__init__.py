"""Runs of agents: the resources that they open, and the observers that follow them."""

from __future__ import annotations

from jackfield._lazy import fetching
from jackfield.runs._observers import Observer
from jackfield.runs._resources import RunResources

__all__ = ["Observer", "RunResources"]

_MOVED = dict.fromkeys(("RUNNING", "Store", "StoredRun", "load_store"), "jackfield_records.stores")
__getattr__, _ = fetching(__name__, {}, moved=_MOVED)
