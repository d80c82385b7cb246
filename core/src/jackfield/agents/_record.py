"""The record of a run: what is written of it into a store, step by step, and what a run that goes on learns from it.

An entry is JSON: an event of the run as `eventjson` has it, without what it has in common with the whole run; or one of
two of its own: `Resumed`, where the run goes on after an interruption or a pause, and `Added`, a message that no model
and no tool made.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from jackfield.agents._decide import open_calls
from jackfield.agents._limits import Spent
from jackfield.agents._run import HANDED_TO, Event, Run, new_run_id
from jackfield.config import is_secret
from jackfield.errors import ConfigError, RunBusyError, StoreError
from jackfield.eventjson import event_from_json, event_to_json
from jackfield.events import (
    AgentEvent,
    ApprovalDecided,
    ApprovalNeeded,
    FunctionCallDelta,
    HandedOff,
    HistoryTrimmed,
    MediaDelta,
    ModelEvent,
    ModelFinished,
    PluginEvent,
    ReasoningDelta,
    ResponseReplaced,
    RunEvent,
    RunFailed,
    RunFinished,
    RunStarted,
    TextDelta,
    ToolFinished,
    ToolStarted,
    TurnFinished,
    TurnStarted,
    UsageReported,
)
from jackfield.messages import USER, FunctionCall, Message
from jackfield.runs._records import RUNNING, Store, StoredRun
from jackfield.settings import Settings
from jackfield.streams import closing
from jackfield.tools._executor import CUT_OFF

_log = logging.getLogger(__name__)
Step: TypeAlias = ModelEvent | AgentEvent
"""An event of the run itself; those of agents that it asks are theirs."""

_NOTES = (PluginEvent, HistoryTrimmed, ApprovalDecided)
_KEPT = (TurnFinished, ToolFinished, HandedOff, ApprovalNeeded, RunFinished, RunFailed, *_NOTES)
_RESUMED, _ADDED = "Resumed", "Added"
_LONGEST_TITLE = 100
_SHORTEST_SECRET = 8
_HIDDEN = "[key]"


@dataclass(kw_only=True)
class Progress:
    """How far a run is: a fold over its steps.

    Attributes:
        messages: What it began with.
        done: The messages that it has made, in the order of its history.
        spent: What it has used.
        began: The ids of calls that may have been made, and have no result.
        handed: The agents to which the conversation was handed over, and how many messages there were by then.
        handing: The agent to which it is about to be handed over; ''.
        reported: What plugins have reported.
        run_id, entries: Which run, and how many entries its record has; for a run that goes on.
        end: How it ended, the last time; None while it runs.
    """

    messages: tuple[Message, ...] = ()
    done: list[Message] = field(default_factory=list)
    spent: Spent = field(default_factory=Spent)
    began: set[str] = field(default_factory=set)
    handed: list[tuple[str, int]] = field(default_factory=list)
    handing: str = ""
    reported: list[PluginEvent] = field(default_factory=list)
    _in_doubt: set[str] = field(default_factory=set)
    run_id: str = ""
    entries: int = 0
    end: RunFinished | RunFailed | None = None
    _results: dict[int, ToolFinished] = field(default_factory=dict)

    def feed(self, event: object) -> None:
        """Take one step."""
        match event:
            case TurnFinished():
                self._settle()
                self.done += event.messages
                # Tools run once this is written: until there is a result, nobody knows.
                self.began, self._in_doubt = _open_ids(event.messages), set()
                self.spent = self.spent.plus_turn(event.usage)
            case ToolFinished():
                self._results[event.index] = event
                self.handing = event.metadata.get(HANDED_TO, self.handing)
                if event.call_id in self.began and event.error != CUT_OFF:
                    self.spent = self.spent.plus_calls(1)
                self.began.discard(event.call_id)
                self._in_doubt.discard(event.call_id)
            case HandedOff():
                self.handed.append((event.to, len(self.now())))
                self.handing = ""
            case ApprovalNeeded():  # where one call waits, none of the turn is made
                self.began = set(self._in_doubt)
            case PluginEvent():
                self.reported.append(event)
            case RunFinished() | RunFailed():
                self.end = event
                self._settle()
            case RunStarted():
                self.messages, self.began = event.messages, _open_ids(event.messages)

    def resumed(self) -> None:
        """It goes on: calls that wait are made from now on."""
        self._settle()
        self._in_doubt, self.began = self.began, _open_ids([*self.messages, *self.done])

    def added(self, messages: Iterable[Message], *, instead: bool = False) -> None:
        """Messages that nobody made in the run: after the others, or instead of them."""
        self._settle()
        self.done[:] = [*(() if instead else self.done), *messages]

    def _settle(self) -> None:
        """Results come as tools end, and stand in the order of the calls."""
        self.done += [self._results[index].message for index in sorted(self._results)]
        self._results.clear()

    def put_into(self, run: Run) -> None:
        """Have a run go on from here."""
        run.id, run.resume, run.recorded = self.run_id, True, self.entries
        run.context = replace(run.context, run_id=self.run_id)
        run.done, run.spent, run.in_doubt = self.now(), self.spent, frozenset(self.began)
        run.handed, run.handing, run.reported = tuple(self.handed), self.handing, tuple(self.reported)

    def now(self) -> tuple[Message, ...]:
        """All messages that it has made."""
        self._settle()
        return tuple(self.done)


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
        await self._append(json.dumps({"event": _RESUMED, "approvals": dict(approvals)}))

    async def added(self, messages: Sequence[Message]) -> None:
        """Write messages that neither the model nor a tool made."""
        self._progress.added(messages)
        listed = _listed(messages, whole=self._store.content)
        await self._append(f'{{"event": "{_ADDED}", "messages": {listed}}}')

    def _end(self, event: RunFinished) -> list[str]:
        """The end, with what the run has made besides its steps: a part of an answer, results of cancelled calls."""
        known = self._progress.now()
        if event.messages[: len(known)] == known:
            return self._written(replace(event, messages=event.messages[len(known) :]))
        instead = f'{{"event": "{_ADDED}", "instead": true, "messages": []}}'
        return [instead, *self._written(event)]

    def _written(self, event: Step) -> list[str]:
        try:
            return [self._hide(_entry(event, whole=self._store.content))]
        except ValueError:  # data of a plugin that has no form in JSON
            if isinstance(event, _NOTES):
                return []
            if isinstance(event, ToolFinished):
                return self._written(replace(event, metadata={}))
            raise

    async def _append(self, entry: str) -> None:
        notes, self._notes = self._notes, []
        await self._store.append(self._run_id, self._hold, [*notes, self._hide(entry)])


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
        first = self.hide(_entry(RunStarted(run.messages), whole=whole))
        return Recorder(self.store, run.id, await self.store.create(stored, [first]), progress, self.hide)

    async def _check_unchanged(self, run: Run) -> None:
        _, entries = await self.store.read(run.id)
        if len(entries) != run.recorded:
            raise RunBusyError(f"somebody else has gone on with run {run.id} at the same time: resume it again")


class Hide:
    """Takes secrets out of a text: keys and tokens of the environment, and of the user's settings.

    Args:
        settings: The user's.
        more: Others, such as the API key of a model.
    """

    def __init__(self, settings: Settings, *more: str) -> None:
        named = [value for name, value in os.environ.items() if is_secret(name, value)]
        values = [value for value in (*more, *settings.secret_values(), *named) if len(value) >= _SHORTEST_SECRET]
        # Also as they stand in JSON; the longest first: one may be a part of another.
        written = {json.dumps(value, ensure_ascii=in_ascii)[1:-1] for value in values for in_ascii in (True, False)}
        self._secrets = sorted({*values, *written}, key=len, reverse=True)

    def __call__(self, text: str) -> str:
        """The text with `[key]` in their place."""
        for secret in self._secrets:
            if secret in text:
                text = text.replace(secret, _HIDDEN)
        return text


# --- reading ----------------------------------------------------------------------------------------------------------


def progress_of(entries: Iterable[str]) -> Progress:
    """How far a recorded run is.

    Raises:
        StoreError: An entry cannot be read, or the record has no content.
    """
    progress = Progress()
    for _ in _steps(entries, progress):
        pass
    return progress


def events_of(run: StoredRun, entries: Iterable[str]) -> list[RunEvent]:
    """The events of a recorded run, as they would come again; no model and no tool is asked.

    Answers come whole. What was not recorded (progress of tools, attempts that failed) does not come.

    Raises:
        StoreError: An entry cannot be read, or the record has no content.
    """
    progress = Progress()
    events: list[Step] = []
    for event in _steps(entries, progress):
        match event:
            case TurnFinished():
                events += [TurnStarted(event.turn), *_deltas(event)]
            case ToolFinished():
                events.append(ToolStarted(event.index, event.call_id, _call_of(event, progress.done)))
        # What is recorded of an end is only what is not in the steps before it.
        events.append(replace(event, messages=progress.now()) if isinstance(event, RunFinished) else event)
    return list(_in_their_places(run, events))


def _in_their_places(run: StoredRun, events: Iterable[Step]) -> Iterator[RunEvent]:
    agent = run.agent
    for number, event in enumerate(events, start=1):
        if isinstance(event, HandedOff):
            agent = event.to
        yield RunEvent(run.run_id, number, agent, 0, event)


def _steps(entries: Iterable[str], progress: Progress) -> Iterator[Step]:
    """The events among the entries, each after the progress has taken it, as it takes the others."""
    for told in map(_read, entries):
        match told.pop("event", None):
            case "Resumed":
                progress.resumed()
            case "Added":
                progress.added(_messages_in(told), instead=told.get("instead") is True)
            case name:
                if told.get("bare"):
                    raise StoreError("what was said was not recorded (content is off): it can be listed, and no more")
                event = _event(name, told)
                progress.feed(event)
                if isinstance(event, RunFinished):
                    progress.added(event.messages)
                yield event
    progress.now()


async def replay(store: Store, run_id: str) -> AsyncIterator[RunEvent]:
    """The events of a recorded run, see `events_of`.

    Raises:
        RunNotFoundError: There is no such run.
        StoreError: Its record cannot be read.
    """
    for event in events_of(*await store.read(run_id)):
        yield event


async def fork(store: Store, run_id: str, *, at: int | None = None) -> str:
    """Make a run that has done what another one had done after some entries of its record; gives its id.

    It is resumed like any other. What the other one does, or did after that, is nothing to it.

    Args:
        store: Where the other one is.
        run_id: Its id.
        at: How many entries of the record are taken, at least 1; None for all.

    Raises:
        RunNotFoundError: There is no such run.
        StoreError: It has not so many entries, or a record cannot be read or written.
    """
    run, entries = await store.read(run_id)
    if at is not None and not 1 <= at <= len(entries):
        raise StoreError(f"run {run_id} has the steps 1 to {len(entries)}: it cannot be forked at {at}")
    kept = entries[:at]
    progress_of(kept)
    new = replace(run, run_id=new_run_id(), parent=run_id, state=RUNNING)
    hold = await store.create(new, kept)
    await store.append(new.run_id, hold, [], state="forked")
    return new.run_id


def _deltas(turn: TurnFinished) -> list[Step]:
    """An answer as the events of a model."""
    events: list[Step] = []
    calls = 0
    for message in turn.messages:
        for items, made in ((message.reasoning_content, ReasoningDelta), (message.content, TextDelta)):
            for item in [items] if isinstance(items, str) else items or ():
                text = item if isinstance(item, str) else item.text
                if text:
                    events.append(made(text))
                elif not isinstance(item, str):
                    events.append(MediaDelta(item))
        if message.function_call:
            call = message.function_call
            events.append(FunctionCallDelta(calls, message.function_id or "", call.name, call.arguments))
            calls += 1
    return [*events, UsageReported(turn.usage), ModelFinished("tool_calls" if calls else "stop")]


def _open_ids(messages: Sequence[Message]) -> set[str]:
    return {planned.call_id for planned in open_calls(messages)}


def _call_of(event: ToolFinished, done: Sequence[Message]) -> FunctionCall:
    calls = (m.function_call for m in reversed(done) if m.function_call and m.function_id == event.call_id)
    return next(calls, None) or FunctionCall(event.message.name or "", "{}")


def _read(entry: str) -> dict[str, Any]:
    try:
        told = json.loads(entry)
    except (ValueError, RecursionError) as error:
        raise StoreError(f"the record cannot be read: an entry is not JSON ({error})") from None
    if not isinstance(told, dict):
        raise StoreError("the record cannot be read: an entry is not an object")
    return told


def _event(name: object, told: Mapping[str, Any]) -> Step:
    try:
        return event_from_json({"event": name, **told})
    except ValueError as error:
        raise StoreError(f"the record cannot be read, or a newer version has written it: {error}") from error


def _messages_in(told: Mapping[str, Any]) -> tuple[Message, ...]:
    event = _event("ResponseReplaced", {"messages": told.get("messages", [])})
    return event.messages if isinstance(event, ResponseReplaced) else ()


# --- writing ----------------------------------------------------------------------------------------------------------


def _entry(event: Step, *, whole: bool) -> str:
    """An event as an entry."""
    name = type(event).__name__
    if not whole:
        return json.dumps({"event": name, "bare": True, **_bare(event)})
    match event:  # by hand what there is most of: `eventjson` would take five times as long
        case TurnFinished():
            usage = event.usage.model_dump_json(exclude_defaults=True)
            rest = f'"turn": {event.turn}, "usage": {usage}, "messages": {_listed(event.messages)}'
        case RunStarted():
            rest = f'"messages": {_listed(event.messages)}'
        case RunFinished():
            usage = event.usage.model_dump_json(exclude_defaults=True)
            rest = f'"stop_reason": "{event.stop_reason}", "usage": {usage}, "messages": {_listed(event.messages)}'
        case ToolFinished():
            small = {"index": event.index, "call_id": event.call_id, "seconds": event.seconds, "error": event.error}
            more = f', "metadata": {_metadata(event)}' if event.metadata else ""
            rest = f'{json.dumps(small)[1:-1]}, "message": {_message(event.message)}{more}'
        case _:
            return json.dumps(event_to_json(event, whole=False))
    return f'{{"event": "{name}", {rest}}}'


def _metadata(event: ToolFinished) -> str:
    return json.dumps(event_to_json(PluginEvent("", event.metadata))["data"])


def _listed(messages: Iterable[Message], *, whole: bool = True) -> str:
    return f"[{', '.join(map(_message, messages))}]" if whole else "[]"


def _message(message: Message) -> str:
    try:
        return message.model_dump_json(exclude_defaults=True)
    except ValueError:  # half of a surrogate pair, or an object of the caller's own in `extra`
        return json.dumps(message.model_dump(exclude_defaults=True), default=repr)


def _bare(event: Step) -> dict[str, object]:
    """What an event says without what was said."""
    match event:
        case TurnFinished():
            calls = [message.function_call.name for message in event.messages if message.function_call]
            return {"turn": event.turn, "usage": json.loads(event.usage.model_dump_json()), "calls": calls}
        case ToolFinished():
            return {"index": event.index, "name": event.message.name, "seconds": event.seconds, "error": event.error}
        case RunFinished():
            return {"stop_reason": event.stop_reason, "usage": json.loads(event.usage.model_dump_json())}
        case RunFailed():
            return {"kind": event.kind}
        case HandedOff():
            return {"by": event.by, "to": event.to}
        case ApprovalDecided():
            return {"call_id": event.call_id, "name": event.call.name, "allowed": event.allowed, "by": event.by}
        case ApprovalNeeded():
            return {"calls": [call.name for call in event.calls]}
    return {}


def _title(messages: Sequence[Message]) -> str:
    """The beginning of the last question, on one line."""
    asked = next((m.get_text_content() for m in reversed(messages) if m.role == USER), "")
    line = " ".join(asked[: 4 * _LONGEST_TITLE].split())
    return line if len(line) <= _LONGEST_TITLE else line[: _LONGEST_TITLE - 1] + "…"
