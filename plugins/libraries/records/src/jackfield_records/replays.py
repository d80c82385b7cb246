"""Replay recorded runs, and fork them."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain

from jackfield.errors import StoreError
from jackfield.events import (
    FunctionCallDelta,
    HandedOff,
    MediaDelta,
    ModelFinished,
    ReasoningDelta,
    RunEvent,
    RunFinished,
    RunStarted,
    TextDelta,
    ToolFinished,
    ToolStarted,
    TurnFinished,
    TurnStarted,
    UsageReported,
)
from jackfield.messages import ContentItem, FunctionCall, Message
from jackfield.stores import RUNNING, Store, StoredRun
from jackfield_records.entries import Step
from jackfield_records.progress import EntryReader, Progress, progress_of


def events_of(run: StoredRun, entries: Iterable[str]) -> list[RunEvent]:
    """Reconstruct a recorded run's events, without asking a model or calling a tool.

    Each answer is yielded as a whole. Events that are not recorded (tool progress, failed attempts) are missing.

    Raises:
        StoreError: An entry cannot be read, or the record has no content.
    """
    replay = Replay(run)
    return [event for entry in entries for event in replay.feed(entry)]


class Replay:
    """Turns a record's entries into the events of its runs, one entry at a time; see `events_of`.

    Args:
        run: The run.

    Attributes:
        progress: The run's progress after the last entry.
    """

    def __init__(self, run: StoredRun) -> None:
        self.progress = Progress(run_id=run.run_id, agent=run.agent)
        self._reader = EntryReader(self.progress)
        self._numbers, self._labels = Counter[int](), dict[int, str]()
        self._calls: dict[int, dict[str, FunctionCall]] = {}

    def feed(self, entry: str) -> list[RunEvent]:
        """Return the events for the next entry, or [] if the entry is not an event.

        Raises:
            StoreError: The entry cannot be read, or the record has no content.
        """
        run, step = self._reader.read(entry)
        return [] if step is None else [self._numbered(run, event) for event in self._in_full(run, step)]

    def settle(self) -> None:
        """Add the usage of nested runs to `progress`. Called after the last entry."""
        self._reader.settle()

    def _numbered(self, run: Progress, event: Step) -> RunEvent:
        self._numbers[run.number] += 1
        if isinstance(event, HandedOff):
            self._labels[run.number] = event.to
        elif isinstance(event, RunStarted):
            self._labels.pop(run.number, None)
        label = self._labels.get(run.number, run.agent)
        return RunEvent(run.run_id, self._numbers[run.number], label, run.depth, event)

    def _in_full(self, run: Progress, event: Step) -> list[Step]:
        """Expand a step to the events that a live run would have, including those without an entry of their own."""
        match event:
            case TurnFinished():
                calls = [(one.function_id, one.function_call) for one in event.messages if one.function_call]
                self._calls[run.number] = {call_id: call for call_id, call in calls if call_id}
                return [TurnStarted(event.turn), *_deltas(event), event]
            case ToolFinished():
                call = self._calls.get(run.number, {}).get(event.call_id) or _call_of(event, run.now())
                return [ToolStarted(event.index, event.call_id, call), event]
            case RunFinished():  # a recorded end has only what is not in the steps before it
                return [replace(event, messages=run.now())]
        return [event]


async def replay(store: Store, run_id: str) -> AsyncIterator[RunEvent]:
    """Yield a recorded run's events; see `events_of`.

    Raises:
        RunNotFoundError: There is no such run.
        StoreError: The run's record cannot be read.
    """
    for event in events_of(*await store.read(run_id)):
        yield event


async def fork(store: Store, run_id: str, *, at: int | None = None) -> str:
    """Create a run from the first entries of another run's record, and return its id.

    The new run can be resumed like any other, and is not affected by later entries of the original.

    Args:
        store: The original run's store.
        run_id: The original run's id.
        at: The number of entries to copy, at least 1. None copies all.

    Raises:
        RunNotFoundError: There is no such run.
        StoreError: The original run has fewer entries, or a record cannot be read or written.
    """
    run, entries = await store.read(run_id)
    if at is not None and not 1 <= at <= len(entries):
        raise StoreError(f"run {run_id} cannot be forked at step {at}: it has steps 1 to {len(entries)}")
    kept = entries[:at]
    progress_of(kept)
    new = replace(run, run_id=uuid.uuid4().hex, parent=run_id, state=RUNNING)
    hold = await store.create(new, kept)
    await store.append(new.run_id, hold, [], state="forked")
    return new.run_id


def _deltas(turn: TurnFinished) -> list[Step]:
    """Convert an answer to a model's events."""
    said = chain.from_iterable(map(_said, turn.messages))
    made = [(message.function_id or "", message.function_call) for message in turn.messages if message.function_call]
    calls = [FunctionCallDelta(index, its, call.name, call.arguments) for index, (its, call) in enumerate(made)]
    return [*said, *calls, UsageReported(turn.usage), ModelFinished("tool_calls" if calls else "stop")]


def _said(message: Message) -> Iterator[Step]:
    yield from _deltas_of(message.reasoning_content, ReasoningDelta)
    yield from _deltas_of(message.content, TextDelta)


def _deltas_of(content: str | Sequence[ContentItem] | None, made: Callable[[str], Step]) -> Iterator[Step]:
    for item in [ContentItem(text=content)] if isinstance(content, str) else content or ():
        if item.text:
            yield made(item.text)
        elif item.text is None:
            yield MediaDelta(item)


def _call_of(event: ToolFinished, done: Sequence[Message]) -> FunctionCall:
    calls = (m.function_call for m in reversed(done) if m.function_call and m.function_id == event.call_id)
    return next(calls, None) or FunctionCall(event.message.name or "", "{}")
