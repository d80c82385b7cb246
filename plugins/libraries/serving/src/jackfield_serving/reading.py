"""Read a recorded run: its question, progress and pending calls."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from jackfield.errors import StoreError
from jackfield.events import ApprovalNeeded, PluginEvent, RunFailed, RunFinished, TurnFinished
from jackfield.messages import FunctionCall, Message, Usage, as_messages
from jackfield.results import text_of_answer
from jackfield.stores import RUNNING, StoredRun
from jackfield.tools import Decision, Denial
from jackfield_records import Replay
from jackfield_records.recovering import MOST_TRIES, count_tries
from jackfield_serving.errors import NotWaitingError
from jackfield_serving.numbering import STRIDE
from jackfield_serving.requests import ANSWERS, Answer, Answers, Request, request_of
from jackfield_serving.views import INPUT, RunInfo, RunPhase, RunSummary, WaitingCall

PAUSES = ("approval_needed", "input_needed")
"""The states in which a run waits for answers."""


@dataclass(slots=True, kw_only=True)
class RunRecord:
    """A recorded run.

    Attributes:
        run, entries: The run and its record.
        recorded_request: The request that started the run, or None if it was not started by a service.
        messages, response: The messages that the run began with, and those it has produced.
        usage: The usage so far.
        needed: The calls at the latest pause, or None if there are none.
        answers: The answers to calls in this turn.
        results: The results of all client tool calls.
        end: The run's end or last pause, or None while it is running.
    """

    run: StoredRun
    entries: list[str]
    recorded_request: Request | None = None
    messages: tuple[Message, ...] = ()
    response: tuple[Message, ...] = ()
    usage: Usage = field(default_factory=Usage)
    needed: ApprovalNeeded | None = None
    answers: Answers = field(default_factory=Answers)
    results: dict[str, Any] = field(default_factory=dict)
    end: RunFinished | RunFailed | None = None

    @property
    def request(self) -> Request:
        """The request that started the run, or an empty one if it was not started by a service."""
        return self.recorded_request or Request()

    @property
    def is_stuck(self) -> bool:
        """True if the run was resumed several times without a step, so that a person should look at it."""
        return count_tries(self.entries) >= MOST_TRIES

    @property
    def waiting(self) -> tuple[WaitingCall, ...]:
        """The calls that the run waits for."""
        if self.run.state == "input_needed":
            return (WaitingCall(call_id=INPUT, call=FunctionCall(INPUT, "{}"), kind="input"),)
        if self.run.state != "approval_needed" or self.needed is None:
            return ()
        names = {schema["name"] for schema in self.request.client_tools}
        agents = self.needed.agents or ("",) * len(self.needed.calls)
        return tuple(
            WaitingCall(
                call_id=call_id,
                call=call,
                kind="client_tool" if call.name in names and not agent else "approval",
                agent=agent,
                in_doubt=call_id in self.needed.in_doubt,
            )
            for call, call_id, agent in zip(self.needed.calls, self.needed.call_ids, agents, strict=True)
        )

    def sort_answers(self, answers: Mapping[str, Answer]) -> Answers:
        """Sort answers by type.

        Raises:
            NotWaitingError: The run does not wait for one of the answers, or an approval is not a decision.
            InvalidMessageError: A person's message is invalid.
        """
        waiting = {call.call_id: call for call in self.waiting}
        approvals, results = dict[str, Decision](), dict[str, Any]()
        for call_id, answer in answers.items():
            if call_id not in waiting:
                ids = ", ".join(map(repr, waiting)) or "nothing"
                raise NotWaitingError(f"run {self.run.run_id} is not waiting for {call_id!r}; it is waiting for {ids}")
            if waiting[call_id].kind == "input":
                return Answers(messages=as_messages(answer))
            if waiting[call_id].kind == "client_tool":
                approvals[call_id], results[call_id] = True, answer
            elif isinstance(answer, bool | Denial):
                approvals[call_id] = answer
            else:
                raise NotWaitingError(
                    f"call {call_id!r} is awaiting approval: respond with True, False or Denial(reason)"
                )
        return Answers(approvals=approvals, results=results)

    def summary(self, *, is_queued: bool = False) -> RunSummary:
        """Return the run's list entry."""
        return summary_of(self.run, is_queued=is_queued)

    def info(self, *, is_queued: bool = False) -> RunInfo:
        """Return the run with its messages."""
        summary = self.summary(is_queued=is_queued)
        text = text_of_answer(self.response) if self.response else ""
        is_done = summary.stop_reason == "finished"
        request = self.request
        return RunInfo(
            **{
                **{name: getattr(summary, name) for name in RunSummary.__dataclass_fields__},
                "number": len(self.entries) * STRIDE,
            },
            messages=self.messages,
            response=self.response,
            usage=self.usage,
            waiting=self.waiting,
            error=self.end.error if isinstance(self.end, RunFailed) else "",
            error_kind=self.end.kind if isinstance(self.end, RunFailed) else "",
            text=text,
            output=_read_json(text) if is_done and request.output is not None else None,
            request={
                "config": request.config,
                "output": request.output,
                "client_tools": request.client_tools,
                "continues": request.continues,
            },
        )


def read_run(run: StoredRun, entries: list[str]) -> RunRecord:
    """Read a record.

    Raises:
        StoreError: An entry cannot be read.
    """
    record = RunRecord(run=run, entries=entries)
    replay = Replay(run)
    for entry in entries:
        events = replay.feed(entry)
        if not events:
            record.end = None
            continue
        if events[-1].depth:
            continue
        match events[-1].event:
            case PluginEvent(name=name) as note if name == ANSWERS:
                _take_answers(record, note)
            case ApprovalNeeded() as needed:
                # Earlier decisions of this turn stay, because its calls wait until all are decided.
                kept = {one: said for one, said in record.answers.approvals.items() if one not in needed.call_ids}
                record.needed, record.answers = needed, Answers(approvals=kept)
            case TurnFinished():  # models reuse ids of calls
                record.answers = Answers()
            case RunFinished() | RunFailed() as end:
                record.end = end
    if not entries:
        raise StoreError(f"run {run.run_id} has no record")
    replay.settle()
    progress = replay.progress
    record.recorded_request = request_of(progress.facts)
    record.messages, record.response, record.usage = progress.messages, progress.now(), progress.spent.usage
    return record


def summary_of(run: StoredRun, *, is_queued: bool = False) -> RunSummary:
    """Return a stored run's list entry."""
    phase: RunPhase = "ended"
    if run.state in (RUNNING, "forked"):
        phase = "queued" if is_queued else "running"
    elif run.state in PAUSES:
        phase = "waiting"
    return RunSummary(
        run_id=run.run_id,
        agent=run.agent,
        session=run.session,
        owner=run.owner,
        phase=phase,
        stop_reason="" if phase in ("running", "queued") else run.state,
        title=run.title,
        parent=run.parent,
        began=run.began,
        changed=run.changed,
        number=run.entries * STRIDE,
    )


def _take_answers(record: RunRecord, note: PluginEvent) -> None:
    approvals, results = note.data.get("approvals"), note.data.get("results")
    denials = {call_id: Denial(reason) for call_id, reason in (note.data.get("reasons") or {}).items()}
    decisions = {**record.answers.approvals, **(approvals or {}), **denials}
    record.answers = Answers(approvals=decisions, results=results or {})
    record.results.update(results or {})


def _read_json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None
