"""Writes the steps of runs into a store, each before the next begins."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from jackfield.agents import Event, Run
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
from jackfield.runs import RUNNING, Store, StoredRun
from jackfield.streams import closing
from jackfield_records.entries import ADDED, RESUMED, Step, entry_of, listed
from jackfield_records.hiding import Hide
from jackfield_records.progress import Progress, progress_of

_log = logging.getLogger(__name__)
_NOTES = (PluginEvent, HistoryTrimmed, ApprovalDecided)
_KEPT = (TurnFinished, ToolFinished, HandedOff, ApprovalNeeded, RunFinished, RunFailed, *_NOTES)
_LONGEST_TITLE = 100


@dataclass(frozen=True, kw_only=True)
class Recording:
    """How the runs of an agent are recorded.

    Attributes:
        store: Where.
        hide: Takes secrets out of what is written.
        agent: The name of the agent.
        goes_on: Whether it can go on with an interrupted run.
    """

    store: Store
    hide: Hide
    agent: str
    goes_on: bool

    async def around(self, events_of: Callable[[Run], AsyncIterator[Event]], run: Run) -> AsyncIterator[Event]:
        """The events of a run, each step after it is written.

        Raises:
            StoreError: It cannot be written, or somebody else runs it; the run ends there.
        """
        run.record = record = await self._recorder(run)
        try:
            if run.done:
                yield ResponseReplaced(run.done)
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

    async def read(self, run_id: str) -> Progress:
        """How far a run is.

        Raises:
            StoreError: There is none of this id, or its record cannot be read.
            ConfigError: This kind of agent cannot go on with a run that has done something.
        """
        _, entries = await self.store.read(run_id)
        progress = progress_of(entries)
        progress.run_id, progress.entries = run_id, len(entries)
        if progress.done and not self.goes_on:
            raise ConfigError(
                f"agent {self.agent!r} cannot resume a run: it would begin again, and repeat what was done"
            )
        return progress

    async def _recorder(self, run: Run) -> Recorder:
        progress = Progress(messages=run.messages, done=list(run.done), handed=list(run.handed))
        if run.recorded:
            hold = await self.store.hold(run.id)
            recorder = Recorder(self.store, run.id, hold, progress, self.hide)
            try:
                await self._check_unchanged(run)
                await recorder.resumed(run.answers)
            except BaseException:
                await self.store.append(run.id, hold, [], state="failed")
                raise
            return recorder
        whole = self.store.content
        title = self.hide(_title(run.messages)) if whole else ""
        stored = StoredRun(run_id=run.id, agent=self.agent, session=run.session, title=title)
        first = self.hide(entry_of(RunStarted(run.messages), whole=whole))
        return Recorder(self.store, run.id, await self.store.create(stored, [first]), progress, self.hide)

    async def _check_unchanged(self, run: Run) -> None:
        _, entries = await self.store.read(run.id)
        if len(entries) != run.recorded:
            raise RunBusyError(f"somebody else has gone on with run {run.id} at the same time: resume it again")


class Recorder:
    """Writes one run into a store: each step before the next begins.

    Args:
        store, run_id, hold: Where, and by what right.
        progress: How far the run is.
        hide: Takes secrets out of a text.
    """

    def __init__(self, store: Store, run_id: str, hold: int, progress: Progress, hide: Hide) -> None:
        self._store = store
        self._run_id = run_id
        self._hold = hold
        self._progress = progress
        self._hide = hide
        self._notes: list[str] = []
        self._known_handoffs = len(progress.handed)  # a run that goes on says again who has the conversation
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
            _log.warning("the end of run %s is not recorded", self._run_id, exc_info=True)
        return waiting

    async def _write(self, events: Sequence[Step]) -> None:
        entries, state = self._notes, RUNNING
        self._notes = []
        for event in events:
            if isinstance(event, _NOTES):
                self._notes += self._written(event)
                continue
            if isinstance(event, HandedOff) and self._known_handoffs:
                self._known_handoffs -= 1
                continue
            if isinstance(event, RunFinished):
                state = event.stop_reason
                entries += self._end(event)
            else:
                state = "failed" if isinstance(event, RunFailed) else RUNNING
                entries += self._written(event)
            self._progress.feed(event)
        if entries:
            await self._store.append(self._run_id, self._hold, entries, state=state)

    async def resumed(self, approvals: Mapping[str, bool]) -> None:
        """Write that the run goes on, and what somebody has said to calls that wait."""
        self._progress.resumed()
        await self._append(json.dumps({"event": RESUMED, "approvals": dict(approvals)}))

    async def added(self, messages: Sequence[Message]) -> None:
        """Write messages that neither the model nor a tool made."""
        self._progress.added(messages)
        texts = listed(messages, whole=self._store.content)
        await self._append(f'{{"event": "{ADDED}", "messages": {texts}}}')

    def _end(self, event: RunFinished) -> list[str]:
        """The end, with what the run has made besides its steps: a part of an answer, results of cancelled calls."""
        known = self._progress.now()
        if event.messages[: len(known)] == known:
            return self._written(replace(event, messages=event.messages[len(known) :]))
        instead = f'{{"event": "{ADDED}", "instead": true, "messages": []}}'
        return [instead, *self._written(event)]

    def _written(self, event: Step) -> list[str]:
        try:
            return [self._hide(entry_of(event, whole=self._store.content))]
        except ValueError:  # data of a plugin that has no form in JSON
            if isinstance(event, _NOTES):
                return []
            if isinstance(event, ToolFinished):
                return self._written(replace(event, metadata={}))
            raise

    async def _append(self, entry: str) -> None:
        notes, self._notes = self._notes, []
        await self._store.append(self._run_id, self._hold, [*notes, self._hide(entry)])


def _title(messages: Sequence[Message]) -> str:
    """The beginning of the last question, on one line."""
    asked = next((m.get_text_content() for m in reversed(messages) if m.role == USER), "")
    line = " ".join(asked[: 4 * _LONGEST_TITLE].split())
    return line if len(line) <= _LONGEST_TITLE else line[: _LONGEST_TITLE - 1] + "…"
