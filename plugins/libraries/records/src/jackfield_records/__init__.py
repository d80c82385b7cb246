"""Record runs in a store step by step, and resume, replay and fork them.

Importing this package loads nothing. Each name is imported from its module on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jackfield_records.recovering import Recovered, recover
    from jackfield_records.replays import Replay, events_of, fork, replay
    from jackfield_records.searching import search_words, searched_text, texts_of
    from jackfield_records.stores import RecordingStore

__all__ = [
    "RecordingStore",
    "Recovered",
    "Replay",
    "events_of",
    "fork",
    "recover",
    "replay",
    "search_words",
    "searched_text",
    "texts_of",
]

_MODULES = {
    "Recovered": "recovering",
    "Replay": "replays",
    "recover": "recovering",
    "events_of": "replays",
    "fork": "replays",
    "replay": "replays",
    "RecordingStore": "stores",
    "search_words": "searching",
    "searched_text": "searching",
    "texts_of": "searching",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
