"""The executor: the events of each call in order, decisions before them, and texts of what went wrong."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from jackfield import BaseTool, ToolContext, tool
from jackfield.errors import ToolServiceError
from jackfield.events import ApprovalDecided, ToolFinished, ToolProgress, ToolStarted
from jackfield.messages import FunctionCall
from jackfield.streams import closing
from jackfield.tools import PlannedCall, ToolExecutor
from jackfield.tools._rules import NO_RULES, CallRules, Denial
from tests.support.tools import Looks


def planned(name: str, arguments: str = "{}", index: int = 0) -> PlannedCall:
    return PlannedCall(index, f"c{index}", FunctionCall(name, arguments))


def run_calls(executor: ToolExecutor, *wanted: PlannedCall, context: Any = None, **options: Any) -> list[Any]:
    async def run() -> list[Any]:
        plan = await executor.plan(wanted, **options)
        return [event async for event in executor.run(plan, context or ToolContext[Any]())]

    return asyncio.run(run())


def executor_of(*tools: BaseTool, **options: Any) -> ToolExecutor:
    return ToolExecutor({one.name: one for one in tools}, **options)


@tool(effects=["network", "files"])
def send(to: str) -> str:
    """Send."""
    return f"sent to {to}"


@tool(needs_approval=True)
def pay(to: str) -> str:
    """Pay."""
    return f"paid {to}"


FORBIDS = CallRules(forbid=frozenset({"files", "network"}))


def test_each_call_has_its_events_in_order() -> None:
    [started, finished] = run_calls(executor_of(send), planned("send", '{"to": "Ada"}'))
    assert started == ToolStarted(0, "c0", FunctionCall("send", '{"to": "Ada"}'))
    assert (finished.index, finished.call_id, finished.error, finished.metadata) == (0, "c0", "", {})
    message = finished.message
    assert (message.role, message.name, message.content, message.function_id, message.extra) == (
        "function", "send", "sent to Ada", "c0", {"function_id": "c0"},
    )  # fmt: skip
    assert finished.seconds > 0


def test_a_call_that_cannot_be_made_starts_and_fails() -> None:
    for wanted, text in (
        (planned("sent", '{"to": "Ada"}'), "Tool sent does not exist; did you mean 'send'?"),
        (planned("send", "{}"), "invalid arguments for 'send': to: Field required"),
    ):
        [started, finished] = run_calls(executor_of(send), wanted)
        assert isinstance(started, ToolStarted)
        assert (finished.message.content, finished.message.extra["error"]) == (text, finished.error)
        assert finished.error.startswith("Tool")


def test_a_forbidden_call_does_not_start_and_names_the_first_effect() -> None:
    [decided, finished] = run_calls(executor_of(send, rules=FORBIDS), planned("send", '{"to": "Ada"}'))
    text = "Nothing was done: tool send has the effect 'files', which is forbidden here. Continue without it."
    assert decided == ApprovalDecided("c0", FunctionCall("send", '{"to": "Ada"}'), False, "forbid", text)
    assert (finished.message.content, finished.error, finished.seconds) == (text, "NotAllowed", 0.0)


@pytest.mark.parametrize(
    ("decision", "text"),
    [
        (True, "paid Ada"),
        (False, "The user did not allow this call. Continue without it, or explain why it is needed."),
        (Denial("too much"), "The user did not allow this call and said: too much"),
        (Denial(" "), "The user did not allow this call. Continue without it, or explain why it is needed."),
        (
            RuntimeError("no line"),
            "The user did not allow this call. Continue without it, or explain why it is needed. (The approval "
            "request failed: RuntimeError: no line)",
        ),
    ],
    ids=["yes", "no", "a reason", "a blank reason", "an error"],
)
def test_the_approval_of_a_call_is_recorded_before_it(decision: Any, text: str) -> None:
    asked: list[Any] = []

    def approve(call: FunctionCall, context: ToolContext[Any]) -> Any:
        asked.append((call, context.call_id))
        if isinstance(decision, Exception):
            raise decision
        return decision

    decided, *events = run_calls(executor_of(pay), planned("pay", '{"to":"Ada"}'), approve=approve)
    assert asked == [(FunctionCall("pay", '{"to": "Ada"}'), "c0")]
    assert (decided.call, decided.allowed, decided.by) == (
        FunctionCall("pay", '{"to": "Ada"}'),
        decision is True,
        "approve",
    )
    assert decided.reason == ("" if decision is True else text)
    assert [type(event).__name__ for event in events] == (["ToolStarted"] if decision is True else []) + [
        "ToolFinished"
    ]
    assert events[-1].message.content == text


def test_without_anybody_to_ask_a_call_is_refused_with_the_reason() -> None:
    decided, finished = run_calls(executor_of(pay), planned("pay", '{"to": "Ada"}'))
    text = "This call needs approval, but no approver is available, so nothing was done."
    assert (decided.by, decided.allowed, decided.reason, finished.message.content) == ("nobody", False, text, text)
    decided, *_ = run_calls(executor_of(pay), planned("pay", '{"to": "Ada"}'), answers={"c0": True})
    assert (decided.by, decided.allowed) == ("resume", True)


def test_plans_say_what_waits_and_what_is_in_doubt() -> None:
    async def plan(**options: Any) -> tuple[list[str], set[str]]:
        made = await executor_of(pay, send).plan(
            [planned("pay", '{"to": "A"}'), planned("send", '{"to": "A"}', 1), planned("gone", "{}", 2)], **options
        )
        return [one.call_id for one in made.waiting], set(made.doubtful)

    everything = frozenset({"c0", "c1", "c2"})
    assert asyncio.run(plan()) == (["c0"], set())
    assert asyncio.run(plan(approve=lambda *_: True)) == ([], set())
    assert asyncio.run(plan(answers={"c0": False})) == ([], set())
    assert asyncio.run(plan(in_doubt=everything)) == (["c0", "c1"], {"c0", "c1"})
    assert asyncio.run(plan(in_doubt=everything, answers={"c0": False})) == (["c1"], {"c1"})
    refused = run_calls(
        executor_of(send), planned("send", '{"to": "A"}'), in_doubt=frozenset({"c0"}), answers={"c0": False}
    )
    assert refused[-1].message.content == (
        "The program ended while this call was running. The call may or may not have completed, and was not repeated."
    )
    again = run_calls(
        executor_of(send), planned("send", '{"to": "A"}'), in_doubt=frozenset({"c0"}), answers={"c0": True}
    )
    assert again[-1].message.content == "sent to A"


def test_the_text_of_an_error_is_for_the_model_and_the_rest_for_people(caplog: pytest.LogCaptureFixture) -> None:
    @tool
    def fail(how: str) -> str:
        """Fail."""
        error: Exception = ValueError("no") if how == "foreign" else ToolServiceError("for the model", may_be_done=True)
        error.add_note("a note")
        raise error

    [_, finished] = run_calls(executor_of(fail), planned("fail", '{"how": "foreign"}'))
    assert (finished.message.content, finished.error) == (
        "An error occurred when calling tool fail: ValueError: no",
        "ValueError",
    )
    assert finished.metadata["traceback"].rstrip().endswith("ValueError: no\na note")
    assert finished.metadata["notes"] == "a note"
    assert "tool fail failed" in caplog.text
    caplog.clear()
    [_, finished] = run_calls(executor_of(fail), planned("fail", '{"how": "own"}'))
    assert (finished.message.content, finished.error) == ("for the model", "ToolServiceError")
    assert finished.metadata == {"in_doubt": True, "notes": "a note"}
    assert caplog.text == ""


def test_one_call_is_finished_with_its_progress() -> None:
    @tool
    def report(context: ToolContext[Any]) -> str:
        """Report."""
        context.report(f"at {context.call_id}")
        return "done"

    seen: list[str] = []
    work = executor_of(report).finish(planned("report"), ToolContext[Any](report=seen.append))
    assert (asyncio.run(work).message.content, seen) == ("done", ["at c0"])


def test_a_copy_of_an_executor_has_other_tools() -> None:
    executor = executor_of(pay, send, timeout_s=7)
    assert [*executor.with_tools({"look": Looks()}, without=["pay"]).tools] == ["send", "look"]
    assert executor.with_tools({}).timeout_s == 7
    assert executor.within(NO_RULES) is executor
    assert executor.within(FORBIDS).rules.forbid == FORBIDS.forbid


@pytest.mark.parametrize("length", [59, 60, 61])
def test_a_result_may_have_as_many_characters_as_the_limit_says(length: int) -> None:
    @tool
    def write() -> str:
        """Write."""
        return "x" * length

    [_, finished] = run_calls(executor_of(write, max_result_chars=60), planned("write"))
    assert (finished.message.content == "x" * length) == (length <= 60)


def test_calls_that_are_left_have_the_one_result_that_nobody_has_read() -> None:
    """Some failed, were denied or ended and were read; one has ended unread, one hangs, and one has never begun."""

    async def run() -> tuple[list[int], list[ToolFinished]]:
        both, done = asyncio.Event(), asyncio.Event()

        @tool
        async def first() -> str:
            """End at once."""
            return "first"

        @tool
        async def second() -> str:
            """End later."""
            await both.wait()
            done.set()
            return "second"

        @tool(concurrent=False)
        async def hang() -> None:
            """Never end."""
            both.set()
            await asyncio.Event().wait()

        names = ("gone", "pay", "send", "first", "second", "hang", "hang")
        calls = [planned(name, '{"to": "Ada"}' if name in ("pay", "send") else "{}", n) for n, name in enumerate(names)]
        executor = executor_of(pay, send, first, second, hang, rules=FORBIDS)
        read: list[int] = []
        left: list[ToolFinished] = []
        plan = await executor.plan(calls, answers={"c1": False})
        async with closing(executor.run(plan, ToolContext[Any](), left=left)) as events:
            async for event in events:
                if isinstance(event, ToolFinished):
                    read.append(event.index)
                if 3 in read:  # all others have begun but the last one
                    break
            await done.wait()
            for _ in range(50):  # rounds of the loop, in which its result arrives
                await asyncio.sleep(0)
        return read, left

    read, left = asyncio.run(asyncio.wait_for(run(), 30))
    assert sorted([*read, *(one.index for one in left)]) == list(range(7)), "each call has one result"
    assert read == [0, 1, 2, 3]
    results = {one.index: one for one in left}
    assert results[4].message.content == "second"
    assert [results[index].error for index in (5, 6)] == ["Stopped", "Cancelled"]


def test_the_users_ctrl_c_while_a_call_is_checked_is_no_failure_of_the_tool() -> None:
    class Stopped(BaseTool):
        name = "stopped"
        description = "Is stopped."

        def parse_arguments(self, params: Any) -> dict[str, Any]:
            raise KeyboardInterrupt

        def call(self, params: Any, *, context: ToolContext | None = None) -> str:
            return "done"

    with pytest.raises(KeyboardInterrupt):
        run_calls(executor_of(Stopped()), planned("stopped"))


def test_a_call_that_takes_turns_starts_after_the_result_of_the_one_before() -> None:
    @tool(concurrent=False)
    def work() -> str:
        """Work."""
        return "done"

    events = run_calls(executor_of(work), *(planned("work", index=index) for index in range(3)))
    order = [(type(event).__name__, event.index) for event in events]
    assert order == [(kind, index) for index in range(3) for kind in ("ToolStarted", "ToolFinished")]


def test_all_results_that_nobody_has_read_are_kept() -> None:
    @tool
    async def work(context: ToolContext) -> str:
        """Work."""
        context.report("half")
        done.append(context.call_id)
        return context.call_id

    done: list[str] = []

    async def run() -> list[ToolFinished]:
        executor, left = executor_of(work), list[ToolFinished]()
        plan = await executor.plan([planned("work", index=index) for index in range(3)])
        async with closing(executor.run(plan, ToolContext[Any](), left=left)) as events:
            async for event in events:
                if isinstance(event, ToolProgress):  # all have started
                    break
            while len(done) < 3:
                await asyncio.sleep(0)
            for _ in range(50):  # rounds of the loop, in which the results arrive
                await asyncio.sleep(0)
        return left

    assert [one.message.content for one in asyncio.run(run())] == ["c0", "c1", "c2"]
