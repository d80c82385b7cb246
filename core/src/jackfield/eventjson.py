"""Events as JSON, and back: in `jackfield_records.eventjson` now."""

from __future__ import annotations

from jackfield._lazy import fetching

_NAMES = (
    "Event",
    "Json",
    "event_from_json",
    "event_to_json",
    "model_event_from_json",
    "run_event_from_json",
    "run_event_to_json",
)
__getattr__, __dir__ = fetching(__name__, {}, moved=dict.fromkeys(_NAMES, "jackfield_records.eventjson"))
