"""Decisions about calls: which answers allow one, what the model reads of a refusal, and the forms of questions."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from typing import Any

import pytest

from jackfield import tool
from jackfield.errors import ConfigError
from jackfield.events import ApprovalDecided, ToolFinished, ToolProgress
from jackfield.messages import FunctionCall
from jackfield.streams import closing
from jackfield.tools import DENIED_TEXT, Denial, PlannedCall, ToolContext, ToolExecutor
from jackfield.tools._base import CallingRun
from jackfield.tools._plan import CallPlan, FailedCall, ReadyCall
from jackfield.tools._rules import CallRules

PATIENCE_S = 30
PAY = PlannedCall(0, "c0", FunctionCall("pay", "{}"))


@tool(needs_approval=True)
def pay() -> str:
    """Pay."""
    return "paid"


async def events_of(executor: ToolExecutor, plan: CallPlan, context: ToolContext | None = None) -> list[Any]:
    async with asyncio.timeout(PATIENCE_S), closing(executor.run(plan, context or ToolContext())) as events:
        return [event async for event in events]


DECISIONS: list[tuple[Any, str]] = [
    (True, "paid"),
    (False, DENIED_TEXT),
    (Denial(""), DENIED_TEXT),
    (Denial(" "), DENIED_TEXT),
    (Denial("Too dear."), "The user did not allow this call and said: Too dear."),
    (1, DENIED_TEXT),
    ("yes", DENIED_TEXT),
]


@pytest.mark.parametrize(("answer", "text"), DECISIONS)
def test_only_true_allows_a_call(answer: Any, text: str) -> None:
    executor = ToolExecutor({"pay": pay})

    async def run() -> list[Any]:
        return await events_of(executor, await executor.plan([PAY], answers={"c0": answer}))

    [decided] = [event for event in asyncio.run(run()) if isinstance(event, ApprovalDecided)]
    assert (decided.allowed, decided.by) == (answer is True, "resume")
    [finished] = [event for event in asyncio.run(run()) if isinstance(event, ToolFinished)]
    assert finished.message.content == text


@pytest.mark.parametrize(("answer", "text"), DECISIONS)
def test_only_true_makes_a_call_in_doubt_again(answer: Any, text: str) -> None:
    executor = ToolExecutor({"pay": pay})
    plan = asyncio.run(executor.plan([PAY], answers={"c0": answer}, in_doubt=frozenset({"c0"})))
    assert (plan.waiting, plan.doubtful) == ((), frozenset())
    assert isinstance(plan.calls[0], ReadyCall) == (text == "paid")


def test_a_call_in_doubt_whose_tool_is_gone_is_a_failed_one() -> None:
    plan = asyncio.run(ToolExecutor({}).plan([PAY], in_doubt=frozenset({"c0"})))
    assert plan.waiting == ()
    assert isinstance(plan.calls[0], FailedCall)


def test_calls_in_doubt_are_asked_about_before_the_others() -> None:
    other = PlannedCall(1, "c1", FunctionCall("pay", "{}"))
    executor = ToolExecutor({"pay": pay})
    plan = asyncio.run(executor.plan([PAY, other], in_doubt=frozenset({"c0"})))
    assert plan.waiting == (PAY,)
    assert plan.doubtful == {"c0"}
    assert asyncio.run(executor.plan([PAY, other])).waiting == (PAY, other)


@pytest.mark.parametrize(("needs_approval", "rule"), [(True, None), (False, "read_only")])
def test_a_rule_decides_only_about_calls_that_need_no_approval(needs_approval: bool, rule: str | None) -> None:
    @tool(needs_approval=needs_approval, read_only=True)
    def look() -> str:
        """Look."""
        return "seen"

    executor = ToolExecutor({"look": look}, rules=CallRules("read_only"))
    [call] = asyncio.run(executor.plan([PlannedCall(0, "c0", FunctionCall("look", "{}"))])).calls
    assert isinstance(call, ReadyCall)
    assert (call.decision.by if call.decision else None) == rule


@pytest.mark.parametrize(
    ("pattern", "name", "is_allowed"),
    [
        ("pay", "pay", True),
        ("pay", "pay_all", False),
        ("pay*", "pay_all", True),
        ("*_all", "pay_all", True),
        ("*_all", "pay_alloy", False),
        ("pay_?", "pay_1", True),
        ("pay_?", "pay_12", False),
        ("[pq]ay", "qay", True),
        ("PAY", "pay", False),
    ],
)
def test_a_pattern_allows_whole_names(pattern: str, name: str, is_allowed: bool) -> None:
    named = tool(name=name, description="Acts.")(lambda: "done")
    rules = CallRules("allow_listed", (pattern,))
    assert rules.need_approval(named, named.safety()) != is_allowed


@pytest.mark.parametrize(
    ("inner", "outer", "name"),
    [
        (CallRules(), CallRules(), "marked"),
        (CallRules(), CallRules("ask"), "ask"),
        (CallRules("read_only"), CallRules("ask"), "read_only"),
        (CallRules("read_only"), CallRules(), "read_only"),
        (CallRules(), CallRules().within(CallRules("ask")), "ask"),
    ],
)
def test_a_decision_names_the_nearest_rule_and_both_rules_hold(inner: CallRules, outer: CallRules, name: str) -> None:
    rules = inner.within(outer)
    assert rules.name == name
    look = tool(name="look", description="Looks.", read_only=True)(lambda: "seen")
    needs = inner.need_approval(look, look.safety()) or outer.need_approval(look, look.safety())
    assert rules.need_approval(look, look.safety()) == needs


# --- questions of a running call ---


class Asking(CallingRun):
    """A run whose caller answers questions with these values."""

    def __init__(self, response: Any) -> None:
        super().__init__()
        self._response = response

    def asker(self) -> Any:
        return lambda _call, _context: self._response


@tool
async def order(form: bool, context: ToolContext) -> str:
    """Order."""
    question: dict[str, object] = {"question": "How many?", **({"form": {"type": "object"}} if form else {})}
    return f"{context.fills_forms} {await context.ask(question)}"


def ordered(form: bool, run: CallingRun | None, approve: Any = None) -> str:
    arguments = '{"form": true}' if form else '{"form": false}'
    planned = PlannedCall(0, "c0", FunctionCall("order", arguments))
    result = asyncio.run(ToolExecutor({"order": order}, approve=approve).finish(planned, ToolContext(run=run)))
    return result.message.get_text_content()


VALUES: Mapping[str, object] = {"count": 3}


@pytest.mark.parametrize(
    ("form", "run", "approve", "text"),
    [
        (True, Asking(VALUES), None, "True {'count': 3}"),
        (True, Asking({}), None, "True {}"),
        (True, Asking(True), None, "True True"),
        (False, Asking(True), None, "True True"),
        (True, Asking(False), None, "True False"),
        (True, Asking(Denial("no")), None, "True False"),
        (True, CallingRun(), None, "False False"),
        (True, None, None, "False False"),
        (True, Asking(VALUES), lambda _call, _context: True, "False True"),
    ],
)
def test_a_form_is_filled_in_by_a_caller_who_can(form: bool, run: Any, approve: Any, text: str) -> None:
    assert ordered(form, run, approve) == text


@pytest.mark.parametrize(
    ("form", "run", "approve"),
    [(False, Asking(VALUES), None), (True, None, lambda _call, _context: VALUES), (True, Asking("yes"), None)],
)
def test_values_without_a_form_and_other_things_are_no_decision(form: bool, run: Any, approve: Any) -> None:
    assert ConfigError.__name__ in ordered(form, run, approve) or "approve returned" in ordered(form, run, approve)


# --- progress ---


def test_progress_from_a_worker_thread_arrives_while_the_tool_still_works() -> None:
    seen = threading.Event()

    @tool
    def work(context: ToolContext) -> str:
        """Work."""
        context.report("half")
        return "seen" if seen.wait(PATIENCE_S) else "not seen"

    executor = ToolExecutor({"work": work})

    async def run() -> Any:
        plan = await executor.plan([PlannedCall(0, "c0", FunctionCall("work", "{}"))])
        async with closing(executor.run(plan, ToolContext())) as events:
            async for event in events:
                if isinstance(event, ToolProgress):
                    seen.set()
        return event

    finished = asyncio.run(run())
    assert finished.message.content == "seen"
