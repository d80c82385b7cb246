"""Writes the steps of runs into a store, each before the next begins.

The steps of agents below stand in the record of the run above, with the number that their run has there: so one hold,
one order and one end are those of the whole tree.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from jackfield.agents import Agent, Event, Run
from jackfield.errors import ConfigError, RunBusyError, StoreError
from jackfield.events import (
    ApprovalDecided,
    ApprovalNeeded,
    HandedOff,
    HistoryTrimmed,
    PluginEvent,
    ResponseReplaced,
    RunEvent,
    RunFailed,
    RunFinished,
    RunStarted,
    ToolFinished,
    TurnFinished,
)
from jackfield.messages import USER, Message
from jackfield.secrets import Secrets, secrets_of
from jackfield.streams import closing
from jackfield_records.entries import ADDED, RESUMED, Step, entry_of, hide_entry, listed, reported_in
from jackfield_records.progress import Progress, key_of, progress_of
from jackfield_records.stores import RUNNING, Store, StoredRun

_log = logging.getLogger(__name__)
_NOTES = (PluginEvent, HistoryTrimmed, ApprovalDecided)
_KEPT = (TurnFinished, ToolFinished, HandedOff, ApprovalNeeded, RunFinished, RunFailed, *_NOTES)
_LONGEST_TITLE = 100
_MOST_OF_A_QUESTION = 20_000  # for its title


@dataclass(frozen=True, kw_only=True)
class Recording:
    """How the runs of an agent are recorded.

    Attributes:
        store: Where.
        secrets: Hidden in what is written, and put back into what is read to go on.
        agent: The name of the agent.
        goes_on: Whether it can go on with an interrupted run.
    """

    store: Store
    secrets: Secrets
    agent: str
    goes_on: bool

    async def found(self, run_id: str | None, _messages: Sequence[Message]) -> Progress | None:
        """How far a run is; None for a new one.

        Raises:
            StoreError: There is none of this id, or its record cannot be read.
            ConfigError: This kind of agent cannot go on with a run that has done something.
        """
        if run_id is None:
            return None
        _, entries = await self.store.read(run_id)
        progress = progress_of(entries, self.secrets)
        progress.run_id, progress.entries = run_id, len(entries)
        if not self.goes_on and progress.now():
            raise ConfigError(
                f"agent {self.agent!r} cannot resume a run: it would begin again, and repeat what was done"
            )
        return progress

    def around(self, events_of: Callable[[Run], AsyncIterator[Event]], run: Run) -> AsyncIterator[Event]:
        """The events of a run, each step after it is written.

        Raises:
            StoreError: It cannot be written, or somebody else runs it; the run ends there.
        """
        return _recorded(events_of, run, self._recorder)

    async def _recorder(self, run: Run) -> Recorder:
        if isinstance(run.recorded, Progress):
            return await self._going_on(run, run.recorded)
        whole = self.store.content
        if run.session and run.toolbox is not None:
            run.reported = await self._reported_before(run.session)
        title = _title(run.messages, self.secrets) if whole else ""
        stored = StoredRun(run_id=run.id, agent=self.agent, session=run.session, title=title)
        first = hide_entry(entry_of(RunStarted(run.messages), whole=whole), self.secrets)
        hold = await self.store.create(stored, [first])
        return Recorder(_Writer(self.store, run.id, hold, self.secrets), Progress(messages=run.messages))

    async def _reported_before(self, session: str) -> tuple[PluginEvent, ...]:
        """What plugins reported in the last run of a conversation, for what goes on from there, as a summary does."""
        last = await self.store.runs(session=session, limit=1)
        return reported_in((await self.store.read(last[0].run_id))[1], self.secrets) if last else ()

    async def _going_on(self, run: Run, progress: Progress) -> Recorder:
        hold = await self.store.hold(run.id)
        writer = _Writer(self.store, run.id, hold, self.secrets, below=progress.below)
        recorder = Recorder(writer, progress)
        try:
            await self._check_unchanged(run.id, progress.entries)
            await recorder.resumed(run.answers)
        except BaseException:
            await self.store.append(run.id, hold, [], state="failed")
            raise
        return recorder

    async def _check_unchanged(self, run_id: str, entries: int) -> None:
        _, now = await self.store.read(run_id)
        if len(now) != entries:
            raise RunBusyError(f"somebody else has gone on with run {run_id} at the same time: resume it again")


def recording_of(agent: Agent) -> Recording:
    """Return how the runs of an agent are recorded, without the secrets of the agent and of all that it uses.

    Raises:
        ConfigError: They are not.
    """
    label = agent.name or type(agent).__name__
    if agent.store is None:
        raise ConfigError(f"the runs of agent {label!r} are not recorded: give it a store, such as store='sqlite'")
    secrets = secrets_of(agent, settings=agent.host.settings)
    return Recording(store=agent.store, secrets=secrets, agent=label, goes_on=agent._goes_on())


@dataclass(kw_only=True)
class RecordingBelow:
    """How one run is recorded that another one waits for.

    Attributes:
        above: What records the run that waits.
        agent: The name of the agent that is asked.
        place: Where in the run above.
        goes_on: Whether it can go on with an interrupted run.
    """

    above: Recorder
    agent: str
    place: str
    goes_on: bool
    _key: str = ""

    async def found(self, _run_id: str | None, messages: Sequence[Message]) -> Progress | None:
        """How far it was when the run above was interrupted; None if it had not begun, or must begin again."""
        self._key = key_of(self.place, self.agent, messages)
        progress = self.above.asked_before(self._key)
        if progress is None or not (self.goes_on or progress.has_finished):
            return None
        return progress

    def around(self, events_of: Callable[[Run], AsyncIterator[Event]], run: Run) -> AsyncIterator[Event]:
        """The events of the run, each step after it is written; of one that had ended, its end."""
        before = run.recorded
        if isinstance(before, Progress) and before.has_finished:
            return _ended(before)
        return _recorded(events_of, run, self._recorder)

    async def _recorder(self, run: Run) -> Recorder:
        if not isinstance(run.recorded, Progress):
            return await self.above.asks(run, self.agent, self._key)
        recorder = Recorder(self.above.writer, run.recorded)
        await recorder.resumed(run.answers)
        return recorder


async def _ended(progress: Progress) -> AsyncIterator[Event]:
    """The end of a run that had ended."""
    messages = progress.now()
    yield ResponseReplaced(messages)
    yield RunFinished("finished", messages, progress.spent.usage)


async def _recorded(
    events_of: Callable[[Run], AsyncIterator[Event]], run: Run, recorder_of: Callable[[Run], Awaitable[Recorder]]
) -> AsyncIterator[Event]:
    """The events of a run, each step after it is written."""
    run.record = record = await recorder_of(run)
    try:
        if record.done:
            yield ResponseReplaced(record.done)
        async with closing(events_of(run)) as events:
            async for event in events:
                if isinstance(event, RunEvent) or not (record.waits or isinstance(event, _KEPT)):
                    yield event
                else:
                    for written in await record.keep(event):
                        yield written
    except Exception as error:
        for written in await record.give_up(error):
            yield written
        raise
    except BaseException as error:
        await record.give_up(error)
        raise


@dataclass
class _Writer:
    """Appends to one record, for the run and all runs below it.

    Attributes:
        below: How many runs below it are in the record.
    """

    store: Store
    run_id: str
    hold: int
    secrets: Secrets
    below: int = 0
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def append(self, number: int, entries: Sequence[str], state: str = RUNNING) -> None:
        """Append entries of the run that has this number in the record."""
        entries = [hide_entry(entry, self.secrets) for entry in entries]
        if number:  # a run below is not the end of the whole
            state, entries = RUNNING, [f'{{"below": {number}, {entry[1:]}' for entry in entries]
        async with self._turn:  # agents that work side by side
            await self.store.append(self.run_id, self.hold, entries, state=state)


class Recorder:
    """Writes one run of a record: each step before the next begins.

    Args:
        writer: Of the record.
        progress: How far the run is.
    """

    def __init__(self, writer: _Writer, progress: Progress) -> None:
        self.writer = writer
        self.done = progress.now()
        self._whole = writer.store.content
        self._progress = progress
        self._notes: list[str] = []
        self._known_handoffs = progress.handoffs  # a run that goes on says again who has the conversation
        self._waiting: list[Step] = []

    @property
    def waits(self) -> bool:
        """Whether an answer waits for the next event, to be written together with that."""
        return bool(self._waiting)

    async def keep(self, event: Step) -> list[Step]:
        """Write an event, if it is to be kept; gives the events that may be shown now.

        An answer without calls waits: if the run ends with it, that is one write.
        """
        waiting, self._waiting = self._waiting, []
        if waiting and not isinstance(event, RunFinished):
            await self._write(waiting)
        if isinstance(event, TurnFinished) and not any(message.function_call for message in event.messages):
            self._waiting = [event]
            return waiting
        if isinstance(event, RunFinished):
            await self._write([*waiting, event])
        elif isinstance(event, _KEPT):
            await self._write([event])
        return [*waiting, event]

    async def give_up(self, error: BaseException) -> list[Step]:
        """Write that the run has failed, unless it had ended, and let go of it; gives what may be shown before."""
        if self._progress.end is not None:
            return []
        text = str(error) if isinstance(error, Exception) else ""
        waiting, self._waiting = self._waiting, []
        try:
            await self._write([*waiting, RunFailed(text, type(error).__name__)])
        except StoreError:
            # The error that ends the run is the one to be raised.
            _log.warning("the end of run %s is not recorded", self.writer.run_id, exc_info=True)
        return waiting

    async def resumed(self, approvals: Mapping[str, bool]) -> None:
        """Write that the run goes on, and what somebody has said to calls that wait."""
        self._progress.resumed()
        await self._append([json.dumps({"event": RESUMED, "approvals": dict(approvals)})])

    async def added(self, messages: Sequence[Message]) -> None:
        """Write messages that neither the model nor a tool made."""
        self._progress.added(messages)
        texts = listed(messages, whole=self._whole)
        await self._append([f'{{"event": "{ADDED}", "messages": {texts}}}'])

    # --- runs below ---

    def below(self, agent: str, place: str, *, goes_on: bool) -> RecordingBelow:
        """What writes the steps of an agent that was asked at a place of the run."""
        return RecordingBelow(above=self, agent=agent, place=place, goes_on=goes_on)

    def asked_before(self, key: str) -> Progress | None:
        """The run below that was asked this before the run was interrupted; each is given once."""
        known = self._progress.asked.get(key)
        return known.pop(0) if known else None

    async def asks(self, run: Run, agent: str, key: str) -> Recorder:
        """Write that a run below begins; gives what records it."""
        writer = self.writer
        writer.below += 1
        writer.secrets.include(run.agent)
        number = writer.below
        begins = {"above": self._progress.number, "run_id": run.id, "agent": agent, "key": key}
        first = entry_of(RunStarted(run.messages), whole=self._whole)
        if self._whole:
            first = f'{{"asked": {json.dumps(begins)}, {first[1:]}'
        await writer.append(number, [first])
        return Recorder(writer, Progress(messages=run.messages, number=number))

    # --- writing ---

    async def _write(self, events: Sequence[Step]) -> None:
        entries: list[str] = []
        state = RUNNING
        for event in events:
            if isinstance(event, HandedOff) and self._known_handoffs:
                self._known_handoffs -= 1
                continue
            if isinstance(event, RunFinished):
                state = event.stop_reason
                entries += self._end(event)
            elif isinstance(event, _NOTES):
                self._notes += self._written(event)
            else:
                state = "failed" if isinstance(event, RunFailed) else RUNNING
                entries += self._written(event)
            self._progress.feed(event)
        if entries:
            await self._append(entries, state)

    def _end(self, event: RunFinished) -> list[str]:
        """The end, with what the run has made besides its steps: a part of an answer, results of cancelled calls."""
        known = self._progress.now()
        if event.messages[: len(known)] == known:
            return self._written(replace(event, messages=event.messages[len(known) :]))
        instead = f'{{"event": "{ADDED}", "instead": true, "messages": []}}'
        return [instead, *self._written(event)]

    def _written(self, event: Step) -> list[str]:
        try:
            return [entry_of(event, whole=self._whole)]
        except ValueError:  # data of a plugin that has no form in JSON
            if isinstance(event, _NOTES):
                return []
            if isinstance(event, ToolFinished):
                return self._written(replace(event, metadata={}))
            raise

    async def _append(self, entries: Sequence[str], state: str = RUNNING) -> None:
        notes, self._notes = self._notes, []
        await self.writer.append(self._progress.number, [*notes, *entries], state)


def _title(messages: Sequence[Message], secrets: Secrets) -> str:
    """The beginning of the last question, on one line; it is cut after secrets are hidden, so that no part is left."""
    asked = next((m.get_text_content() for m in reversed(messages) if m.role == USER), "")
    line = " ".join(secrets.hide(asked[:_MOST_OF_A_QUESTION])[: 4 * _LONGEST_TITLE].split())
    return line if len(line) <= _LONGEST_TITLE else line[: _LONGEST_TITLE - 1] + "…"
