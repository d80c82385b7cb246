"""Write the steps of runs to a store, each before the next begins.

The steps of nested agents are stored in the top-level run's record, along with the number of their run, so the whole
tree has one hold, one order and one end.
"""

from __future__ import annotations

import json
import logging
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from jackfield.errors import ConfigError, InDoubtError, RunBusyError, StoreError
from jackfield.events import (
    ApprovalDecided,
    ApprovalNeeded,
    HandedOff,
    PluginEvent,
    ResponseReplaced,
    RunEvent,
    RunFailed,
    RunFinished,
    RunStarted,
    ToolFinished,
    TurnFinished,
)
from jackfield.messages import SYSTEM, USER, FunctionCall, Message
from jackfield.runs import AgentLike, Event, Recorded, Run
from jackfield.secrets import Secrets, hide_in_address, secrets_of
from jackfield.stores import RUNNING, Store, StoredRun
from jackfield.streams import closing
from jackfield.sync import in_worker
from jackfield.tools import Decision
from jackfield_records.entries import (
    ADDED,
    RESUMED,
    Step,
    entry_of,
    entry_of_trace,
    event_in,
    has_seals,
    hide_entry,
    listed,
    reported_in,
)
from jackfield_records.progress import Progress, progress_of
from jackfield_records.recovering import Recovery, recorded_name
from jackfield_records.writing import Writer, wait_out_outage

_log = logging.getLogger(__name__)
_LONGEST_TITLE = 100
_MOST_OF_A_QUESTION = 20_000  # for its title
BEGUN_AGAIN = "jackfield-records.begun_again"


@dataclass(frozen=True, kw_only=True)
class AgentRecorder:
    """Records one agent's runs in a store.

    Attributes:
        store: The store for the records.
        secrets: The secrets to hide when writing, and to restore when reading a run to continue.
        agent: The agent's name.
        model: The agent's model, as shown in run lists.
        resumable: True if the agent can continue an interrupted run.
        recovery: Recovers the agent's interrupted runs when the first run begins. None disables recovery.
    """

    store: Store
    secrets: Secrets
    agent: str
    resumable: bool
    model: str = ""
    recovery: Recovery | None = None

    async def load(self, run_id: str | None, _messages: Sequence[Message]) -> Progress | None:
        """Return a run's progress, or None for a new run.

        Raises:
            StoreError: No run has this id, or its record cannot be read.
            ConfigError: This kind of agent cannot continue a run that has made progress.
        """
        if run_id is None:
            return None
        stored, entries = await self.store.read(run_id)
        progress = await _read_progress(entries, self.secrets)
        progress.run_id, progress.entries, progress.state = run_id, len(entries), stored.state
        if not self.resumable and progress.now():
            raise ConfigError(
                f"agent {self.agent!r} cannot resume a run: it would start over and repeat completed steps"
            )
        return progress

    def record(
        self, events_of: Callable[[Run], AsyncIterator[Event]], run: Run, recorded: Recorded | None
    ) -> AsyncIterator[Event]:
        """Yield a run's events, each step only after it has been written.

        Raises:
            StoreError: A step cannot be written, or another process holds the run. The run ends there.
        """
        if isinstance(recorded, PendingRun):
            return _recorded(events_of, run, partial(self._begin_pending, recorded))
        if not isinstance(recorded, Progress):
            return _recorded(events_of, run, self._begin)
        if recorded.state == "finished" and recorded.has_finished:
            return _ended(recorded, self.agent, reported=recorded.reported)  # its end is written once
        return _recorded(events_of, run, partial(self._resume, recorded))

    async def _begin(self, run: Run) -> tuple[Run, RunRecord]:
        if self.recovery is not None:
            self.recovery.begin()
        with_texts = self.store.content
        run = await self._with_reports(run)
        title = title_of(run.messages, self.secrets) if with_texts else ""
        stored = StoredRun(run_id=run.id, agent=self.agent, model=self.model, session=run.session, title=title)
        first = await hide_entry(entry_of(RunStarted(run.messages), with_texts=with_texts), self.secrets)
        entries = [first, *_trace_entries(run)]
        hold = await wait_out_outage(lambda: self.store.create(stored, entries), self.store, run)
        return run, RunRecord(Writer(self.store, run, hold, self.secrets), Progress.of_messages(run.messages))

    async def _begin_pending(self, pending: PendingRun, run: Run) -> tuple[Run, RunRecord]:
        run = await self._with_reports(run)
        writer = Writer(self.store, run, pending.hold, self.secrets)
        if trace := _trace_entries(run):  # at once, because most processes that end do so while a model answers
            await writer.append(0, trace)
        return run, RunRecord(writer, Progress.of_messages(run.messages))

    async def _with_reports(self, run: Run) -> Run:
        if not (run.session and run.toolbox is not None and run.toolbox.sets):
            return run
        reported = await self._reported_before(run.session, run.id)
        return replace(run, start=replace(run.start, reported=reported))

    async def _reported_before(self, session: str, run_id: str) -> tuple[PluginEvent, ...]:
        """Return the plugins' reports from a conversation's previous run, for plugins that continue from there."""
        last = await self.store.runs(session=session, limit=2)
        before = [one.run_id for one in last if one.run_id != run_id][:1]
        if not before:
            return ()
        _, entries = await self.store.read(before[0])
        if has_seals(entries):
            return await in_worker(reported_in, entries, self.secrets)
        return reported_in(entries, self.secrets)

    async def _resume(self, progress: Progress, run: Run) -> tuple[Run, RunRecord]:
        hold = await wait_out_outage(lambda: self.store.hold(run.id), self.store, run)
        writer = Writer(self.store, run, hold, self.secrets, below=progress.below)
        recorder = RunRecord(writer, progress)
        try:
            await wait_out_outage(lambda: self._check_unchanged(run.id, progress), self.store, run)
            await recorder.resumed(run.answers, [] if progress.traced == run.id else _trace_entries(run))
        except BaseException:  # too late, or the run did not begin: the record stays as it is
            await writer.release()
            raise
        return run, recorder

    async def _check_unchanged(self, run_id: str, progress: Progress) -> None:
        stored, now = await self.store.read(run_id)
        if len(now) != progress.entries or stored.state != progress.state:
            raise RunBusyError(f"run {run_id} was resumed elsewhere in the meantime: read it again, or resume it again")


@dataclass(frozen=True, kw_only=True)
class PendingRun:
    """A recorded run that has not begun and is held by this process, as created by `pending.record_pending`.

    Attributes:
        run: The run as stored.
        messages: The messages that the run begins with.
        hold: The hold's number.
        entries: The run's entries.
    """

    run: StoredRun
    messages: tuple[Message, ...]
    hold: int
    entries: list[str]

    def resume(self, run: Run) -> Run:
        """Return the run unchanged, because there are no steps to continue from."""
        return run


def _trace_entries(run: Run) -> list[str]:
    """Return the entry for the trace that an observer has for a run, or [] if there is none."""
    trace = run.observers.trace_of(run.id)
    return [entry_of_trace(run.id, trace)] if trace else []


def recorder_of(agent: AgentLike, store: Store) -> AgentRecorder:
    """Return a recorder for an agent's runs that hides the secrets of the agent and its components."""
    return AgentRecorder(
        store=store,
        secrets=secrets_of(agent, settings=agent.host.settings),
        agent=recorded_name(agent),
        model=_model_of(agent),
        resumable=agent.resumable,
        recovery=Recovery(agent, store) if store.recover else None,
    )


def _model_of(agent: AgentLike) -> str:
    """Return the model as shown in `StoredRun`, or '' if the agent has none."""
    if agent.llm is None:
        return ""
    config = agent.llm.config
    server = f" {hide_in_address(config.server_url)}" if config.server_url else ""
    return f"{agent.llm.backend}:{config.model}{server}"


async def _read_progress(entries: Sequence[str], secrets: Secrets) -> Progress:
    """Return a run's progress, comparing digests of secrets in a worker thread."""

    def read() -> Progress:
        progress = progress_of(entries, secrets)
        progress.compare_digests()
        return progress

    return await in_worker(read) if has_seals(entries) else read()


@dataclass(kw_only=True)
class NestedRecorder:
    """Records a nested run in its parent run's record.

    The place identifies the nested run: the parent's turn and tool call, or the place named by its agent kind, and the
    number of earlier runs there. The question cannot identify it, because texts change: a prompt may contain the date,
    or be edited.

    Attributes:
        parent: The parent run's record.
        agent: The name of the nested agent.
        place: The place in the parent run.
        call_id: The id of the tool call that asks, or '' if the agent kind itself asks.
        answer: The human decision about this place, or None if there is none.
        resumable: True if the agent can continue an interrupted run.
    """

    parent: RunRecord
    agent: str
    place: str
    call_id: str
    answer: Decision | None
    resumable: bool
    _note: str = ""

    async def load(self, _run_id: str | None, messages: Sequence[Message]) -> Progress | None:
        """Return the nested run's progress at the interruption, or None if it had not begun or must start again.

        Raises:
            InDoubtError: The nested run cannot continue, may have called tools, and is not approved to start again.
        """
        before = self.parent.asked_before(self.place)
        problem = None if before is None else self._problem(before, messages)
        if before is None or problem is None:
            return before
        if (before.may_have_acted or not self.resumable) and self.answer is not True:
            raise InDoubtError(
                f"Agent {before.agent} was interrupted while it worked on this, and cannot continue: {problem}. "
                f"It may have done some of its work; it was not asked again.",
                agent=before.agent,
                call_id=self.call_id,
                place=self.place,
                question=_question(before.messages),
                is_denied=self.answer is not None,
            )
        self._note = f"agent {self.agent} starts over, and the work of agent {before.agent} is discarded: {problem}"
        return None

    def _problem(self, before: Progress, messages: Sequence[Message]) -> str | None:
        """Return the reason why the recorded run does not answer the current question, or None if it does."""
        if before.agent != self.agent:
            return f"agent {self.agent} takes its place"
        if self.parent.as_recorded(messages) != _without_system(before.messages):
            return "its question has changed"
        if not (self.resumable or before.has_ended):
            return "agents of this kind cannot resume"
        return None

    def record(
        self, events_of: Callable[[Run], AsyncIterator[Event]], run: Run, recorded: Recorded | None
    ) -> AsyncIterator[Event]:
        """Yield the run's events, each step only after it has been written, or only the end if the run had ended."""
        if isinstance(recorded, Progress):
            if recorded.has_finished or (recorded.has_ended and not self.resumable):
                return _ended(recorded, self.agent)
            return _recorded(events_of, run, partial(self._resume, recorded))
        if not self._note:
            return _recorded(events_of, run, self._begin)
        note = PluginEvent(BEGUN_AGAIN, {"note": self._note})
        return _recorded(lambda run: _after(note, events_of(run)), run, self._begin)

    async def _begin(self, run: Run) -> tuple[Run, RunRecord]:
        return run, await self.parent.asks(run, self.agent, self.place)

    async def _resume(self, progress: Progress, run: Run) -> tuple[Run, RunRecord]:
        record = RunRecord(self.parent.writer, progress)
        await record.resumed(run.answers)
        return run, record


async def _after(first: Event, events: AsyncIterator[Event]) -> AsyncIterator[Event]:
    yield first
    async with closing(events):
        async for event in events:
            yield event


def _without_system(messages: Sequence[Message]) -> str:
    """Serialise messages for comparison, without system messages, which change with every prompt."""
    return listed([message for message in messages if message.role != SYSTEM])


def _question(messages: Sequence[Message]) -> str:
    """Return the text of the last question, or '' if there is none."""
    return next((m.get_text_content() for m in reversed(messages) if m.role == USER), "")


async def _ended(progress: Progress, agent: str, *, reported: Sequence[Event] = ()) -> AsyncIterator[Event]:
    """Yield the end of a run that has already ended, preceded by its reports and hand-offs, starting with `agent`."""
    messages = progress.now()
    for event in reported:
        yield event
    for part in progress.parts[1:]:
        yield HandedOff(agent, part.agent)
        agent = part.agent
    reason = progress.end.stop_reason if isinstance(progress.end, RunFinished) else "finished"
    yield ResponseReplaced(messages)
    yield RunFinished(reason, messages, progress.spent.usage)


async def _recorded(
    events_of: Callable[[Run], AsyncIterator[Event]],
    run: Run,
    open_record: Callable[[Run], Awaitable[tuple[Run, RunRecord]]],
) -> AsyncIterator[Event]:
    """Yield a run's events, each step only after it has been written."""
    run, record = await open_record(run)
    run = replace(run, record=record)
    try:
        if record.done:
            yield ResponseReplaced(record.done)
        async with closing(events_of(run)) as events:
            async for event in events:
                if isinstance(event, RunEvent) or not (record.waits or event.is_recorded):
                    yield event
                else:
                    for written in await record.keep(event):
                        yield written
    except Exception as error:
        shown, is_paused = await record.end_with(error)
        for written in shown:
            yield written
        if not is_paused:
            raise
    except BaseException as error:
        await record.give_up(error)
        raise
    finally:
        await record.let_go()


class RunRecord:
    """The record of one run, in which each step is written before the next begins.

    Args:
        writer: Writes to the record.
        progress: The run's progress.
    """

    def __init__(self, writer: Writer, progress: Progress) -> None:
        self.writer = writer
        self.done = progress.now()
        self._with_texts = writer.store.content
        self._progress = progress
        self._notes: list[str] = []
        self._known_handoffs = progress.handoffs  # a run that continues repeats its hand-offs
        self._waiting: list[Step] = []
        self._asked_at: defaultdict[str, int] = defaultdict(int)
        self._answers: Mapping[str, Decision] = {}

    @property
    def waits(self) -> bool:
        """True if an answer is buffered, to be written together with the next event."""
        return bool(self._waiting)

    async def keep(self, event: Step) -> list[Step]:
        """Write an event if it belongs in the record, and return the events that may be shown now.

        An answer without calls is buffered, so that the answer and the end of the run can be written together.
        """
        waiting, self._waiting = self._waiting, []
        if waiting and not isinstance(event, RunFinished):
            await self._write(waiting)
        if isinstance(event, TurnFinished) and not any(message.function_call for message in event.messages):
            self._waiting = [event]
            return waiting
        if isinstance(event, ApprovalDecided):
            self.writer.doubt()  # people may take long to answer
        if isinstance(event, RunFinished):
            await self._write([*waiting, event])
        elif event.is_recorded:
            await self._write([event])
        return [*waiting, event]

    async def give_up(self, error: BaseException) -> list[Step]:
        """Record that the run failed, unless it had already ended, and return the events to show before the failure."""
        if self._progress.end is not None:
            return []
        text = str(error) if isinstance(error, Exception) else ""
        waiting, self._waiting = self._waiting, []
        # Do not wait for a store that has just failed, or for a reader that has left.
        patiently = isinstance(error, Exception) and not isinstance(error, StoreError)
        try:
            await self._write([*waiting, RunFailed(text, type(error).__name__)], patiently=patiently)
        except StoreError as problem:
            # The error to raise is the one that ends the run.
            _log.warning("the end of run %s could not be recorded: %s", self.writer.run_id, problem)
        return waiting

    async def let_go(self) -> None:
        """Release the hold when the run ends, even if its end could not be written."""
        if not self._progress.number:
            await self.writer.release()

    async def before_call(self) -> str:
        """See `Writer.before_call`."""
        return await self.writer.before_call()

    async def resumed(self, approvals: Mapping[str, Decision], trace: Sequence[str] = ()) -> None:
        """Record that the run continues, with the decisions about waiting calls, followed by its trace entry."""
        self._answers = approvals
        self._progress.resumed(approvals)
        decisions = {call_id: one is True for call_id, one in approvals.items()}
        await self._append([json.dumps({"event": RESUMED, "approvals": decisions}), *trace])

    async def finished(self, results: Sequence[ToolFinished]) -> None:
        """Write the results of calls that ended while the run was being stopped."""
        try:
            await self._write(results)
        except StoreError:
            # The run ends with the error that stopped it, and these calls stay in doubt.
            _log.warning("results of run %s could not be recorded", self.writer.run_id, exc_info=True)

    async def added(self, messages: Sequence[Message]) -> None:
        """Write messages from neither the model nor a tool."""
        self._progress.added(messages)
        texts = listed(messages, with_texts=self._with_texts)
        await self._append([f'{{"event": "{ADDED}", "messages": {texts}}}'])

    # --- nested runs ---

    def below(
        self, agent: str, place: str, call_id: str, answers: Mapping[str, Decision], *, resumable: bool
    ) -> NestedRecorder:
        """Return the recorder for an agent asked at a place in the run; see `NestedRecorder`."""
        if call_id:  # servers repeat the ids of calls in later turns
            place = f"turn {self._progress.turns}, call {call_id}{f' in {place}' if place else ''}"
        place = place or "question"
        self._asked_at[place] += 1
        place = f"{place} #{self._asked_at[place]}"
        answer = answers.get(call_id) if call_id else self._answers.get(place)
        return NestedRecorder(
            parent=self, agent=agent, place=place, call_id=call_id, answer=answer, resumable=resumable
        )

    def asked_before(self, place: str) -> Progress | None:
        """Return the nested run asked at a place before the run was interrupted, if any."""
        return self._progress.asked.get(place)

    def as_recorded(self, messages: Sequence[Message]) -> str:
        """Serialise messages for comparison with recorded ones, as if they had been recorded and read back."""
        entry = entry_of(RunStarted(tuple(messages)), with_texts=True)
        fields = self.writer.secrets.as_restored(json.loads(entry))
        event = event_in(fields.pop("event"), fields)
        return _without_system(event.messages) if isinstance(event, RunStarted) else ""

    async def end_with(self, error: Exception) -> tuple[list[Step], bool]:
        """Record the end of a failed run, and return the events to show, and True if the run pauses instead of failing.

        The run pauses if an agent that it asked without a tool call is in doubt. After any other error, the caller must
        raise the error.
        """
        if not isinstance(error, InDoubtError) or error.call_id or error.is_denied:
            return await self.give_up(error), False
        if error.place not in self._progress.asked:
            return await self.give_up(error), False
        call, ids = FunctionCall(error.agent, json.dumps({"request": error.question})), (error.place,)
        written = await self.keep(ApprovalNeeded((call,), ids, ids))
        end = RunFinished("approval_needed", self._progress.now(), self._progress.spent.usage)
        return [*written, *await self.keep(end)], True

    async def asks(self, run: Run, agent: str, place: str) -> RunRecord:
        """Record that a nested run begins, and return its record."""
        writer = self.writer
        writer.below += 1
        writer.secrets.include(run.agent)
        number = writer.below
        begins = {"above": self._progress.number, "run_id": run.id, "agent": agent, "place": place}
        first = entry_of(RunStarted(run.messages), with_texts=self._with_texts)
        await writer.append(number, [f'{{"asked": {json.dumps(begins)}, {first[1:]}'])
        return RunRecord(writer, Progress.of_messages(run.messages, number=number))

    # --- writing ---

    async def _write(self, events: Sequence[Step], *, patiently: bool = True) -> None:
        entries: list[str] = []
        state = RUNNING
        for event in events:
            if isinstance(event, HandedOff) and self._known_handoffs:
                self._known_handoffs -= 1
                continue
            if isinstance(event, RunFinished):
                state = event.stop_reason
                entries += self._end(event)
            elif event.is_note:
                self._notes += self._written(event)
            else:
                state = "failed" if isinstance(event, RunFailed) else RUNNING
                entries += self._written(event)
            self._progress.feed(event)
        if entries:
            await self._append(entries, state, patiently=patiently)

    def _end(self, event: RunFinished) -> list[str]:
        """Return the entries for the end, with messages that are in no step: a partial answer, cancelled results."""
        known = self._progress.now()
        if event.messages[: len(known)] == known:
            return self._written(replace(event, messages=event.messages[len(known) :]))
        instead = f'{{"event": "{ADDED}", "instead": true, "messages": []}}'
        return [instead, *self._written(event)]

    def _written(self, event: Step) -> list[str]:
        try:
            return [entry_of(event, with_texts=self._with_texts)]
        except ValueError:  # a plugin's data without a JSON form
            if event.is_note:
                return []
            if isinstance(event, ToolFinished):
                return self._written(replace(event, metadata={}))
            raise

    async def _append(self, entries: Sequence[str], state: str = RUNNING, *, patiently: bool = True) -> None:
        notes, self._notes = self._notes, []
        await self.writer.append(self._progress.number, [*notes, *entries], state, patiently=patiently)


def title_of(messages: Sequence[Message], secrets: Secrets) -> str:
    """Return the beginning of the last question on one line, cut after hiding secrets so that no part remains."""
    line = " ".join(secrets.hide(_question(messages)[:_MOST_OF_A_QUESTION])[: 4 * _LONGEST_TITLE].split())
    return line if len(line) <= _LONGEST_TITLE else line[: _LONGEST_TITLE - 1] + "…"
