"""Runs of agents: the resources that they open, the observers that follow them, and the stores of their records."""

from jackfield.runs._observers import Observer
from jackfield.runs._records import RUNNING, Store, StoredRun, load_store
from jackfield.runs._resources import RunResources

__all__ = ["RUNNING", "Observer", "RunResources", "Store", "StoredRun", "load_store"]
