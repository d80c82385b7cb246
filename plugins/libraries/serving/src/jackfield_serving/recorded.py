"""Events of a run from its record, numbered for readers that come late, or to another process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jackfield.events import RunEvent, RunStarted, StreamReset, ToolStarted, TurnFinished
from jackfield.stores import StoredRun
from jackfield_records import Replay
from jackfield_serving.numbering import HALF, STRIDE, Numbered
from jackfield_serving.requests import is_internal

_FROM_RECORD_TEXT = "the answer follows as it was recorded"
_CONTINUES_TEXT = "the run continues from its last step"


class RecordedEvents:
    """The events of a record after a number.

    A reader that has followed the run live may have the beginning of an answer. The record has the answer in other
    pieces, so a `StreamReset` comes before it.

    Args:
        run: The run.
        after: The number of the last event that the reader has; 0 for none.
        started: The ids of calls of which the reader has the `ToolStarted`.
    """

    def __init__(self, run: StoredRun, after: int, started: set[str]) -> None:
        self.replay = Replay(run)
        self.entries = 0
        self._run, self._after, self._started = run, after, started
        self._has_part = 0 < after % STRIDE < HALF
        self._may_have_parts: set[str] = set()  # of nested runs

    def feed(self, entries: Sequence[str], *, up_to: int | None = None) -> Iterator[Numbered]:
        """Yield the events of the next entries, without those that the reader has.

        Args:
            entries: The entries after those that were fed before.
            up_to: The number of the last event; later entries are left out. None for all.

        Raises:
            StoreError: An entry cannot be read.
        """
        for entry in entries:
            if up_to is not None and self.entries * STRIDE >= up_to:
                return
            self.entries += 1
            end = self.entries * STRIDE
            events = self.replay.feed(entry)
            if end <= self._after:
                if events and isinstance(events[-1].event, RunStarted) and self._after % STRIDE < HALF:
                    self._may_have_parts.add(events[-1].run_id)
            elif events and not is_internal(events[-1].event):
                yield from self._number(events, end)
            elif self._has_part and entry.startswith('{"event": "Resumed"'):
                self._has_part = False
                reset = StreamReset(_CONTINUES_TEXT)
                yield Numbered(end, RunEvent(self._run.run_id, 0, self._run.agent, 0, reset))

    def _number(self, events: Sequence[RunEvent], end: int) -> Iterator[Numbered]:
        number = end - HALF
        if self._must_reset(events[-1]):
            yield Numbered(number, events[0]._replace(event=StreamReset(_FROM_RECORD_TEXT)))
        for event in events[:-1]:
            number += 1
            is_known = isinstance(event.event, ToolStarted) and event.event.call_id in self._started
            if number > self._after and not is_known:
                yield Numbered(number, event)
        yield Numbered(end, events[-1])

    def _must_reset(self, last: RunEvent) -> bool:
        if not isinstance(last.event, TurnFinished):
            return False
        if last.depth == 0:
            has_part, self._has_part = self._has_part, False
            return has_part
        has_part = last.run_id in self._may_have_parts
        self._may_have_parts.discard(last.run_id)
        return has_part
