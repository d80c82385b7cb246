"""What is recorded of runs: step by step into a store, read again, replayed, forked.

Importing this package loads nothing; a name is fetched from its module at first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jackfield_records.recording import Recording
    from jackfield_records.recovering import Recovered, recover
    from jackfield_records.replays import events_of, fork, replay

__all__ = ["Recording", "Recovered", "events_of", "fork", "recover", "replay"]

_MODULES = {
    "Recording": "recording",
    "Recovered": "recovering",
    "recover": "recovering",
    "events_of": "replays",
    "fork": "replays",
    "replay": "replays",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
