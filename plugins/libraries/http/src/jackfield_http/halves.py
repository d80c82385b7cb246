"""Join characters split in two: JSON escapes an emoji as two surrogates, which may arrive in separate chunks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from jackfield.events import FunctionCallDelta, ModelEvent, ReasoningDelta, TextDelta
from jackfield_http.jsonbytes import well_formed


class Halves:
    """Buffers the first half of a character until the second arrives, separately for text, reasoning and each call.

    The resulting texts can be encoded as UTF-8. A half without a counterpart becomes U+FFFD.
    """

    def __init__(self) -> None:
        self._held: dict[object, str] = {}

    def mend(self, events: Iterable[ModelEvent]) -> list[ModelEvent]:
        """Return the events with only complete characters."""
        return [mended for event in events for mended in self._mend_one(event)]

    def rest(self) -> list[ModelEvent]:
        """Return events for the halves still buffered at the end of the answer."""
        held, self._held = self._held, {}
        return [_event_of(channel, well_formed(half)) for channel, half in held.items()]

    def _mend_one(self, event: ModelEvent) -> Iterator[ModelEvent]:
        match event:
            case TextDelta() | ReasoningDelta():
                if text := self._join(type(event), event.text):
                    yield type(event)(text)
            case FunctionCallDelta():
                arguments = self._join(event.index, event.arguments)
                yield FunctionCallDelta(event.index, event.id, event.name, arguments)
            case _:
                yield event

    def _join(self, channel: object, text: str) -> str:
        if not text:
            return ""
        whole = self._held.pop(channel, "") + text
        if "\ud800" <= whole[-1] <= "\udbff":
            self._held[channel] = whole[-1]
            whole = whole[:-1]
        return well_formed(whole)


def _event_of(channel: object, text: str) -> ModelEvent:
    if isinstance(channel, int):
        return FunctionCallDelta(channel, arguments=text)
    return ReasoningDelta(text) if channel is ReasoningDelta else TextDelta(text)
