"""A run and the runs below it: the limits and rules they share, and the right to act."""

from __future__ import annotations

import asyncio
import gc
import itertools
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield import BaseTool, FunctionCall, Message, tool
from jackfield.agents import ParentRun, Run, RunView, Spent
from jackfield.config import Limits
from jackfield.errors import ConfigError
from jackfield.events import HandedOff, RunEvent, TextDelta, ToolStarted, TurnFinished, TurnStarted
from jackfield.messages import Usage
from jackfield.runs._limits import limit_reached
from jackfield.streams import CancelToken, Interrupted, InterruptibleWait, interruptible
from jackfield.tools import PlannedCall, ToolContext, ToolExecutor
from jackfield.tools._base import CallingRun
from jackfield.tools._rules import Ask, CallRules
from jackfield.tools._safety import Safety

CALL = FunctionCall("act", "{}")


def run_with(limits: Limits, parent: ParentRun | None = None) -> Run:
    return Run(messages=(), lang="en", limits=limits, context=ToolContext(), parent=parent)


def chain(*limits: Limits) -> list[ParentRun]:
    """The places of runs that wait for each other, the outermost first."""
    places: list[ParentRun] = []
    for limit in limits:
        places.append(ParentRun(run_with(limit, places[-1] if places else None), Spent()))
    return places


def started(number: int) -> RunEvent:
    return RunEvent("below", number, "helper", 1, ToolStarted(0, f"c{number}", CALL))


# --- limits ---


@given(st.lists(st.sampled_from([None, 1, 2, 5]), min_size=1, max_size=4), st.lists(st.integers(1, 3), max_size=6))
def test_calls_of_runs_side_by_side_never_pass_a_limit_of_any_run_above(
    limits: list[int | None], decisions: list[int]
) -> None:
    *_, below = chain(*(Limits(tool_calls=most) for most in limits))
    strictest = min((most for most in limits if most is not None), default=None)
    made = 0
    for calls in decisions:  # all decided before the first one begins
        reached = below.take(calls)
        assert (reached == "tool_call_limit") == (strictest is not None and made + calls > strictest)
        made += 0 if reached else calls


def test_a_call_that_was_counted_when_it_was_decided_is_not_counted_again_when_it_begins() -> None:
    [parent] = chain(Limits(tool_calls=4))
    assert parent.take(2) is None
    parent.count(started(1))
    parent.count(started(2))
    assert parent.spent.tool_calls == 2
    parent.count(started(3))  # of a kind that decides nothing
    assert parent.spent.tool_calls == 3


def test_tokens_of_a_run_below_count_for_the_limit_of_the_outermost_run() -> None:
    outer, _, inner = chain(Limits(tokens=10), Limits(), Limits())
    turn = TurnFinished(1, (Message("assistant", "a"),), Usage(prompt_tokens=9, completion_tokens=1))
    assert inner.reached(0) is None
    inner.count(RunEvent("below", 1, "helper", 3, turn))
    assert outer.spent.usage.total_tokens == 10
    assert inner.reached(0) == "token_limit"
    assert inner.reached(1) is None, "calls cost no tokens: those of the last answer are made"


@pytest.mark.parametrize("turns", [0, 1], ids=["that has no turns of its own", "with a turn"])
def test_the_cost_of_a_run_below_counts_for_the_limit_of_a_run(turns: int) -> None:
    spent = Spent(turns=turns, usage=usage_of("0.01") if turns else Usage())
    outer = ParentRun(run_with(Limits(cost=Decimal("0.1"))), spent)
    inner = ParentRun(run_with(Limits(), outer), Spent())
    assert inner.reached(0) is None
    inner.count(RunEvent("below", 1, "helper", 2, TurnFinished(1, (), usage_of("0.1"))))
    assert inner.reached(0) == "cost_limit"


def test_an_answer_that_ends_before_a_call_that_was_decided_begins_is_counted() -> None:
    [parent] = chain(Limits(tokens=10, tool_calls=4))
    assert parent.take(1) is None
    turn = TurnFinished(1, (Message("assistant", "a"),), Usage(prompt_tokens=9, completion_tokens=1))
    parent.count(RunEvent("below", 1, "helper", 1, turn))
    parent.count(started(2))
    assert (parent.spent.usage.total_tokens, parent.spent.tool_calls) == (10, 1)


def usage_of(cost: str, currency: str = "USD") -> Usage:
    return Usage(cost=Decimal(cost), currency=currency)


@pytest.mark.parametrize(("cost", "reached"), [("0.09", None), ("0.10", "cost_limit"), ("0.11", "cost_limit")])
def test_a_cost_limit_is_reached_at_its_value(cost: str, reached: str | None) -> None:
    assert limit_reached(Spent(turns=1, usage=usage_of(cost)), Limits(cost=Decimal("0.1"))) == reached


def test_a_price_in_another_currency_does_not_count_for_a_cost_limit() -> None:
    with pytest.raises(ConfigError, match="limit tokens instead"):
        limit_reached(Spent(turns=1, usage=usage_of("0.01", "CNY")), Limits(cost=Decimal("0.1")))


@pytest.mark.parametrize(
    "below",
    [Spent(tool_calls=1), Spent(usage=Usage(prompt_tokens=1)), Spent(usage=usage_of("0.5"))],
    ids=["calls", "tokens", "cost alone"],
)
def test_all_that_a_run_below_used_is_added(below: Spent) -> None:
    used = Usage(prompt_tokens=4, cost=Decimal("0.1"), currency="USD")
    total = Spent(turns=2, tool_calls=3, usage=used).plus_below(below)
    assert total.turns == 2
    assert total.tool_calls == 3 + below.tool_calls
    assert total.usage == used + below.usage
    assert total.usage != used or below.usage == Usage()


# --- rules ---

ASKS: tuple[Ask, ...] = ("marked", "ask", "read_only", "allow_listed")
SAFETIES = [
    Safety(needs_approval=marked, read_only=reads) for marked, reads in itertools.product([True, False], repeat=2)
]


@tool
def act() -> str:
    """Act."""
    return "done"


@pytest.mark.parametrize(("own", "outer"), [*itertools.product(ASKS, repeat=2)], ids=str)
@pytest.mark.parametrize("safety", SAFETIES, ids=str)
def test_under_another_agent_a_call_is_asked_about_if_either_agent_says_so(
    own: Ask, outer: Ask, safety: Safety
) -> None:
    inside, outside = CallRules(own, ("other",)), CallRules(outer, ("act",))
    expected = inside.need_approval(act, safety) or outside.need_approval(act, safety)
    assert inside.within(outside).need_approval(act, safety) == expected


@given(*[st.frozensets(st.sampled_from(["files", "network", "processes"]))] * 3)
def test_what_any_agent_above_forbids_is_forbidden(
    own: frozenset[str], outer: frozenset[str], outermost: frozenset[str]
) -> None:
    rules = CallRules(forbid=own).within(CallRules(forbid=outer).within(CallRules(forbid=outermost)))
    assert rules.forbid == own | outer | outermost


# --- the right to act ---


class _Lost(CallingRun):
    """A run that is taken over by another process once its first call has begun."""

    def __init__(self) -> None:
        super().__init__()
        self.confirmed = 0

    async def before_call(self) -> str:
        self.confirmed += 1
        return "" if self.confirmed == 1 else "another process holds the run"


def test_a_call_that_asks_in_the_middle_is_refused_if_its_run_was_taken_over() -> None:
    agreed: list[bool] = []

    @tool
    async def pay(context: ToolContext) -> str:
        """Pay."""
        agreed.append(await context.ask({"sum": 5}))
        return "paid" if agreed[0] else "not paid"

    executor = ToolExecutor({"pay": pay}, approve=lambda _call, _context: True)
    planned = PlannedCall(0, "c0", FunctionCall("pay", "{}"))
    result = asyncio.run(executor.finish(planned, ToolContext(run=_Lost())))
    assert (agreed, result.message.get_text_content()) == ([False], "not paid")


class _Record:
    """Stands for a record whose run another process has taken over."""

    async def before_call(self) -> str:
        return "another process holds the run"


def test_a_recorded_run_that_is_no_longer_held_makes_no_call() -> None:
    made: list[str] = []

    @tool
    def pay() -> str:
        """Pay."""
        made.append("pay")
        return "paid"

    run = run_with(Limits())
    record: Any = _Record()
    run = replace(run, record=record)
    context = ToolContext(run=ParentRun(run, Spent()))
    result = asyncio.run(ToolExecutor({"pay": pay}).finish(PlannedCall(0, "c0", FunctionCall("pay", "{}")), context))
    assert (made, result.error) == ([], "NotHeld")


REPEATABLE = {"read_only", "idempotent", "resumable"}


@pytest.mark.parametrize("granted", ["read_only", "idempotent", "resumable", "concurrent", "file_access", "cacheable"])
def test_only_a_tool_that_grants_it_is_called_twice_unasked(granted: str) -> None:
    class Act(BaseTool):
        name = "act"
        description = "Act."

        def call(self, params: Any, *, context: Any = None) -> str:
            del params, context
            return "done"

    setattr(Act, granted, True)
    planned = PlannedCall(0, "c0", CALL)
    tools: Mapping[str, BaseTool] = {"act": Act()}
    plan = asyncio.run(ToolExecutor(tools).plan([planned], in_doubt=frozenset({"c0"})))
    assert plan.doubtful == (frozenset() if granted in REPEATABLE else {"c0"})


def test_after_a_hand_off_messages_carry_the_name_of_the_new_agent() -> None:
    view = RunView("boss")
    for event in (TurnStarted(1), TextDelta("a"), HandedOff("boss", "helper"), TextDelta("b")):
        view.feed(event)
    assert [message.name for message in view.messages()] == ["boss"]
    view.feed(TurnStarted(2))
    view.feed(TextDelta("c"))
    assert [message.name for message in view.messages()] == ["helper"]


# --- cancelling ---


def test_a_task_that_took_an_earlier_cancellation_back_is_interrupted_all_the_same() -> None:
    async def main() -> None:
        task, wait = asyncio.current_task(), InterruptibleWait()
        assert task is not None
        task.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(0)
        assert task.cancelling() == 1
        asyncio.get_running_loop().call_soon(wait.interrupt)
        with pytest.raises(Interrupted), wait:
            await asyncio.sleep(60)
        assert task.cancelling() == 1, "that one is not ours"

    asyncio.run(main())


def test_a_cancel_ends_events_that_need_no_waiting() -> None:
    async def ready() -> AsyncIterator[int]:
        for number in range(1000):
            yield number

    async def main() -> None:
        token = CancelToken()
        async for number in interruptible(ready(), ends_at=None, cancel=token):
            seen.append(number)
            if number == 2:
                token.cancel()

    seen: list[int] = []
    with pytest.raises(Interrupted):
        asyncio.run(main())
    assert seen == [0, 1, 2]


def test_a_cancel_that_comes_right_before_a_wait_ends_the_wait() -> None:
    token, wait = CancelToken(), InterruptibleWait()

    async def be_interrupted() -> None:
        async with asyncio.timeout(20):
            token.cancel()
            token.enter(wait)
            with wait:
                await asyncio.Event().wait()

    with pytest.raises(Interrupted):
        asyncio.run(be_interrupted())


def test_a_wait_that_is_over_interrupts_only_what_must_be_waited_for() -> None:
    async def read() -> None:
        async def events() -> AsyncIterator[int]:
            yield 1
            yield 2
            await asyncio.Event().wait()

        async for number in interruptible(events(), ends_at=asyncio.get_running_loop().time()):
            await asyncio.sleep(0.01)
            numbers.append(number)

    numbers: list[int] = []
    with pytest.raises(Interrupted):
        asyncio.run(read())
    assert numbers == [1, 2]


def test_an_interrupted_wait_stays_interrupted() -> None:
    async def wait_in_vain() -> None:
        await asyncio.sleep(10)
        pytest.fail("the wait was not interrupted")

    async def read() -> None:
        wait = InterruptibleWait()
        asyncio.get_running_loop().call_soon(wait.interrupt)
        for _ in range(2):
            with pytest.raises(Interrupted), wait:
                await wait_in_vain()

    asyncio.run(read())


def test_a_stream_that_has_ended_stays_with_neither_its_token_nor_its_loop() -> None:
    async def events() -> AsyncIterator[int]:
        yield 1

    def count_waits() -> int:
        gc.collect()
        return sum(isinstance(one, InterruptibleWait) for one in gc.get_objects())

    async def read(token: CancelToken) -> None:
        before, ends_at = count_waits(), asyncio.get_running_loop().time() + 1000
        assert [event async for event in interruptible(events(), ends_at=ends_at, cancel=token)] == [1]
        assert count_waits() == before

    token = CancelToken()
    asyncio.run(read(token))
    token.cancel()  # its loop is closed


def test_a_cancel_of_the_task_is_no_interruption() -> None:
    async def read() -> None:
        async def events() -> AsyncIterator[int]:
            await asyncio.Event().wait()
            yield 1

        token = CancelToken()
        task = asyncio.create_task(anext(interruptible(events(), ends_at=None, cancel=token)))  # type: ignore[arg-type]
        await asyncio.sleep(0)
        token.cancel()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(read())
