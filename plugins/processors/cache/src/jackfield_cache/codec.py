"""Convert the events of an answer to bytes and back.

The bytes are plain JSON, so reading an untrusted file runs no code.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from jackfield.events import ModelEvent
from jackfield_records.eventjson import event_to_json, model_event_from_json


def encode(events: Iterable[ModelEvent]) -> bytes:
    """Encode events as bytes.

    Raises:
        ValueError: An event contains a value that JSON cannot represent.
    """
    try:
        json_events = [event_to_json(event, with_defaults=False) for event in events]
        return json.dumps(json_events, separators=(",", ":")).encode("ascii")
    except RecursionError as error:
        raise ValueError("event is nested too deeply") from error


def decode(content: bytes) -> list[ModelEvent]:
    """Decode events that `encode` wrote.

    Raises:
        ValueError: The bytes do not encode events.
    """
    try:
        return [model_event_from_json(json_event) for json_event in json.loads(content)]
    except (ValueError, TypeError, RecursionError) as error:
        # The original error may quote the conversation, and this text is logged.
        raise ValueError(f"invalid event data ({type(error).__name__})") from error
