"""How far a recorded run is, and the runs below it."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from jackfield.errors import StoreError
from jackfield.events import (
    ApprovalDecided,
    ApprovalNeeded,
    HandedOff,
    PluginEvent,
    RunFailed,
    RunFinished,
    RunStarted,
    ToolFinished,
    TurnFinished,
)
from jackfield.messages import FunctionCall, Message
from jackfield.runs import Handoff, Part, Run, Spent, open_calls
from jackfield.secrets import SEAL, Secrets, placeholders_in
from jackfield.tools import STOPPED
from jackfield_records.entries import ADDED, DIGESTS, RESUMED, Step, event_in, is_as_approved, messages_in, read_entry

_log = logging.getLogger(__name__)
_NOT_MADE = "CutOff"  # the error of a call that the answer was cut off in
_RESUMABLE_ENDS = ("approval_needed", "input_needed", "cancelled", "time_limit")


@dataclass(kw_only=True)
class _Part:
    """What one agent has done since it got the conversation."""

    agent: str = ""
    by_tool: bool = False
    done: list[Message] = field(default_factory=list)
    turns: int = 0

    def as_it_was(self) -> Part:
        return Part(agent=self.agent, by_tool=self.by_tool, done=tuple(self.done), turns=self.turns)


@dataclass(kw_only=True)
class Progress:
    """How far a run is: a fold over its steps.

    Attributes:
        messages: What it began with.
        spent: What it has used, with the runs below it.
        began: The ids of calls that may have been made, and have no result.
        parts: What each agent has done that had the conversation, in order; the first is the run's own.
        handing: The agent to which it is about to be handed over; ''.
        reported: What plugins have reported.
        run_id, agent: Which run, and whose; of the run itself, the store says whose.
        number: Of a run below, in the record; 0 for the run itself.
        parent: The run that waits for it.
        asked: The runs below, by their places; where one began again, the last one.
        turns: How often models have answered in it, whichever agent had the conversation.
        entries, below: How many entries and runs below the record has.
        state: The state that the store had for it; ''.
        end: How it ended, the last time; None while it runs.
        digests: The digests of the calls that wait for approval, by their ids.
        hidden: The ids of calls whose arguments contain a secret that is not known here.
    """

    messages: tuple[Message, ...] = ()
    spent: Spent = field(default_factory=Spent)
    began: set[str] = field(default_factory=set)
    parts: list[_Part] = field(default_factory=lambda: [_Part()])
    handing: str = ""
    reported: list[PluginEvent] = field(default_factory=list)
    run_id: str = ""
    agent: str = ""
    number: int = 0
    parent: Progress | None = None
    asked: dict[str, Progress] = field(default_factory=dict)
    turns: int = 0
    depth: int = 0
    entries: int = 0
    below: int = 0
    state: str = ""
    end: RunFinished | RunFailed | None = None
    digests: Mapping[str, str] = field(default_factory=dict)
    hidden: set[str] = field(default_factory=set)
    _compared: dict[tuple[str, str, str], bool] = field(default_factory=dict)
    _allowed: set[str] = field(default_factory=set)
    _reported_in_doubt: set[str] = field(default_factory=set)
    _stopped: dict[str, Message] = field(default_factory=dict)
    _in_doubt: set[str] = field(default_factory=set)
    _instead: list[Message] | None = None
    _results: dict[int, ToolFinished] = field(default_factory=dict)

    @property
    def has_finished(self) -> bool:
        """Whether it has come to an end of its own, so that there is nothing to go on with."""
        return isinstance(self.end, RunFinished) and self.end.stop_reason == "finished"

    @property
    def has_ended(self) -> bool:
        """True if it ended in a way that only continues with a new question."""
        return isinstance(self.end, RunFinished) and self.end.stop_reason not in _RESUMABLE_ENDS

    @property
    def may_have_acted(self) -> bool:
        """True if it, or a run below it, has called a tool, or may have."""
        return bool(self.began or self.spent.tool_calls) or any(run.may_have_acted for run in self.asked.values())

    @property
    def handoffs(self) -> int:
        """How often the conversation was given to another agent."""
        return len(self.parts) - 1

    def feed(self, event: object) -> None:
        """Take one step."""
        match event:
            case TurnFinished():
                self._turn_finished(event)
            case ToolFinished():
                self._tool_finished(event)
            case ApprovalDecided(allowed=True):
                self._allowed.add(event.call_id)
            case HandedOff():
                self._settle()
                self.parts.append(_Part(agent=event.to, by_tool=bool(self.handing)))
                self.handing = ""
            case ApprovalNeeded():  # of a turn, nothing is made where one waits; agents below know how far they are
                self.began = self._in_doubt | {*event.in_doubt}
                for call_id in event.in_doubt:
                    self._allowed.discard(call_id)  # who allowed a call has not allowed to repeat it
                self._reported_in_doubt = {*event.in_doubt}
            case PluginEvent():
                self.reported.append(event)
            case RunFinished() | RunFailed():
                self.end = event
                self._settle()
            case RunStarted():
                self.messages, self.began = event.messages, _open_ids(event.messages)

    def _turn_finished(self, event: TurnFinished) -> None:
        self._settle()
        self.parts[-1].done += event.messages
        self.parts[-1].turns += 1
        self.turns += 1
        # Tools run once this is written: until there is a result, nobody knows.
        self.began, self._in_doubt, self._allowed = _open_ids(event.messages), set(), set()
        self._reported_in_doubt, self._stopped = set(), {}
        self._spend(Spent(turns=1, usage=event.usage))

    def _tool_finished(self, event: ToolFinished) -> None:
        self._results[event.index] = event
        self.handing = event.metadata.get(Handoff.METADATA_KEY, self.handing)
        if event.call_id in self.began and event.error != _NOT_MADE:
            self._spend(Spent(tool_calls=1))
        if event.error == STOPPED:  # it may have been done; a resumed run treats the call as one without a result
            self._stopped[event.call_id] = event.message
            return
        self.began.discard(event.call_id)
        self._in_doubt.discard(event.call_id)

    def _spend(self, more: Spent) -> None:
        before = self.spent
        self.spent = Spent(before.turns + more.turns, before.tool_calls + more.tool_calls, before.usage + more.usage)

    def resumed(self, approvals: Mapping[str, object]) -> None:
        """It goes on: calls that wait are made from now on."""
        self._reopen()
        self._reported_in_doubt -= approvals.keys()
        self.end = self._instead = None
        self._in_doubt, self.began = self.began, _open_ids([*self.messages, *self.now()])

    def added(self, messages: Iterable[Message], *, instead: bool = False) -> None:
        """Messages that nobody made in the run: after the others, or instead of them."""
        self._settle()
        if instead and self.handoffs:
            self._instead = [*messages]  # what each agent had made is still known
        elif instead:
            self.parts[0].done[:] = messages
        else:
            (self.parts[-1].done if self._instead is None else self._instead).extend(messages)

    def _settle(self) -> None:
        """Results come as tools end, and stand in the order of the calls."""
        if self._results:
            self.parts[-1].done += [self._results[index].message for index in sorted(self._results)]
            self._results.clear()

    def _reopen(self) -> None:
        """Drop the results of calls that were stopped with the run: they are open, and in doubt."""
        self._settle()
        if self._stopped:
            dropped = {id(message) for message in self._stopped.values()}
            done = self._instead if self._instead is not None else self.parts[-1].done
            done[:] = [message for message in done if id(message) not in dropped]
            self._stopped = {}

    def put_into(self, run: Run) -> None:
        """Have a run go on from here.

        An approval of a call in doubt counts only if the run has said before that the call is in doubt.
        """
        self._reopen()
        waiting = {planned.call_id: planned.call for planned in open_calls([*self.messages, *self.now()])}
        self._check_known(waiting)
        run.id, run.resume, run.recorded = self.run_id, True, self
        run.context = replace(run.context, run_id=self.run_id)
        # What somebody has allowed is asked about once; but not that it may be made twice.
        unaware = self.began - self._reported_in_doubt
        answers = {call_id: said for call_id, said in run.answers.items() if not said or call_id not in unaware}
        run.answers = self._as_approved({**dict.fromkeys(self._allowed - self.began, True), **answers}, waiting)
        run.spent, run.reported = self.spent, tuple(self.reported)
        own, *later = self.parts
        run.done = tuple(own.done)
        run.later = [part.as_it_was() for part in later]
        if later:
            run.later[-1] = replace(
                run.later[-1], in_doubt=frozenset(self.began), handoff_to=self.handing, answers=run.answers
            )
        else:
            run.in_doubt, run.handoff_to = frozenset(self.began), self.handing

    def compare_digests(self) -> None:
        """Compare the calls that wait for approval with their digests, here and in the runs below.

        `put_into` uses the results. It runs on the event loop, where comparing a call with a secret would take long.
        """
        waiting = {one.call_id: one.call for one in open_calls([*self.messages, *self.now()])}
        for call_id in waiting.keys() & self.digests.keys():
            self._is_as_approved(waiting[call_id], self.digests[call_id])
        for run in self.asked.values():
            run.compare_digests()

    def _is_as_approved(self, call: FunctionCall, digest: str) -> bool:
        key = (call.name, call.arguments, digest)
        if key not in self._compared:
            self._compared[key] = is_as_approved(call, digest)
        return self._compared[key]

    def _check_known(self, waiting: Mapping[str, FunctionCall]) -> None:
        if unknown := sorted(waiting.keys() & self.hidden):
            call = waiting[unknown[0]]
            secrets = ", ".join(placeholders_in(call.arguments))
            raise StoreError(
                f"the run cannot go on here: the arguments of the call {call.name!r} contain a secret that is not "
                f"known or has changed ({secrets}): set it as it was, or begin a new run"
            )

    def _as_approved(self, answers: Mapping[str, bool], waiting: Mapping[str, FunctionCall]) -> dict[str, bool]:
        """The answers, but for approvals of calls that are not those that were shown to be approved."""
        changed = [
            one
            for one, said in answers.items()
            if said
            and one in waiting
            and one in self.digests
            and not self._is_as_approved(waiting[one], self.digests[one])
        ]
        for one in changed:
            _log.warning(
                "run %s: the call %r was changed in the record after approval was asked for: approve it again",
                self.run_id,
                waiting[one].name,
            )
        return {one: said for one, said in answers.items() if one not in changed}

    def now(self) -> tuple[Message, ...]:
        """All messages that it has made."""
        self._settle()
        if self._instead is not None:
            return tuple(self._instead)
        return tuple(message for part in self.parts for message in part.done)

    def ask(self, told: Mapping[str, Any], number: int) -> Progress:
        """A run below begins."""
        run_id, agent = str(told.get("run_id", "")), str(told.get("agent", ""))
        below = Progress(run_id=run_id, agent=agent, number=number, parent=self, depth=self.depth + 1)
        self.asked[str(told.get("place", ""))] = below
        return below


def progress_of(entries: Iterable[str], secrets: Secrets | None = None) -> Progress:
    """Fold the entries of a recorded run into its progress; secrets are put back.

    Raises:
        StoreError: An entry cannot be read, or the record has no content.
    """
    progress = Progress()
    for _ in steps(entries, progress, secrets):
        pass
    return progress


def steps(
    entries: Iterable[str], progress: Progress, secrets: Secrets | None = None
) -> Iterator[tuple[Progress, Step]]:
    """The events among the entries with the run that they belong to, each after that has taken it.

    Raises:
        StoreError: An entry cannot be read, or the record has no content.
    """
    runs = [progress]
    for told in (read_entry(entry, secrets) for entry in entries):
        name, is_hidden, digests = told.pop("event", None), told.pop(SEAL, None), told.pop(DIGESTS, ())
        if told.get("bare"):
            raise StoreError("what was said was not recorded (content is off): it can be listed, and no more")
        run = _run_of(told, runs)
        if name == RESUMED:
            approvals = told.get("approvals")
            run.resumed(approvals if isinstance(approvals, dict) else {})
        elif name == ADDED:
            run.added(messages_in(told), instead=told.get("instead") is True)
        else:
            event = event_in(name, told)
            run.feed(event)
            if is_hidden and isinstance(event, TurnFinished | RunStarted):
                run.hidden.update(_ids_of_hidden_calls(event.messages))
            if isinstance(event, ApprovalNeeded):
                run.digests = dict(zip(event.call_ids, digests, strict=False))
            if isinstance(event, RunFinished):
                run.added(event.messages)
            yield run, event
    progress.below = len(runs) - 1
    for run in reversed(runs):  # a run below has a higher number than the run above it
        run.now()
        if run.parent is not None:
            run.parent.spent = run.parent.spent.plus_below(run.spent)


def _run_of(told: dict[str, Any], runs: list[Progress]) -> Progress:
    """The run that an entry belongs to; the first entry of one below says more of it."""
    number: object = told.pop("below", 0)
    begins = told.pop("asked", None)
    parent = begins.get("above") if isinstance(begins, dict) else None
    if isinstance(begins, dict) and isinstance(parent, int) and 0 <= parent < len(runs):
        runs.append(runs[parent].ask(begins, len(runs)))
    if not isinstance(number, int) or not 0 <= number < len(runs):
        raise StoreError(f"the record cannot be read: there is no run {number!r} below")
    return runs[number]


def _ids_of_hidden_calls(messages: Sequence[Message]) -> set[str]:
    return {one.call_id for one in open_calls(messages) if placeholders_in(one.call.arguments)}


def _open_ids(messages: Sequence[Message]) -> set[str]:
    return {planned.call_id for planned in open_calls(messages)}
