"""Convert events to JSON without secrets, even if a secret is split across streamed chunks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from jackfield.events import FunctionCallDelta, ReasoningDelta, RunEvent, TextDelta
from jackfield.secrets import Secrets
from jackfield_records.eventjson import Json, run_event_to_json

_TEXT_OF = {TextDelta: "text", ReasoningDelta: "text", FunctionCallDelta: "arguments"}


@dataclass
class _Stream:
    """A streamed text whose buffered end may be the beginning of a secret."""

    name: str
    waiting: list[Json] = field(default_factory=list)


class HiddenEvents:
    """Converts events to JSON as they arrive, with placeholders for secrets.

    If the end of a text may be the beginning of a secret, it is buffered together with all later events until the next
    chunk decides.

    Args:
        secrets: The agent's secrets.
    """

    def __init__(self, secrets: Secrets) -> None:
        self._secrets = secrets
        self._queue: list[Json] = []
        self._streams: dict[tuple[object, ...], _Stream] = {}

    def feed(self, event: RunEvent) -> list[Json]:
        """Add an event, and return all events that can be written now, in their original order."""
        json_event = run_event_to_json(event)
        name = _TEXT_OF.get(type(event.event))
        if name is None:
            self._end_streams(event.run_id)
            self._queue.append(self._secrets.hide_fields(json_event))
        else:
            self._queue.append(json_event)
            key = (event.run_id, type(event.event), getattr(event.event, "index", None))
            self._feed_stream(self._streams.setdefault(key, _Stream(name)), json_event)
        if any(stream.waiting for stream in self._streams.values()):
            return []
        return self.rest()

    def rest(self) -> list[Json]:
        """Return the events still buffered. Called when no more will arrive."""
        for stream in self._streams.values():
            self._hide(stream)
        done, self._queue = self._queue, []
        return done

    def _feed_stream(self, stream: _Stream, json_event: Json) -> None:
        stream.waiting.append(json_event)
        text = "".join(piece[stream.name] for piece in stream.waiting)
        if not self._secrets.pending_in(text):
            self._hide(stream)

    def _end_streams(self, run_id: str) -> None:
        for key in [key for key in self._streams if key[0] == run_id]:
            self._hide(self._streams.pop(key))

    def _hide(self, stream: _Stream) -> None:
        waiting, stream.waiting = stream.waiting, []
        pieces = self._secrets.hide_pieces([json_event[stream.name] for json_event in waiting])
        for json_event, piece in zip(waiting, pieces, strict=True):
            json_event[stream.name] = piece


def hidden_events(events: Iterable[RunEvent], secrets: Secrets) -> list[Json]:
    """Convert all events of a run to JSON, with placeholders for secrets."""
    hidden = HiddenEvents(secrets)
    return [json_event for event in events for json_event in hidden.feed(event)] + hidden.rest()
