"""Requests, answers and phases of runs, as any process reads them from a record."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest

from jackfield.errors import ConfigError, StoreError
from jackfield.events import ApprovalNeeded, PluginEvent, RunFailed, RunStarted, TurnFinished
from jackfield.messages import FunctionCall, Message, Usage
from jackfield.servers import refusal_of
from jackfield.stores import StoredRun
from jackfield.tools import Denial
from jackfield_records.entries import entry_of
from jackfield_serving import (
    INPUT,
    AgentNotFoundError,
    DrainingError,
    InputTooLargeError,
    NotWaitingError,
    OptionsRefusedError,
    SessionBusyError,
    TooManyRunsError,
)
from jackfield_serving.numbering import STRIDE
from jackfield_serving.questions import Questions
from jackfield_serving.reading import RunRecord, _read_json, read_run, summary_of
from jackfield_serving.requests import Answers, Request, is_internal, request_of, size_of
from jackfield_serving.views import WaitingCall

SCHEMA = {"name": "locate", "parameters": {"type": "object", "properties": {}}}
FIELDS: dict[str, Any] = {
    "config": {"temperature": 0}, "output": {"type": "object"}, "client_tools": (SCHEMA,), "continues": "r0",
    "takes_questions": True, "model": "m", "call": FunctionCall("pay", '{"amount": 3}'),
}  # fmt: skip


@pytest.mark.parametrize("name", list(FIELDS))
def test_each_part_of_a_request_comes_back_from_its_record(name: str) -> None:
    request = Request(**{name: FIELDS[name]})
    facts = json.loads(json.dumps(request.as_facts()))
    assert facts.keys() == {name}
    assert request_of(facts) == request


def test_a_request_without_parts_has_no_facts_and_a_run_without_facts_no_request() -> None:
    assert Request().as_facts() == {}
    assert request_of({}) == Request()
    assert request_of(None) is None
    circle: dict[str, Any] = {}
    circle["x"] = circle
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    for value in (object(), circle, deep):
        with pytest.raises(ConfigError, match="must be JSON-serializable"):
            Request(config={"x": value}).as_facts()
    assert request_of({"takes_questions": "yes"}) == Request()


PHASES: list[tuple[str, bool, str, str]] = [
    ("running", False, "running", ""),
    ("running", True, "queued", ""),
    ("forked", False, "running", ""),
    ("forked", True, "queued", ""),
    ("approval_needed", False, "waiting", "approval_needed"),
    ("approval_needed", True, "waiting", "approval_needed"),
    ("input_needed", False, "waiting", "input_needed"),
    ("finished", False, "ended", "finished"),
    ("finished", True, "ended", "finished"),
    ("failed", False, "ended", "failed"),
    ("cancelled", False, "ended", "cancelled"),
]


@pytest.mark.parametrize(("state", "is_queued", "phase", "stop_reason"), PHASES)
def test_the_phase_of_a_run_follows_from_its_state(state: str, is_queued: bool, phase: str, stop_reason: str) -> None:
    run = StoredRun(
        run_id="r",
        agent="a",
        session="s",
        owner="o",
        title="t",
        parent="p",
        state=state,
        began=1.0,
        changed=2.0,
        entries=3,
    )
    summary = summary_of(run, is_queued=is_queued)
    assert (summary.phase, summary.stop_reason) == (phase, stop_reason)
    assert (summary.run_id, summary.agent, summary.session, summary.owner, summary.title, summary.parent) == (
        "r", "a", "s", "o", "t", "p",
    )  # fmt: skip
    assert (summary.began, summary.changed, summary.number) == (1.0, 2.0, 3 * STRIDE)


def paused(state: str = "approval_needed", **needed: Any) -> RunRecord:
    calls = (FunctionCall("pay", "{}"), FunctionCall("locate", "{}"), FunctionCall("locate", "{}"))
    fields: dict[str, Any] = {"agents": ("", "", "clerk"), "in_doubt": ("c1",), **needed}
    return RunRecord(
        run=StoredRun(run_id="r", state=state), entries=[], recorded_request=Request(client_tools=(SCHEMA,)),
        needed=ApprovalNeeded(calls, ("c1", "c2", "c3"), **fields),
    )  # fmt: skip


def test_a_call_of_the_clients_tool_is_the_clients_unless_a_nested_agent_makes_it() -> None:
    waiting = [(one.call_id, one.kind, one.agent, one.in_doubt) for one in paused().waiting]
    assert waiting == [
        ("c1", "approval", "", True), ("c2", "client_tool", "", False), ("c3", "approval", "clerk", False),
    ]  # fmt: skip
    assert [one.kind for one in paused(agents=()).waiting] == ["approval", "client_tool", "client_tool"]
    assert [(one.call_id, one.kind) for one in paused("input_needed").waiting] == [(INPUT, "input")]
    assert paused("finished").waiting == ()
    assert paused("running").waiting == ()


def test_answers_are_sorted_by_what_waits_for_them() -> None:
    denial = Denial("too much")
    answers = paused().sort_answers({"c1": denial, "c2": {"city": "Rome"}, "c3": False})
    assert answers == Answers(approvals={"c1": denial, "c2": True, "c3": False}, results={"c2": {"city": "Rome"}})
    note = answers.as_note().data
    assert (note["approvals"], note["reasons"]) == ({"c1": False, "c2": True, "c3": False}, {"c1": "too much"})
    for wrong in ({"c4": True}, {"c1": "yes"}, {"c1": 1}, {"c3": None}, {INPUT: "Hi"}):
        with pytest.raises(NotWaitingError):
            paused().sort_answers(wrong)
    assert paused("input_needed").sort_answers({INPUT: "Hi"}).messages == (Message("user", "Hi"),)
    several = (Message("user", "Hi"), Message("user", "there"))
    assert paused("input_needed").sort_answers({INPUT: several}).messages == several


def test_only_notes_of_the_service_are_internal_and_sizes_are_bytes() -> None:
    assert is_internal(Answers().as_note())
    assert is_internal(PluginEvent("jackfield-serving.of a later version", {}))
    assert not is_internal(PluginEvent("jackfield-other.answers", {}))
    assert not is_internal(Message("user", "Hi"))
    plain, wide = (size_of([Message("user", text)]) for text in ("xx", "🙂"))
    assert wide == plain + 2
    assert plain - 1 <= size_of([Message("user", "x\ud83d")]) <= plain + 8, "half a character"
    assert size_of([Message("user", "xx", name=None)]) == plain
    assert size_of([]) == 0


FITS: list[tuple[str, object, bool]] = [
    ("{}", True, True), ("{}", Denial("no"), True), ("{}", {"size": "L"}, False), ("{}", "yes", False),
    ('{"form": {}}', {"size": "L"}, True), ('{"form": {}}', False, True), ('{"form": {}}', None, False),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "answer", "fits"), FITS, ids=str)
def test_a_question_takes_a_decision_and_only_a_form_takes_values(arguments: str, answer: object, fits: bool) -> None:
    async def main() -> None:
        published: list[WaitingCall] = []
        questions = Questions(published.append)

        class Context:
            call_id = "c"

        calls = [FunctionCall("ask", arguments), FunctionCall("ask", "{}")]
        asking = [asyncio.create_task(questions.ask(call, Context())) for call in calls]  # type: ignore[arg-type]
        await asyncio.sleep(0)
        first, second = (question.call_id for question in questions.waiting())
        assert [one.call_id for one in published] == [first, second]
        assert not questions.answer({first: answer, "unknown": True})
        assert not questions.answer({first: "wrong", second: True})  # all or none
        assert len(questions.waiting()) == 2
        assert questions.answer({first: answer}) == fits
        assert len(questions.waiting()) == (1 if fits else 2)
        if fits:
            assert await asking[0] == answer
            assert not questions.answer({first: answer})  # the first answer counts
        for task in asking:
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)
        assert questions.waiting() == ()
        assert questions._waiting == {}

    asyncio.run(main())


def test_a_run_asks_a_bounded_number_of_questions_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jackfield_serving.questions._MOST", 1)

    async def main() -> None:
        questions = Questions(lambda _: None)

        class Context:
            call_id = "c"

        call = FunctionCall("ask", "{}")
        asking = asyncio.create_task(questions.ask(call, Context()))  # type: ignore[arg-type]
        await asyncio.sleep(0)
        assert await questions.ask(call, Context()) is False  # type: ignore[arg-type]
        assert questions.answer({questions.waiting()[0].call_id: True})
        assert await asking is True
        further = asyncio.create_task(questions.ask(call, Context()))  # type: ignore[arg-type]
        await asyncio.sleep(0)
        assert questions.answer({one.call_id: True for one in questions.waiting()}), "there is room again"
        assert await further is True

    asyncio.run(main())


ERRORS: list[tuple[Any, int, str]] = [
    (AgentNotFoundError("x"), 404, "agent_not_found"),
    (TooManyRunsError("x", retry_after_s=3), 429, "busy"),
    (DrainingError("x", retry_after_s=3), 503, "draining"),
    (SessionBusyError("x", run_id="r"), 409, "session_busy"),
    (NotWaitingError("x"), 409, "not_waiting"),
    (OptionsRefusedError("x"), 400, "unsupported_options"),
    (InputTooLargeError("x"), 413, "too_large"),
]


@pytest.mark.parametrize(("error", "status", "code"), ERRORS, ids=[type(one[0]).__name__ for one in ERRORS])
def test_a_refusal_has_the_status_and_the_code_that_clients_know(error: Any, status: int, code: str) -> None:
    refusal = refusal_of(error)
    assert (refusal.status, refusal.code, refusal.message) == (status, code, "x")
    assert refusal.retry_after_s == (3 if status in (429, 503) else None)
    assert isinstance(error, TooManyRunsError) == (status in (429, 503))
    assert getattr(error, "run_id", "r") == "r"
    assert isinstance(error, LookupError) == (status == 404)
    assert isinstance(error, ConfigError) == (status == 400)


def test_numbers_of_half_a_billion_entries_are_exact_in_javascript() -> None:
    assert 500_000_000 * STRIDE < 2**53


def test_a_run_that_is_read_has_used_what_the_agents_that_it_asked_have_used() -> None:
    def spent(tokens: int) -> TurnFinished:
        return TurnFinished(1, (Message("assistant", "Hm"),), Usage(prompt_tokens=tokens))

    nested = {"below": 1, "asked": {"above": 0, "place": "p", "run_id": "n", "agent": "clerk"}}
    events = (RunStarted(()), spent(2), spent(5))
    begun, turn, below = (json.loads(entry_of(event, with_texts=True)) for event in events)
    entries = [begun, turn, {**below, **nested}, {**below, "below": 1}]
    record = read_run(StoredRun(run_id="r"), [json.dumps(entry) for entry in entries])
    assert record.usage.prompt_tokens == 12
    assert [message.get_text_content() for message in record.response] == ["Hm"]


@pytest.mark.parametrize("state", ["finished", "failed", "cancelled", "time_limit", "running", "approval_needed"])
def test_only_the_answer_of_a_finished_run_is_data(state: str) -> None:
    """The text of any other run may be a part that happens to be JSON."""
    asked = Request(output={"type": "integer"})
    said = (Message("assistant", "12"),)
    info = RunRecord(run=StoredRun(run_id="r", state=state), entries=[], recorded_request=asked, response=said).info()
    assert (info.text, info.output) == ("12", 12 if state == "finished" else None)


ASKED = FunctionCall("pay", "{}")
BEGUN: Any = RunStarted((Message("user", "Pay."),))


def record_of(*events: Any) -> RunRecord:
    """Read a record of these events; a dict is an entry as it is."""
    entries = [json.dumps(one) if isinstance(one, dict) else entry_of(one, with_texts=True) for one in events]
    return read_run(StoredRun(run_id="r"), entries)


@pytest.mark.parametrize(
    ("later", "error"),
    [
        ([], "broken"),
        ([{"event": "Resumed", "approvals": {}}], ""),
        ([{"event": "Resumed", "approvals": {}}, RunFailed("again", "OSError")], "again"),
    ],
    ids=["failed", "resumed", "failed again"],
)
def test_the_error_of_a_run_is_that_of_its_own_latest_end(later: list[Any], error: str) -> None:
    failed = RunFailed("broken", "ValueError")
    assert record_of(BEGUN, failed, *later).info().error == error
    asked = {"above": 0, "place": "p", "run_id": "n", "agent": "clerk"}
    nested = [{**json.loads(entry_of(one, with_texts=True)), "below": 1} for one in (BEGUN, failed)]
    info = record_of(BEGUN, {**nested[0], "asked": asked}, nested[1]).info()
    assert (info.error, info.error_kind) == ("", ""), "the run that asked goes on"


@pytest.mark.parametrize(
    ("needed", "in_doubt", "kept"),
    [(("c2",), (), {"c1": True}), (("c1", "c2"), (), {}), (("c1", "c2"), ("c1",), {})],
    ids=["of another call", "again", "in doubt"],
)
def test_an_approval_does_not_hold_for_a_call_that_is_asked_about_again(
    needed: tuple[str, ...], in_doubt: tuple[str, ...], kept: dict[str, bool]
) -> None:
    """Such as one that may have been made when its process ended."""
    first, again = (ApprovalNeeded((ASKED,) * len(ids), ids) for ids in (("c1", "c2"), needed))
    said = Answers(approvals={"c1": True}).as_note()
    record = record_of(BEGUN, first, said, replace(again, in_doubt=in_doubt))
    assert record.answers.approvals == kept


def test_a_run_without_a_record_cannot_be_read_and_no_text_but_json_is_data() -> None:
    with pytest.raises(StoreError, match="run r has no record"):
        read_run(StoredRun(run_id="r"), [])
    assert (_read_json('{"a": 1}'), _read_json("low"), _read_json("")) == ({"a": 1}, None, None)
