"""Track the attempts at one answer: partial output already delivered, and the cost of failed attempts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from jackfield.events import (
    ModelEvent,
    ModelFinished,
    StreamReset,
    UsageReported,
)
from jackfield.messages import Usage


class Attempts:
    """Watches the events of successive attempts.

    Attributes:
        is_out: True if the consumer has received output since the last reset.
        complete: True if the current attempt finished.
    """

    def __init__(self) -> None:
        self.is_out = False
        self.complete = False
        self._elsewhere = False
        self._in_vain = Usage()
        self._reported: Usage | None = None

    def begin_another(self) -> None:
        """Discard the current attempt because another model will be asked."""
        self._lose()
        self._elsewhere = True

    def seen(self, event: ModelEvent) -> Iterator[ModelEvent]:
        """Yield the events to forward for one event."""
        if event.is_delta:
            self.is_out = True
        match event:
            case StreamReset():
                self._lose()
            case UsageReported(usage):
                self._reported = usage
                if self._elsewhere:
                    event = UsageReported(self._in_vain + usage)
            case ModelFinished():
                self.complete = True
                if self._elsewhere:
                    yield from self._unreported()
                    # The first backend would take this data for its own, and send it back to its server.
                    event = replace(event, data=None)
        yield event

    def _unreported(self) -> Iterator[ModelEvent]:
        if self._reported is None and self._in_vain != Usage():
            yield UsageReported(self._in_vain)

    def _lose(self) -> None:
        self.is_out = self.complete = False
        if self._reported is not None:
            self._in_vain += self._reported
        self._reported = None
