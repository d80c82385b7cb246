"""A run's events from its record, numbered for readers that arrive late or in another process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jackfield.events import RunEvent, RunStarted, StreamReset, ToolFinished, ToolStarted, TurnFinished
from jackfield.messages import FunctionCall
from jackfield.stores import StoredRun
from jackfield_records import Replay
from jackfield_records.entries import RESUMED, EntryHead, head_of
from jackfield_serving.numbering import HALF, STRIDE, Numbered
from jackfield_serving.requests import is_internal

_FROM_RECORD_TEXT = "the recorded response follows"
_CONTINUES_TEXT = "the run continues from its last step"


class Reader:
    """Tracks the calls whose start a reader has seen, so that each start is delivered only once.

    Live events before a recorded step are not in the record. A reader that continues there gets the missed
    `ToolStarted` just before the result.
    """

    def __init__(self) -> None:
        self._started: set[tuple[str, str]] = set()
        self._calls: dict[str, dict[str, FunctionCall]] = {}
        self._has_gaps = False

    def note_turn(self, event: RunEvent) -> None:
        """Register a step that the reader already has, or will not get live."""
        self._has_gaps = True
        self._take_turn(event)

    def complete(self, numbered: Numbered) -> list[Numbered]:
        """Return the events to deliver: the event, nothing, or the missing start of its call followed by the event."""
        number, event = numbered
        match event.event:
            case TurnFinished():
                self._take_turn(event)
            case ToolStarted(call_id=call_id):
                if (event.run_id, call_id) in self._started:
                    return []
                self._started.add((event.run_id, call_id))
            case ToolFinished(index=index, call_id=call_id):
                call = self._calls.get(event.run_id, {}).get(call_id)
                is_missing = self._has_gaps and (event.run_id, call_id) not in self._started
                self._started.discard((event.run_id, call_id))
                if is_missing and call is not None and number % STRIDE == 0:
                    return [Numbered(number - 1, event._replace(event=ToolStarted(index, call_id, call))), numbered]
        return [numbered]

    def _take_turn(self, event: RunEvent) -> None:
        if isinstance(event.event, TurnFinished):
            calls = [(one.function_id, one.function_call) for one in event.event.messages if one.function_call]
            self._calls[event.run_id] = {call_id: call for call_id, call in calls if call_id}


class RecordedEvents:
    """The events in a record after a given number.

    A reader that has followed the run live may have the beginning of an answer. The record splits the answer
    differently, so a `StreamReset` precedes it.

    Args:
        run: The run.
        after: The number of the reader's last event, or 0 for none.
        reader: The reader.
    """

    def __init__(self, run: StoredRun, after: int, reader: Reader) -> None:
        self.replay = Replay(run)
        self.entries = 0
        self._run, self._after, self._reader = run, after, reader
        self._has_part = 0 < after % STRIDE < HALF
        self._may_have_parts: set[str] = set()  # of nested runs

    def feed(self, entries: Sequence[str], *, up_to: int | None = None) -> Iterator[Numbered]:
        """Yield the events in the next entries, except for those the reader already has.

        Args:
            entries: The entries after those already fed.
            up_to: The number of the last event to yield. None means no limit.

        Raises:
            StoreError: An entry cannot be read.
        """
        for entry in entries:
            if up_to is not None and self.entries * STRIDE >= up_to:
                return
            self.entries += 1
            end = self.entries * STRIDE
            events = self.replay.feed(entry)
            if events:
                self._reader.note_turn(events[-1])
            if end <= self._after:
                if events and isinstance(events[-1].event, RunStarted) and self._after % STRIDE < HALF:
                    self._may_have_parts.add(events[-1].run_id)
            elif events and not is_internal(events[-1].event):
                yield from self._number(events, end)
            elif self._has_part and head_of(entry) == EntryHead(RESUMED):
                self._has_part = False
                reset = StreamReset(_CONTINUES_TEXT)
                yield Numbered(end, RunEvent(self._run.run_id, 0, self._run.agent, 0, reset))

    def _number(self, events: Sequence[RunEvent], end: int) -> Iterator[Numbered]:
        number = end - HALF
        if self._must_reset(events[-1]):
            yield Numbered(number, events[0]._replace(event=StreamReset(_FROM_RECORD_TEXT)))
        for event in events[:-1]:
            number += 1
            if number <= self._after:
                self._reader.complete(Numbered(number, event))  # the reader has that one
            else:
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
