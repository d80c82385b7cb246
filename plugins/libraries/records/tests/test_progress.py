"""The fold over the steps of a run: what has been done, what is in doubt, and what an approval still allows."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield import FunctionCall, Message
from jackfield.agents import Run, Spent
from jackfield.config import Limits
from jackfield.events import (
    ApprovalDecided,
    ApprovalNeeded,
    HandedOff,
    PluginEvent,
    RunFinished,
    RunStarted,
    StopReason,
    ToolFinished,
    TurnFinished,
)
from jackfield.messages import Usage
from jackfield.secrets import digest_of
from jackfield.tools import STOPPED, ToolContext
from jackfield_records.progress import Progress

CALL = FunctionCall("pay", "{}")
RESUMABLE = {"approval_needed", "input_needed", "cancelled", "time_limit"}


def call(call_id: str) -> Message:
    return Message("assistant", "", function_call=CALL, extra={"function_id": call_id})


def result(index: int, error: str = "") -> ToolFinished:
    call_id = f"c{index}"
    message = Message("function", f"result {index}", name="pay", extra={"function_id": call_id})
    return ToolFinished(index, call_id, message, 0.0, error)


def under_way(*ids: str) -> Progress:
    """A run whose model has made these calls."""
    progress = Progress()
    progress.feed(RunStarted((Message("user", "Pay."),)))
    progress.feed(TurnFinished(1, tuple(map(call, ids)), Usage()))
    return progress


def go_on(progress: Progress, answers: Mapping[str, bool]) -> Run:
    run = Run(messages=(), lang="en", limits=Limits(), context=ToolContext(), answers=answers)
    return progress.resume(run)


def test_an_approval_before_an_interruption_does_not_allow_a_second_call() -> None:
    progress = under_way("c0")
    progress.feed(ApprovalDecided("c0", CALL, allowed=True, by="approve"))
    run = go_on(progress, {})
    assert run.start.in_doubt == {"c0"}
    assert run.answers == {}


def test_an_approval_of_a_call_that_never_began_still_counts() -> None:
    progress = under_way("c0", "c1")
    progress.feed(ApprovalDecided("c0", CALL, allowed=True, by="approve"))
    progress.feed(ApprovalNeeded((CALL,), ("c1",)))
    run = go_on(progress, {"c1": True})
    assert run.start.in_doubt == frozenset()
    assert run.answers == {"c0": True, "c1": True}


@pytest.mark.parametrize("said", [True, False])
def test_an_answer_to_a_call_in_doubt_counts_once_the_doubt_was_reported(said: bool) -> None:
    progress = under_way("c0")
    assert go_on(progress, {"c0": said}).answers == ({} if said else {"c0": False})
    progress.resumed({})
    progress.feed(ApprovalNeeded((CALL,), ("c0",), ("c0",)))
    assert go_on(progress, {"c0": said}).answers == {"c0": said}


def test_an_answer_to_a_doubt_counts_for_one_attempt() -> None:
    progress = under_way("c0")
    progress.resumed({})
    progress.feed(ApprovalNeeded((CALL,), ("c0",), ("c0",)))
    progress.resumed({"c0": True})  # and interrupted again, in the middle of the second attempt
    assert go_on(progress, {"c0": True}).answers == {}


@pytest.mark.parametrize("reason", get_args(StopReason))
def test_only_some_ends_leave_something_to_go_on_with(reason: StopReason) -> None:
    progress = under_way()
    assert not progress.has_ended
    progress.feed(RunFinished(reason, (), Usage()))
    assert progress.has_ended == (reason not in RESUMABLE)
    assert progress.has_finished == (reason == "finished")


def test_a_run_may_have_acted_if_one_at_any_depth_below_may_have() -> None:
    top = under_way()
    assert not top.may_have_acted
    below = top.ask({"run_id": "b", "agent": "helper", "place": "p"}, 1)
    deeper = below.ask({"run_id": "c", "agent": "deeper", "place": "q"}, 2)
    assert not top.may_have_acted
    deeper.feed(TurnFinished(1, (call("c0"),), Usage()))
    assert top.may_have_acted
    deeper.feed(result(0))
    assert top.may_have_acted, "the call was made"


@given(st.lists(st.integers(0, 3), unique=True))
def test_results_are_kept_in_the_order_of_the_calls_even_if_earlier_ones_are_missing(order: list[int]) -> None:
    progress = under_way(*(f"c{index}" for index in range(4)))
    for index in order:
        progress.feed(result(index))
    texts = [message.get_text_content() for message in progress.now() if message.role == "function"]
    assert texts == [f"result {index}" for index in sorted(order)]
    assert progress.spent == Spent(turns=1, tool_calls=len(order))


def test_a_call_that_an_answer_was_cut_off_in_is_not_counted_as_made() -> None:
    progress = under_way("c0", "c1")
    progress.feed(result(0, "CutOff"))
    progress.feed(result(1))
    assert progress.spent.tool_calls == 1


@pytest.mark.parametrize("hands_over", [False, True])
def test_a_call_that_was_stopped_is_open_and_in_doubt_each_time_the_run_goes_on(hands_over: bool) -> None:
    progress = under_way() if hands_over else under_way("c0")
    if hands_over:
        progress.feed(HandedOff("boss", "helper"))
        progress.feed(TurnFinished(2, (call("c0"),), Usage()))
    for _ in range(2):
        progress.feed(result(0, STOPPED))
        progress.feed(RunFinished("cancelled", (), Usage()))
        assert [message.role for message in progress.now()][-1] == "function", "the history is valid as it is"
        run = go_on(progress, {})
        start = (run.later_parts[-1] if hands_over else run).start
        assert (start.in_doubt, [message.role for message in start.made]) == ({"c0"}, ["assistant"])
        progress.resumed({})
    progress.feed(result(0))
    assert [message.role for message in progress.now()][-1] == "function"
    assert not progress.began


def test_the_fold_of_a_run_does_not_change_what_was_handed_out() -> None:
    progress = under_way("c0")
    run = go_on(progress, {})
    before = dataclasses.replace(run.start, history=[*run.start.history])
    progress.feed(result(0))
    progress.feed(TurnFinished(2, (Message("assistant", "Paid."),), Usage()))
    assert (run.start.made, run.start.spent) == (before.made, before.spent)
    assert len(progress.now()) == len(run.start.made) + 2


def test_runs_have_parts_of_their_own() -> None:
    one = Progress.of_messages((Message("user", "Hi"),))
    other = Progress.of_messages((Message("system", "Be brief."), Message("user", "Hi")))
    one.feed(HandedOff("a", "b"))
    assert ([part.begin for part in one.parts], [part.begin for part in other.parts]) == ([1, 1], [2])
    assert (one.handoffs, other.handoffs) == (1, 0)


@pytest.mark.parametrize("approvals", [{"c0": True}, {}], ids=["by a person", "by the agent's own rule"])
def test_what_was_said_about_a_call_does_not_count_for_a_later_call_of_the_same_id(approvals: dict[str, bool]) -> None:
    progress = under_way("c0")
    progress.resumed({})  # the first call was under way
    progress.feed(ApprovalNeeded((CALL,), ("c0",), ("c0",)))
    progress.resumed(approvals)
    progress.feed(ApprovalDecided("c0", CALL, allowed=True, by="approve"))
    progress.feed(result(0))
    progress.feed(TurnFinished(2, (call("c0"),), Usage()))
    assert go_on(progress, {"c0": True}).answers == {}, "nobody has heard of this doubt"
    progress.feed(ApprovalNeeded((CALL,), ("c0",)))
    run = go_on(progress, {})
    assert (run.start.in_doubt, run.answers) == (frozenset(), {})


def test_calls_of_earlier_turns_are_neither_in_doubt_nor_dropped() -> None:
    progress = under_way("c0")
    progress.resumed({})
    progress.feed(result(0, STOPPED))
    progress.feed(TurnFinished(2, (call("c1"),), Usage()))
    progress.feed(ApprovalNeeded((CALL,), ("c1",)))
    run = go_on(progress, {})
    assert run.start.in_doubt == frozenset()
    assert [message.role for message in run.start.made] == ["assistant", "function", "assistant"]


def test_a_call_stays_in_doubt_beside_one_that_waits_until_it_has_a_result() -> None:
    progress = under_way("c0", "c1")
    progress.resumed({})
    progress.feed(ApprovalNeeded((CALL,), ("c1",), ("c1",)))
    assert go_on(progress, {}).start.in_doubt == {"c0", "c1"}
    progress.resumed({})
    progress.feed(result(0))
    progress.feed(ApprovalNeeded((CALL,), ("c1",), ("c1",)))
    assert go_on(progress, {}).start.in_doubt == {"c1"}


def test_an_answer_wins_over_an_earlier_approval() -> None:
    progress = under_way("c0", "c1")
    progress.feed(ApprovalDecided("c0", CALL, allowed=True, by="approve"))
    progress.feed(ApprovalNeeded((CALL,), ("c1",)))
    assert go_on(progress, {"c0": False, "c1": True}).answers == {"c0": False, "c1": True}


@pytest.mark.parametrize("said", [True, False])
def test_only_an_approval_needs_the_call_that_was_shown(said: bool) -> None:
    progress = under_way("c0")
    progress.feed(ApprovalNeeded((CALL,), ("c0",)))
    progress.digests = {"c0": "of another call"}
    assert go_on(progress, {"c0": said}).answers == ({} if said else {"c0": False})


def test_only_a_call_that_waits_needs_its_secrets() -> None:
    progress = under_way("c0")
    progress.feed(result(0))
    progress.hidden.add("c0")
    assert go_on(progress, {}).start.in_doubt == frozenset()


@pytest.mark.parametrize("by_handoff", [False, True], ids=["its turn", "a hand-off"])
def test_each_part_of_a_run_goes_on_with_its_own_messages_and_turns(by_handoff: bool) -> None:
    progress = under_way("c0")
    note = PluginEvent("note")
    progress.feed(note)
    metadata = {"jackfield/handed_to": "clerk"} if by_handoff else {}
    progress.feed(dataclasses.replace(result(0), metadata=metadata))
    progress.feed(HandedOff("desk", "clerk"))
    progress.feed(TurnFinished(2, (call("c0"),), Usage(prompt_tokens=5)))
    progress.feed(ApprovalNeeded((CALL,), ("c0",)))
    run = go_on(progress, {"c0": True})
    [part] = run.later_parts
    assert (part.agent, part.by_handoff, part.answers) == ("clerk", by_handoff, {"c0": True})
    assert [message.role for message in run.start.history] == ["assistant", "function"]
    assert [message.role for message in part.start.history] == ["assistant"]
    assert (run.start.spent.turns, run.start.spent.usage.prompt_tokens, run.start.reported) == (2, 5, (note,))
    assert (part.start.spent, part.start.reported) == (Spent(turns=1), ())


def test_messages_instead_of_those_of_several_agents_hold_until_the_run_goes_on() -> None:
    progress = under_way("c0")
    progress.feed(result(0))
    progress.feed(HandedOff("desk", "clerk"))
    made = progress.now()
    progress.added([Message("assistant", "In short.")], instead=True)
    progress.added([Message("assistant", "And more.")])
    assert [message.get_text_content() for message in progress.now()] == ["In short.", "And more."]
    progress.resumed({})
    assert progress.now() == made


def test_an_approval_of_one_call_says_nothing_about_another_of_the_same_name() -> None:
    progress = Progress.of_messages((Message("user", "Pay."),))
    other = FunctionCall("pay", '{"to": "Eve"}')
    changed = Message("assistant", "", function_call=other, extra={"function_id": "c1"})
    progress.feed(TurnFinished(1, (call("c0"), changed), Usage()))
    progress.feed(ApprovalNeeded((CALL, CALL), ("c0", "c1")))
    digest = digest_of([CALL.name, CALL.arguments], is_secret=False)
    progress.digests = {"c0": digest, "c1": digest}
    assert go_on(progress, {"c0": True, "c1": True}).answers == {"c0": True}
