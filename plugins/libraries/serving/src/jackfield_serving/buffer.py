"""The bounded buffer for a run's live events. Readers only hold a cursor into it, at no cost to the buffer."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Sequence

from jackfield.events import (
    FunctionCallDelta,
    MediaDelta,
    ReasoningDelta,
    RunEvent,
    RunFailed,
    RunFinished,
    StreamReset,
    TextDelta,
    TurnFinished,
)
from jackfield_serving.numbering import HALF, STRIDE, Numbered, can_join, cut_delta, join_deltas, width_of

_TEXTS = (TextDelta, ReasoningDelta, FunctionCallDelta)
_ANSWERS = (*_TEXTS, MediaDelta)
_ENDS = (TurnFinished, RunFinished, RunFailed)
_AGAIN_TEXT = "the response is too long to buffer in pieces: the full response follows"


class EventBuffer:
    """A run's latest events, ordered by number.

    When the buffer is full, the deltas of each text are joined, and then recorded steps are dropped, oldest first. An
    unfinished answer is never dropped, but sent again as a whole after a `StreamReset`.

    Args:
        floor: The number before the first event. Earlier events are in the record.
        max_events, max_chars: The buffer's size limits.
    """

    def __init__(self, floor: int, *, max_events: int, max_chars: int) -> None:
        self.floor = floor
        self.last = floor
        self._max_events, self._max_chars = max_events, max_chars
        self._next_check = max_events
        self._numbers: list[int] = []
        self._events: list[RunEvent] = []
        self._chars = 0
        self._cut_runs: set[str] = set()  # runs with answers too long for the numbers between two steps

    def add_step(self, event: RunEvent, index: int) -> None:
        """Add a recorded event, whose entry has this index."""
        if isinstance(event.event, TurnFinished) and event.run_id in self._cut_runs:  # its text is in the record
            self._cut_runs.discard(event.run_id)
            self._add(event, index * STRIDE)
            self._drop_up_to(index * STRIDE)
            return
        self._add(event, index * STRIDE)
        self._chars += 500  # its messages are in memory anyway, as the history of the run

    def pass_entry(self, index: int) -> None:
        """Skip an entry that readers do not receive."""
        self.last = index * STRIDE

    def add(self, event: RunEvent) -> bool:
        """Add a live event. Returns False if its answer is too long to number; readers then get the recorded answer."""
        width = width_of(event.event)
        if self.last % STRIDE + width >= HALF or event.run_id in self._cut_runs:
            self._cut_runs.add(event.run_id)
            return False
        self._add(event, self.last + width)
        self._chars += width
        return True

    def _add(self, event: RunEvent, number: int) -> None:
        self.last = number
        self._numbers.append(number)
        self._events.append(event)
        if len(self._numbers) > self._next_check or self._chars > self._max_chars:
            self._shrink()

    def after(self, cursor: int) -> list[Numbered] | None:
        """Return the events after a number, or None if they start before the buffer."""
        if cursor < self.floor:
            return None
        if cursor >= self.last:  # the reader waits for the next event
            return []
        start = bisect_right(self._numbers, cursor)
        if start == len(self._numbers):
            return []
        rest = [Numbered(*pair) for pair in zip(self._numbers[start:], self._events[start:], strict=True)]
        first = rest[0]
        begin = first.number - width_of(first.event.event)
        if begin < cursor and isinstance(first.event.event, _TEXTS):
            rest[0] = Numbered(first.number, cut_delta(first.event, cursor - begin))
        return rest

    # --- size ---

    def _shrink(self) -> None:
        keep = self._max_events // 4 if self._chars <= self._max_chars else 0
        self._join_deltas()
        self._drop_steps(keep)
        if len(self._numbers) > self._max_events // 2:
            self._thin_out()
        # The next check comes after enough new events, so that a large answer is not joined on every delta.
        self._next_check = len(self._numbers) + self._max_events // 2
        self._chars = 0

    def _join_deltas(self) -> None:
        numbers, pieces = list[int](), list[list[RunEvent]]()
        for number, event in zip(self._numbers, self._events, strict=True):
            if pieces and _can_join(pieces[-1][-1], event):
                pieces[-1].append(event)
                numbers[-1] = number
            else:
                pieces.append([event])
                numbers.append(number)
        self._numbers, self._events = numbers, [_join(piece) for piece in pieces]

    def _drop_steps(self, keep: int) -> None:
        """Drop old events up to a recorded step, keeping at least the latest `keep`."""
        steps = [number for number in self._numbers[: len(self._numbers) - keep] if number % STRIDE == 0]
        if steps:
            self._drop_up_to(steps[-1])

    def _drop_up_to(self, floor: int) -> None:
        """Drop the events up to a recorded step, except for unfinished answers, because agents work in parallel."""
        complete = self._complete()
        self._send_again(
            {
                event.run_id
                for number, event in zip(self._numbers, self._events, strict=True)
                if complete.get(event.run_id, 0) < number <= floor and isinstance(event.event, _ANSWERS)
            }
        )
        end = bisect_right(self._numbers, floor)
        self.floor = floor
        del self._numbers[:end], self._events[:end]

    def _thin_out(self) -> None:
        """Keep only the latest note per topic, and resend answers whose text types alternate too often."""
        latest = {_topic(event): number for number, event in zip(self._numbers, self._events, strict=True)}
        kept = [
            (number, event)
            for number, event in zip(self._numbers, self._events, strict=True)
            if number % STRIDE == 0 or not event.event.is_note or latest[_topic(event)] == number
        ]
        self._numbers, self._events = [number for number, _ in kept], [event for _, event in kept]
        complete = self._complete()
        pieces = Counter(
            event.run_id
            for number, event in kept
            if isinstance(event.event, _TEXTS) and number > complete.get(event.run_id, 0)
        )
        self._send_again({run_id for run_id, count in pieces.items() if count > self._max_events // 8})

    def _complete(self) -> dict[str, int]:
        """Return the number of the event that ended each run's latest complete answer."""
        return {
            event.run_id: number
            for number, event in zip(self._numbers, self._events, strict=True)
            if isinstance(event.event, _ENDS)
        }

    def _send_again(self, run_ids: Collection[str]) -> None:
        """Move these runs' unfinished answers to the end, after a `StreamReset`, with each text as a whole."""
        complete = self._complete()
        last: dict[str, RunEvent] = {}
        texts: dict[tuple[str, type, int], list[RunEvent]] = {}
        numbers, events = list[int](), list[RunEvent]()
        for number, event in zip(self._numbers, self._events, strict=True):
            delta = event.event
            is_moved = event.run_id in run_ids and number > complete.get(event.run_id, 0)
            if is_moved and isinstance(delta, StreamReset):
                texts = {key: some for key, some in texts.items() if key[0] != event.run_id}
            elif is_moved and isinstance(delta, _ANSWERS):
                last[event.run_id] = event
                texts.setdefault((event.run_id, type(delta), getattr(delta, "index", 0)), []).append(event)
            else:
                numbers.append(number)
                events.append(event)
        self._numbers, self._events = numbers, events
        for event in last.values():
            self._append(event._replace(event=StreamReset(_AGAIN_TEXT)))
        for some in texts.values():
            for event in _whole(some):
                self._append(event)

    def _append(self, event: RunEvent) -> None:
        self.last += width_of(event.event)
        self._numbers.append(self.last)
        self._events.append(event)


def _topic(event: RunEvent) -> tuple[object, ...]:
    """Return a note's topic. A later note on the same topic replaces an earlier one."""
    note = event.event
    return event.run_id, type(note), getattr(note, "call_id", ""), getattr(note, "step", "")


def _can_join(first: RunEvent, second: RunEvent) -> bool:
    return first.run_id == second.run_id and can_join(first.event, second.event)


def _join(events: Sequence[RunEvent]) -> RunEvent:
    return events[0] if len(events) == 1 else events[0]._replace(event=join_deltas([one.event for one in events]))


def _whole(events: Sequence[RunEvent]) -> list[RunEvent]:
    """Join the deltas of one text into as few as possible."""
    pieces: list[list[RunEvent]] = []
    for event in events:
        if pieces and _can_join(pieces[-1][-1], event):
            pieces[-1].append(event)
        else:
            pieces.append([event])
    return [_join(piece) for piece in pieces]
