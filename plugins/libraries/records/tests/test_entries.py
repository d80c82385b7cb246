"""Entries hold events: all of one, or the names, times and usage where content is off."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pytest

from jackfield import Message
from jackfield.errors import StoreError
from jackfield.events import (
    ApprovalDecided,
    ApprovalNeeded,
    HandedOff,
    HistoryTrimmed,
    PluginEvent,
    RunFailed,
    RunFinished,
    RunStarted,
    ToolFinished,
    TurnFinished,
)
from jackfield.messages import FunctionCall, Usage
from jackfield.secrets import Secret, Secrets
from jackfield_records.entries import Step, entry_of, head_of, hide_entry, messages_in, step_in
from jackfield_records.progress import EntryReader, Progress, progress_of

CALL = FunctionCall("pay", '{"to": "Ada"}')
ASKS = Message("assistant", "", function_call=CALL, extra={"function_id": "c1"})
SAYS = Message("assistant", "Ada is paid.")
USED = Usage(prompt_tokens=3, completion_tokens=1, cost=Decimal("0.5"), currency="EUR")
PAID = Message("function", "paid Ada", name="pay", extra={"function_id": "c1"})
USAGE = {**USED.model_dump(), "cost": "0.5"}  # zeros included
STEPS: Mapping[str, tuple[Step, dict[str, Any]]] = {
    "begun": (RunStarted((Message("user", "Pay Ada."),)), {}),
    "turn": (
        TurnFinished(2, (SAYS, ASKS), USED, 1.23456),
        {"turn": 2, "seconds": 1.235, "usage": USAGE, "calls": ["pay"]},
    ),
    "result": (
        ToolFinished(1, "c1", PAID, 0.25, "ValueError", {"note": "for Ada", "pair": (1, 2)}),
        {"index": 1, "call_id": "c1", "name": "pay", "seconds": 0.25, "error": "ValueError"},
    ),
    "question": (ApprovalNeeded((CALL,), ("c1",), ("c1",), ("clerk",)), {"calls": ["pay"]}),
    "decision": (
        ApprovalDecided("c1", CALL, allowed=False, by="approve", reason="Not Ada."),
        {"call_id": "c1", "name": "pay", "allowed": False, "by": "approve"},
    ),
    "hand-off": (HandedOff("desk", "clerk"), {"by": "desk", "to": "clerk"}),
    "end": (RunFinished("turn_limit", (SAYS,), USED), {"stop_reason": "turn_limit", "usage": USAGE}),
    "failure": (RunFailed("no account of Ada", "ValueError"), {"kind": "ValueError"}),
    "report": (PluginEvent("acme.note", {"note": "Ada"}), {}),
    "trimmed": (HistoryTrimmed(1, 2, 900, 500), {}),
}


@pytest.mark.parametrize("kind", STEPS)
def test_an_entry_has_all_of_an_event_or_none_of_its_texts(kind: str) -> None:
    event, facts = STEPS[kind]
    whole, bare = entry_of(event, with_texts=True), entry_of(event, with_texts=False)
    again = step_in(whole)
    if isinstance(event, ToolFinished):
        assert isinstance(again, ToolFinished)
        assert (again.message, again.metadata) == (event.message, {"note": "for Ada", "pair": [1, 2]})
        assert (again.index, again.call_id, again.seconds, again.error) == (1, "c1", 0.25, "ValueError")
    else:
        assert again == event
    if isinstance(event, TurnFinished):
        assert isinstance(again, TurnFinished)
        assert again.seconds == 1.235
    assert json.loads(bare) == {"event": type(event).__name__, "bare": True, **facts}
    assert "Ada" not in bare
    assert head_of(whole).event == head_of(bare).event == type(event).__name__


def test_a_message_with_an_object_of_the_caller_is_recorded_with_its_repr() -> None:
    class Ticket:
        def __repr__(self) -> str:
            return "ticket 7"

    message = Message("user", "Pay.", extra={"ticket": Ticket()})
    [again] = messages_in(json.loads(entry_of(RunStarted((message,)), with_texts=True)))
    assert (again.get_text_content(), again.extra) == ("Pay.", {"ticket": "ticket 7"})


@pytest.mark.parametrize("messages", [3, [3], [{}], [{"role": 3, "content": "x"}], [{"role": "user", "self": "x"}]])
def test_messages_of_another_form_cannot_be_read(messages: object) -> None:
    with pytest.raises(StoreError, match="the record cannot be read, or was written by a newer version"):
        messages_in({"messages": messages})


BEGUN = '{"event": "RunStarted", "messages": []'


@pytest.mark.parametrize(
    "entry",
    [
        f'{BEGUN}, "below": 1}}',
        f'{BEGUN}, "below": -1}}',
        f'{BEGUN}, "below": "0"}}',
        f'{BEGUN}, "below": 1, "asked": {{"above": -1}}}}',
        f'{BEGUN}, "below": 1, "asked": {{"above": 1}}}}',
        f'{BEGUN}, "below": 1, "asked": {{"above": "0"}}}}',
        f'{BEGUN}, "below": 1, "asked": 3}}',
    ],
)
def test_an_entry_of_a_nested_run_that_never_began_cannot_be_read(entry: str) -> None:
    with pytest.raises(StoreError, match="the record cannot be read: no nested run"):
        progress_of([f"{BEGUN}}}", entry])


def test_facts_and_approvals_of_another_form_count_as_none() -> None:
    assert progress_of([f'{BEGUN}, "facts": 3}}', '{"event": "Resumed", "approvals": 3}']).facts == {}
    assert progress_of([f"{BEGUN}}}"]).facts is None


@pytest.mark.parametrize("secret", ["in the arguments", "beside the call"])
@pytest.mark.parametrize("kind", [RunStarted, TurnFinished])
def test_a_call_is_known_to_need_a_secret_only_if_its_arguments_have_one(kind: type, secret: str) -> None:
    key = "sk-live-Q7rT2mZx9LpW4vNc8KdB"
    arguments, text = (key, "") if secret == "in the arguments" else ("x", key)
    asks = Message("assistant", text, function_call=FunctionCall("pay", arguments), extra={"function_id": "c1"})
    messages = (Message("user", "Pay."), asks)
    event: Step = RunStarted(messages) if kind is RunStarted else TurnFinished(1, (asks,), Usage())
    entry = asyncio.run(hide_entry(entry_of(event, with_texts=True), Secrets([Secret("K", key)])))
    assert key not in entry
    progress = Progress()
    EntryReader(progress, Secrets()).read(entry)
    assert progress.hidden == ({"c1"} if secret == "in the arguments" else set())
