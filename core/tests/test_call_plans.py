"""The plan for the calls of a turn: what is ready, denied or waiting, decided once."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from jackfield import FnCallAgent
from jackfield.messages import FunctionCall
from jackfield.testing import ScriptedModel, answer, calls
from jackfield.tools import BaseTool, CallPlan, PlannedCall, Safety, ToolContext, ToolExecutor
from jackfield.tools._plan import DeniedCall, FailedCall, ReadyCall
from jackfield.tools._rules import CallRules


class Act(BaseTool):
    """It counts how often it is asked about itself."""

    description = "Act."

    def __init__(self, name: str = "act", **attributes: Any) -> None:
        super().__init__()
        self.name = name
        vars(self).update(attributes)
        self.counts = {"safety": 0, "arguments": 0, "calls": 0}

    def safety(self) -> Safety:
        self.counts["safety"] += 1
        return super().safety()

    def parse_arguments(self, params: Any) -> dict[str, Any]:
        self.counts["arguments"] += 1
        return super().parse_arguments(params)

    def call(self, params: Any, *, context: ToolContext | None = None) -> str:
        self.counts["calls"] += 1
        return "done"


def plan(*tools: BaseTool, arguments: str = "{}", forbid: str = "", **options: Any) -> CallPlan:
    """The plan for one call of each tool."""
    executor = ToolExecutor({one.name: one for one in tools}, rules=CallRules(forbid=frozenset({forbid} - {""})))
    planned = [PlannedCall(n, f"c{n}", FunctionCall(one.name, arguments)) for n, one in enumerate(tools)]
    return asyncio.run(executor.plan(planned, **options))


def waiting(made: CallPlan) -> list[str]:
    return [one.call_id for one in made.waiting]


def guarded(name: str = "guarded", **attributes: Any) -> Act:
    return Act(name, needs_approval=True, **attributes)


@pytest.mark.parametrize(
    ("answers", "expected"), [({}, ["c1"]), ({"c1": True}, []), ({"c1": False}, []), ({"c0": True}, ["c1"])]
)
def test_a_call_waits_until_it_is_answered(answers: Mapping[str, bool], expected: list[str]) -> None:
    made = plan(Act(), guarded(), answers=answers)
    assert waiting(made) == expected
    assert [type(call) for call in made.calls] == [ReadyCall, ReadyCall]


def test_no_call_waits_where_somebody_can_be_asked() -> None:
    assert waiting(plan(guarded(), approve=lambda _call, _context: True)) == []


def test_calls_in_doubt_wait_alone() -> None:
    made = plan(Act(), guarded(), Act("look", read_only=True), in_doubt=frozenset({"c0", "c2"}))
    assert waiting(made) == ["c0"]
    assert made.doubtful == {"c0"}
    asked = plan(Act(), approve=lambda _call, _context: True, in_doubt=frozenset({"c0"}))
    assert waiting(asked) == ["c0"], "a function may not be asked: a person must know that it is in doubt"


def test_a_call_in_doubt_is_refused_unless_it_is_approved() -> None:
    for answers, kind in (({"c0": False}, DeniedCall), ({"c0": True}, ReadyCall)):
        made = plan(Act(), answers=answers, in_doubt=frozenset({"c0"}))
        assert waiting(made) == []
        assert isinstance(made.calls[0], kind)


def test_a_call_that_cannot_be_made_fails_and_waits_only_if_its_tool_needs_approval() -> None:
    made = plan(Act(), guarded(), arguments="[]")
    assert [type(call) for call in made.calls] == [FailedCall, FailedCall]
    assert waiting(made) == ["c1"]


def test_a_forbidden_call_neither_waits_nor_has_its_arguments_read() -> None:
    act = guarded(effects=frozenset({"network"}))
    made = plan(act, arguments="[]", forbid="network")
    assert waiting(made) == []
    assert isinstance(made.calls[0], DeniedCall)
    assert act.counts["arguments"] == 0


@pytest.mark.parametrize("approve", [None, lambda _call, _context: True])
def test_in_a_run_the_safety_and_the_arguments_of_a_call_are_worked_out_once(approve: Any) -> None:
    act = Act()
    agent = FnCallAgent([act], ScriptedModel([calls(("act", {})), answer("ok")]), approve=approve)
    act.counts["safety"] = 0
    assert agent.ask("Go.").text == "ok"
    assert act.counts == {"safety": 1, "arguments": 1, "calls": 1}


def test_an_answer_is_to_a_call_that_was_given_and_to_none_that_a_model_makes_later() -> None:
    act = guarded("act")
    script = [calls(("act", {})), calls(("act", {}))]  # the ids are the same
    agent = FnCallAgent([act], ScriptedModel(script))
    paused = agent.ask("Go.")
    again = agent.ask([*paused.history], resume={"call_1": True})
    assert again.stop_reason == "approval_needed"
    assert list(paused.waiting) == list(again.waiting) == ["call_1"]
    assert act.counts["calls"] == 1
