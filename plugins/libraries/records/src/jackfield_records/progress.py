"""Reconstruct the progress of a recorded run and its nested runs."""

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
from jackfield.runs import Part, Run, RunState, Spent, open_calls
from jackfield.secrets import SEAL, Secrets, placeholders_in
from jackfield.tools import STOPPED, Decision
from jackfield_records.entries import (
    ADDED,
    DIGESTS,
    FACTS,
    RESUMED,
    TRACED,
    Step,
    event_in,
    is_as_approved,
    messages_in,
    read_entry,
)

_log = logging.getLogger(__name__)
_NOT_MADE = "CutOff"  # the error of a call in which the answer was cut off
_RESUMABLE_ENDS = ("approval_needed", "input_needed", "cancelled", "time_limit")


@dataclass(kw_only=True)
class _Part:
    """One agent's work from when it took over the conversation. Its messages start at `begin` in the history."""

    agent: str = ""
    by_handoff: bool = False
    begin: int = 0
    turns: int = 0


@dataclass(kw_only=True, eq=False)
class Progress(RunState):
    """A recorded run's state, and the metadata needed to resume it.

    Attributes:
        began: The ids of calls that may have been made but have no result.
        parts: The agents that handled the conversation, in order, starting with the run's own.
        run_id, agent: The run's id, and the name of its agent. The store has the name for the top-level run.
        number: A nested run's number in the record, or 0 for the run itself.
        parent: The run that waits for this nested run.
        asked: The nested runs by place. For a run that was restarted, the last attempt.
        entries, below: The number of entries and of nested runs in the record.
        state: The run's state in the store, or ''.
        digests: The digests of calls that await approval, by call id.
        facts: Metadata from the process that recorded the run.
        hidden: The ids of calls whose arguments contain a secret that is not known here.
        trace: The trace, as HTTP headers, of this run or the one it was forked from.
        traced: The id of the run that `trace` belongs to, or ''.
    """

    began: set[str] = field(default_factory=set)
    parts: list[_Part] = field(default_factory=lambda: [_Part()])
    run_id: str = ""
    agent: str = ""
    number: int = 0
    parent: Progress | None = None
    asked: dict[str, Progress] = field(default_factory=dict)
    depth: int = 0
    entries: int = 0
    below: int = 0
    state: str = ""
    digests: Mapping[str, str] = field(default_factory=dict)
    facts: Mapping[str, Any] | None = None
    hidden: set[str] = field(default_factory=set)
    trace: Mapping[str, str] = field(default_factory=dict)
    traced: str = ""
    _compared: dict[tuple[str, str, str], bool] = field(default_factory=dict)
    _allowed: set[str] = field(default_factory=set)
    _reported_in_doubt: set[str] = field(default_factory=set)
    _stopped: dict[str, Message] = field(default_factory=dict)
    _under_way: set[str] = field(default_factory=set)
    _instead: list[Message] | None = None

    @classmethod
    def of_messages(cls, messages: Sequence[Message], *, number: int = 0) -> Progress:
        """Return the progress of a run that begins with these messages."""
        progress = cls(number=number)
        progress._begin_with(messages)
        return progress

    @property
    def messages(self) -> tuple[Message, ...]:
        """The messages that the run began with."""
        return tuple(self.history[: self.start])

    @property
    def turns(self) -> int:
        """The number of model answers in the run, from all agents."""
        return self.spent.turns

    @property
    def has_finished(self) -> bool:
        """True if the run has completed, so that there is nothing to continue."""
        return isinstance(self.end, RunFinished) and self.end.stop_reason == "finished"

    @property
    def has_ended(self) -> bool:
        """True if only a new question can continue the run."""
        return isinstance(self.end, RunFinished) and self.end.stop_reason not in _RESUMABLE_ENDS

    @property
    def may_have_acted(self) -> bool:
        """True if this run or a nested one has called a tool, or may have done so."""
        return bool(self.began or self.spent.tool_calls) or any(run.may_have_acted for run in self.asked.values())

    @property
    def handoffs(self) -> int:
        """The number of hand-offs to other agents."""
        return len(self.parts) - 1

    def feed(self, event: Step) -> None:
        """Apply one step."""
        match event:
            case TurnFinished():
                self._take_turn(event)
            case ToolFinished():
                self._take_result(event)
            case ApprovalDecided(allowed=True):
                self._allowed.add(event.call_id)
            case HandedOff():
                by_handoff = bool(self.handoff_to)
                self.apply(event)
                self.parts.append(_Part(agent=event.to, by_handoff=by_handoff, begin=len(self.history)))
            case ApprovalNeeded():  # while one call of a turn waits, none is made; nested runs track their own progress
                self.apply(event)
                self.began = self._under_way | {*event.in_doubt}
                for call_id in event.in_doubt:
                    self._allowed.discard(call_id)  # approving a call does not approve repeating it
                self._reported_in_doubt = {*event.in_doubt}
            case PluginEvent():
                self.reported = (*self.reported, event)
            case RunFinished() | RunFailed():  # a recorded end has only the messages that are in no step
                self.end = event
                self.settle()
            case RunStarted():
                self._begin_with(event.messages)

    def _begin_with(self, messages: Sequence[Message]) -> None:
        self.history[:], self.start = messages, len(messages)
        first = self.parts[0]
        self.parts[:] = [_Part(agent=first.agent, by_handoff=first.by_handoff, begin=self.start)]
        self.began = _open_ids(messages)

    def _take_turn(self, event: TurnFinished) -> None:
        self.apply(event)
        self.parts[-1].turns += 1
        # Tools run once this is written; until there is a result, the outcome is unknown.
        self.began, self._under_way, self._allowed = _open_ids(event.messages), set(), set()
        self._reported_in_doubt, self._stopped = set(), {}

    def _take_result(self, event: ToolFinished) -> None:
        self.apply(event)
        if event.call_id in self.began and event.error != _NOT_MADE:
            self.spent = self.spent.plus_calls(1)
        if event.error == STOPPED:  # it may have been done; a resumed run treats the call as one without a result
            self._stopped[event.call_id] = event.message
            return
        self.began.discard(event.call_id)
        self._under_way.discard(event.call_id)

    def resumed(self, approvals: Mapping[str, object]) -> None:
        """Record that the run continues, so that waiting calls may be made from now on."""
        self._reopen()
        self._reported_in_doubt -= approvals.keys()
        self.end = self._instead = None
        self._under_way, self.began = self.began, _open_ids([*self.messages, *self.now()])

    def added(self, messages: Iterable[Message], *, instead: bool = False) -> None:
        """Add messages from neither a model nor a tool, either after the existing ones or replacing them."""
        self.settle()
        if instead and self.handoffs:
            self._instead = [*messages]  # the messages of each agent are still known
        elif instead:
            self.replace_made([*messages])
        else:
            (self.history if self._instead is None else self._instead).extend(messages)

    def _reopen(self) -> None:
        """Drop the results of calls that were stopped with the run. The calls become pending and in doubt."""
        self.settle()
        if self._stopped:
            dropped = {id(message) for message in self._stopped.values()}
            done = self.history if self._instead is None else self._instead
            done[:] = [message for message in done if id(message) not in dropped]
            self._stopped = {}

    def resume(self, run: Run) -> Run:
        """Return the run as it should continue from here.

        An approval of a call in doubt counts only if the run has already reported that the call is in doubt.
        """
        self._reopen()
        waiting = {planned.call_id: planned.call for planned in open_calls([*self.messages, *self.now()])}
        self._check_known(waiting)
        # An approval is requested once, but it does not allow making the call twice.
        unaware = self.began - self._reported_in_doubt
        answers = {call_id: said for call_id, said in run.answers.items() if not said or call_id not in unaware}
        answers = self._as_approved({**dict.fromkeys(self._allowed - self.began, True), **answers}, waiting)
        ends = [part.begin for part in self.parts[1:]] + [len(self.history)]
        starts = [
            RunState(history=self.history[part.begin : end], spent=Spent(turns=part.turns))
            for part, end in zip(self.parts, ends, strict=True)
        ]
        starts[0].spent, starts[0].reported = self.spent, self.reported
        starts[-1].in_doubt, starts[-1].handoff_to = frozenset(self.began), self.handoff_to
        later = [
            Part(agent=part.agent, by_handoff=part.by_handoff, start=start)
            for part, start in zip(self.parts[1:], starts[1:], strict=True)
        ]
        if later:
            later[-1] = replace(later[-1], answers=answers)
        return replace(
            run,
            id=self.run_id,
            context=replace(run.context, run_id=self.run_id),
            resume=True,
            answers=answers,
            start=starts[0],
            later_parts=later,
            trace=self.trace,
        )

    def compare_digests(self) -> None:
        """Compare the calls that await approval with their digests, here and in nested runs, and cache the results.

        `resume` uses the results on the event loop, where comparing a call that contains a secret would take too long.
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
                f"the run cannot continue in this process: the arguments of its call to {call.name!r} contain a secret "
                f"that is missing or has changed ({secrets}). Restore its original value, or start a new run"
            )

    def _as_approved(self, answers: Mapping[str, Decision], waiting: Mapping[str, FunctionCall]) -> dict[str, Decision]:
        """Return the decisions without approvals of calls that have changed since a person saw them."""
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
        """Return all messages that the run has produced."""
        self.settle()
        return self.made if self._instead is None else tuple(self._instead)

    def ask(self, begins: Mapping[str, Any], number: int) -> Progress:
        """Begin a nested run, as described by `asked` in its first entry."""
        run_id, agent = str(begins.get("run_id", "")), str(begins.get("agent", ""))
        below = Progress(run_id=run_id, agent=agent, number=number, parent=self, depth=self.depth + 1)
        self.asked[str(begins.get("place", ""))] = below
        return below


def progress_of(entries: Iterable[str], secrets: Secrets | None = None) -> Progress:
    """Compute a recorded run's progress from its entries, with secrets restored.

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
    """Apply the entries to `progress`, and yield each event with its run after it has been applied.

    Raises:
        StoreError: An entry cannot be read, or the record has no content.
    """
    reader = EntryReader(progress, secrets)
    for entry in entries:
        run, step = reader.read(entry)
        if step is not None:
            yield run, step
    reader.settle()


class EntryReader:
    """Applies a record's entries to the progress of its runs, one at a time.

    Args:
        progress: The run's progress before its first entry.
        secrets: The secrets to restore in the entries.
    """

    def __init__(self, progress: Progress, secrets: Secrets | None = None) -> None:
        self._runs = [progress]
        self._secrets = secrets

    def read(self, entry: str) -> tuple[Progress, Step | None]:
        """Apply the next entry, and return its run and its event, which is None if the entry is not an event.

        Raises:
            StoreError: The entry cannot be read, or the record has no content.
        """
        fields = read_entry(entry, self._secrets)
        name, is_hidden, digests = fields.pop("event", None), fields.pop(SEAL, None), fields.pop(DIGESTS, ())
        if fields.get("bare"):
            raise StoreError("the run can only be listed, because its content was not recorded (`content` is off)")
        run = _run_of(fields, self._runs)
        if FACTS in fields:
            facts = fields.pop(FACTS)
            run.facts = facts if isinstance(facts, dict) else {}
        if name == RESUMED:
            approvals = fields.get("approvals")
            run.resumed(approvals if isinstance(approvals, dict) else {})
            return run, None
        if name == ADDED:
            run.added(messages_in(fields), instead=fields.get("instead") is True)
            return run, None
        if name == TRACED:
            run.trace, run.traced = _headers_in(fields), str(fields.get("run_id", ""))
            return run, None
        event = event_in(name, fields)
        run.feed(event)
        if is_hidden and isinstance(event, TurnFinished | RunStarted):
            run.hidden.update(_ids_of_hidden_calls(event.messages))
        if isinstance(event, ApprovalNeeded):
            run.digests = dict(zip(event.call_ids, digests, strict=False))
        if isinstance(event, RunFinished):
            run.added(event.messages)
        return run, event

    def settle(self) -> None:
        """Add the usage of nested runs to their parents. Called after the last entry."""
        self._runs[0].below = len(self._runs) - 1
        for run in reversed(self._runs):  # a nested run has a higher number than its parent
            run.now()
            if run.parent is not None:
                run.parent.spent = run.parent.spent.plus_below(run.spent)


def _run_of(fields: dict[str, Any], runs: list[Progress]) -> Progress:
    """Return the run that an entry belongs to. A nested run is described by its first entry."""
    number: object = fields.pop("below", 0)
    begins = fields.pop("asked", None)
    parent = begins.get("above") if isinstance(begins, dict) else None
    if isinstance(begins, dict) and isinstance(parent, int) and 0 <= parent < len(runs):
        runs.append(runs[parent].ask(begins, len(runs)))
    if not isinstance(number, int) or not 0 <= number < len(runs):
        raise StoreError(f"the record cannot be read: no nested run {number!r}")
    return runs[number]


def _headers_in(fields: Mapping[str, Any]) -> dict[str, str]:
    headers = fields.get("headers")
    return {name: text for name, text in headers.items() if isinstance(text, str)} if isinstance(headers, dict) else {}


def _ids_of_hidden_calls(messages: Sequence[Message]) -> set[str]:
    return {one.call_id for one in open_calls(messages) if placeholders_in(one.call.arguments)}


def _open_ids(messages: Sequence[Message]) -> set[str]:
    return {planned.call_id for planned in open_calls(messages)}
