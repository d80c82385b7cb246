"""A run driven by this process, with its events as they happen, numbered as in the record."""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jackfield.agents import CancelToken
from jackfield.events import (
    PluginEvent,
    ResponseReplaced,
    RunEvent,
    RunFailed,
    RunFinished,
    RunStarted,
)
from jackfield.stores import StoredRun
from jackfield_records.entries import WITHOUT_EVENT, EntryHead, head_of, step_in
from jackfield_serving.buffer import EventBuffer
from jackfield_serving.limits import ServingLimits
from jackfield_serving.numbering import STRIDE, Numbered
from jackfield_serving.questions import QUESTION, Questions
from jackfield_serving.reading import PAUSES
from jackfield_serving.requests import Answers, Request, is_internal
from jackfield_serving.views import WaitingCall

_REPEATED = (RunStarted, ResponseReplaced)
_WITHOUT_EVENTS = WITHOUT_EVENT | {""}


@dataclass(slots=True)
class _Entry:
    """An entry that has been written, but whose event has not arrived yet."""

    index: int
    run_id: str
    name: str
    text: str


class LiveRun:
    """A run in this process, from its start or resumption to its end or pause.

    Attributes:
        run, run_id: The run as it was when this process took over, and its id.
        agent: The agent's name in the service.
        request: The request, apart from its messages.
        answers: The answers that the run continues with.
        cancel: Cancels the run from outside.
        is_over: True if the run has ended or paused, or is no longer driven by this process. No more events will
            follow.
        is_queued: True while the run waits for a free slot.
        is_resumed: True if the run began earlier, in this or another process.
        deps: The tools' dependencies.
        questions: The unanswered questions of running calls.
    """

    def __init__(
        self, run: StoredRun, agent: str, request: Request, *, entries: Sequence[str], limits: ServingLimits
    ) -> None:
        self.run, self.run_id, self.agent, self.request = run, run.run_id, agent, request
        self.answers = Answers()
        self.cancel = CancelToken()
        self.is_over = False
        self.is_queued = True
        self.is_resumed = False
        self.deps: Any = None
        self.results: dict[str, Any] = {}
        self.questions = Questions(self._publish_question)
        self.task: asyncio.Task[None] | None = None
        self.end: RunFinished | RunFailed | None = None
        self._buffer = EventBuffer(
            len(entries) * STRIDE, max_events=limits.buffer_events, max_chars=limits.buffer_chars
        )
        self._entries = len(entries)
        self._unmatched: deque[_Entry] = deque()
        self._early: defaultdict[tuple[str, str], int] = defaultdict(int)
        heads = [head_of(entry) for entry in entries]
        self._nested = {head.below: head.begins for head in heads if head.begins}
        self._old_runs = {*self._nested.values()}
        self._opening: dict[str, RunEvent] = {}  # nested runs whose first entry has not arrived
        # A resumed agent first repeats the finished steps.
        beginnings = [place for place, head in enumerate(heads) if head == EntryHead("RunStarted")]
        has_steps = any(head.event == "TurnFinished" for head in heads[max(beginnings, default=0) :])
        self._repeats = {run.run_id, *self._old_runs} if has_steps else set[str]()
        self._labels: dict[str, tuple[str, int]] = {run.run_id: (agent, 0)}
        self._readers: list[asyncio.Future[None]] = []

    # --- for readers ---

    def after(self, cursor: int) -> list[Numbered] | None:
        """Return the live events after a number, or None if they start before the buffer."""
        return self._buffer.after(cursor)

    @property
    def is_paused(self) -> bool:
        """True if the run waits for answers, so that any process may continue it."""
        return isinstance(self.end, RunFinished) and self.end.stop_reason in PAUSES

    @property
    def entries(self) -> int:
        """The number of entries in the run's record, as far as this process knows."""
        return self._entries

    @property
    def floor(self) -> int:
        """The number before the first live event. Earlier events are in the record."""
        return self._buffer.floor

    async def changed(self) -> None:
        """Wait for the next event or the end."""
        if self.is_over:
            return
        reader = asyncio.get_running_loop().create_future()
        self._readers.append(reader)
        try:
            await reader
        finally:
            if not reader.done() or reader.cancelled():
                self._readers = [one for one in self._readers if one is not reader]

    def _wake(self) -> None:
        if not self._readers:
            return
        readers, self._readers = self._readers, []
        for reader in readers:
            if not reader.done():
                reader.set_result(None)

    def close(self) -> None:
        """Publish all outstanding events, and mark the end."""
        self._flush(len(self._unmatched))
        self.is_over = True
        self._wake()

    # --- for the run ---

    def _publish_question(self, question: WaitingCall) -> None:
        data = {"call_id": question.call_id, "name": question.call.name, "arguments": question.call.arguments}
        agent, depth = self._labels[self.run_id]
        self._buffer.add(RunEvent(self.run_id, 0, agent, depth, PluginEvent(QUESTION, data)))
        self._wake()

    def publish_start(self, event: RunEvent) -> None:
        """Publish a new run's first event, which is also its first entry."""
        self._buffer.floor = 0
        self._buffer.add_step(event, 1)
        self._buffer.pass_entry(self._entries)

    def note_written(self, entries: Sequence[str]) -> None:
        """Register written entries, whose events have arrived or will arrive soon."""
        for text in entries:
            self._entries += 1
            head = head_of(text)
            if head.begins:
                self._nested[head.below] = head.begins
            run_id = self._nested.get(head.below, "") if head.below else self.run_id
            self._unmatched.append(_Entry(self._entries, run_id, head.event, text))
        while self._unmatched and self._unmatched[0].name in _WITHOUT_EVENTS:
            self._buffer.pass_entry(self._unmatched.popleft().index)

    def publish(self, event: RunEvent) -> None:
        """Publish an event from the agent."""
        inner = event.event
        if self._opening and event.run_id in self._opening:
            self._open(event.run_id)
        if inner.is_recorded:
            self._publish_step(event)
        elif isinstance(inner, _REPEATED) and self._is_old(event, inner):
            return
        else:
            self._buffer.add(event)
        self._wake()

    def _is_old(self, event: RunEvent, inner: object) -> bool:
        """Return True for an event that only repeats the beginning of a run, which readers get from the record."""
        run_id = event.run_id
        if isinstance(inner, RunStarted):
            self._labels[run_id] = (event.agent, event.depth)
            if event.depth and run_id not in self._old_runs:
                self._opening[run_id] = event
            return True
        is_old = run_id in self._repeats
        self._repeats.discard(run_id)
        return is_old

    def _open(self, run_id: str) -> None:
        """Publish the start of a nested run once its entry has been written."""
        start = self._opening.pop(run_id)
        position = self._find(run_id, "RunStarted")
        if position is None:
            self._buffer.add(start)
            return
        self._flush(position)
        self._buffer.add_step(start, self._unmatched.popleft().index)

    def _find(self, run_id: str, name: str) -> int | None:
        for position, entry in enumerate(self._unmatched):
            if entry.run_id == run_id and entry.name == name:
                return position
        return None

    def _publish_step(self, event: RunEvent) -> None:
        """Publish a recorded event. Its entry has already been written, unless it is a note."""
        name = type(event.event).__name__
        key = (event.run_id, name)
        position = self._find(*key)
        if position is not None:
            self._flush(position)
            entry = self._unmatched.popleft()
            if is_internal(event.event):
                self._buffer.pass_entry(entry.index)
            else:
                self._buffer.add_step(event, entry.index)
        elif self._early[key] < 0:  # its entry came first, and was published in order
            self._early[key] += 1
            return
        elif event.event.is_note:  # it is written with the next step
            self._early[key] += 1
            self._buffer.add(event)
        elif not isinstance(event.event, RunFailed) and event.run_id not in self._old_runs:
            self._buffer.add(event)  # a run continued by another process has not failed
        if event.depth == 0:
            self._take_end(event, is_written=position is not None)

    def _take_end(self, event: RunEvent, *, is_written: bool) -> None:
        if is_written and isinstance(event.event, RunFinished | RunFailed):
            self.end = event.event

    def _flush(self, count: int) -> None:
        """Publish the first unmatched entries, whose events were overtaken or will never arrive."""
        for _ in range(count):
            entry = self._unmatched.popleft()
            key = (entry.run_id, entry.name)
            if self._early[key] > 0:  # a note that readers already have
                self._early[key] -= 1
                self._buffer.pass_entry(entry.index)
            elif entry.name == "RunStarted" or entry.name in _WITHOUT_EVENTS:
                self._buffer.pass_entry(entry.index)
            else:
                self._early[key] -= 1
                self._publish_entry(entry)

    def _publish_entry(self, entry: _Entry) -> None:
        event = step_in(entry.text)
        if is_internal(event):
            self._buffer.pass_entry(entry.index)
            return
        agent, depth = self._labels.get(entry.run_id, (self.agent, 1))
        placed = RunEvent(entry.run_id, 0, agent, depth, event)
        self._buffer.add_step(placed, entry.index)
        if depth == 0:
            self._take_end(placed, is_written=True)
