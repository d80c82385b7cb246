"""Calls that are stopped with their run: only one that never began is said to be undone."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from jackfield import FnCallAgent, FunctionCall, Message, sync, tool
from jackfield.agents import Run, RunState, Spent, open_calls
from jackfield.agents._loop import _LoopState, _stopped_calls
from jackfield.config import Limits
from jackfield.events import (
    ApprovalNeeded,
    FunctionCallDelta,
    ModelEvent,
    ModelFinished,
    RunFinished,
    TextDelta,
    ToolFinished,
    ToolStarted,
    UsageReported,
)
from jackfield.messages import Usage
from jackfield.models import BaseChatModel
from jackfield.request import ChatRequest
from jackfield.streams import CancelToken, Interrupted, InterruptibleWait, interruptible
from jackfield.testing import ScriptedModel, answer, calls
from jackfield.tools import STOPPED, ToolContext

NOT_BEGUN = "cancelled before it started. Nothing was done"
MAY_BE_DONE = "may have been done"


def events_of(tools: list[Any], cancel: CancelToken, *names: str, **options: Any) -> list[Any]:
    agent = FnCallAgent(tools, ScriptedModel([calls(*((name, {}) for name in names)), answer("Never.")]), **options)
    return [event.event for event in sync.iterate(agent.astream("Go.", cancel=cancel))]


def results_in(events: list[Any]) -> dict[str, ToolFinished]:
    return {event.message.name or "": event for event in events if isinstance(event, ToolFinished)}


def text_of(event: ToolFinished) -> str:
    return event.message.get_text_content()


class _Counting(BaseChatModel):
    """Counts the prompt before it answers, as some servers do, and is cancelled in its answer."""

    backend = "counting"

    def __init__(self, token: CancelToken) -> None:
        super().__init__({"model": "m"})
        self.token = token

    async def stream(self, _request: ChatRequest) -> AsyncIterator[ModelEvent]:
        yield UsageReported(Usage(prompt_tokens=7, completion_tokens=1))
        yield TextDelta("I begin")
        self.token.cancel()
        await asyncio.Event().wait()


def test_the_counts_of_a_cancelled_answer_are_kept() -> None:
    token = CancelToken()
    agent = FnCallAgent(llm=_Counting(token))
    end = [event.event for event in sync.iterate(agent.astream("Go.", cancel=token))][-1]
    assert isinstance(end, RunFinished)
    assert (end.stop_reason, end.usage) == ("cancelled", Usage(prompt_tokens=7, completion_tokens=1))


def waiting(name: str, token: CancelToken, **flags: Any) -> Any:
    @tool(name=name, **flags)
    async def wait() -> str:
        """Wait."""
        token.cancel()
        await asyncio.Event().wait()
        return "never"

    return wait


def test_a_call_that_was_stopped_at_its_work_may_have_been_done() -> None:
    token = CancelToken()
    events = events_of([waiting("act", token)], token, "act")
    stopped = results_in(events)["act"]
    assert MAY_BE_DONE in text_of(stopped)
    assert (stopped.error, stopped.metadata["in_doubt"]) == (STOPPED, True)
    end = events[-1]
    assert isinstance(end, RunFinished)
    assert end.messages[-1] == stopped.message, "the caller's history says the same"


def test_a_call_that_waits_for_its_turn_never_began() -> None:
    token = CancelToken()
    tools = [waiting("first", token, concurrent=False), waiting("second", token, concurrent=False)]
    results = results_in(events_of(tools, token, "first", "second"))
    assert MAY_BE_DONE in text_of(results["first"])
    assert NOT_BEGUN in text_of(results["second"])
    assert "in_doubt" not in results["second"].metadata


def test_a_call_that_waits_for_approval_never_began() -> None:
    token = CancelToken()

    @tool(needs_approval=True)
    def act() -> str:
        """Act."""
        return "done"

    async def approve(_call: Any, _context: Any) -> bool:
        token.cancel()
        await asyncio.Event().wait()
        return True

    assert NOT_BEGUN in text_of(results_in(events_of([act], token, "act", approve=approve))["act"])


def test_a_call_that_waits_for_a_worker_thread_never_began(monkeypatch: pytest.MonkeyPatch) -> None:
    token, called, let_go = CancelToken(), [], threading.Event()
    monkeypatch.setattr(sync, "MAX_WORKERS", 1)

    @tool
    def act() -> str:
        """Act."""
        called.append("act")
        return "done"

    async def run() -> ToolFinished:
        agent = FnCallAgent([act], ScriptedModel([calls(("act", {})), answer("Never.")]))
        busy = asyncio.create_task(sync.in_worker(let_go.wait, 30))
        await asyncio.sleep(0.01)
        found: list[ToolFinished] = []
        async for event in agent.astream("Go.", cancel=token):
            if isinstance(event.event, ToolStarted):
                asyncio.get_running_loop().call_later(0.05, token.cancel)
            if isinstance(event.event, ToolFinished):
                found.append(event.event)
        let_go.set()
        await busy
        return found[0]

    assert NOT_BEGUN in text_of(asyncio.run(run()))
    assert called == []


def test_a_plain_function_that_outlives_its_run_says_so() -> None:
    token, let_go = CancelToken(), threading.Event()

    @tool
    def act() -> str:
        """Act."""
        token.cancel()
        let_go.wait(30)
        return "late"

    stopped = results_in(events_of([act], token, "act"))["act"]
    let_go.set()
    assert MAY_BE_DONE in text_of(stopped)
    assert "may still be running" in text_of(stopped)
    assert stopped.metadata["still_running"] is True


def test_the_result_of_a_call_that_ends_while_the_run_is_stopped_is_the_true_one() -> None:
    token = CancelToken()

    @tool
    async def act() -> str:
        """Act, whatever comes."""
        token.cancel()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "done all the same"
        return "never"

    result = results_in(events_of([act], token, "act"))["act"]
    assert (result.error, text_of(result)) == ("", "done all the same")


def test_the_result_of_a_call_that_had_ended_before_the_cancel_was_seen_is_the_true_one() -> None:
    token = CancelToken()

    @tool
    async def act() -> str:
        """Act."""
        token.cancel()
        return "done"

    result = results_in(events_of([act], token, "act"))["act"]
    assert (result.error, text_of(result)) == ("", "done")


def test_at_a_time_limit_a_call_may_have_been_done() -> None:
    @tool
    async def act() -> str:
        """Act."""
        await asyncio.Event().wait()
        return "never"

    events = events_of([act], CancelToken(), "act", limits={"seconds": 0.5})
    assert events[-1].stop_reason == "time_limit"
    assert MAY_BE_DONE in text_of(results_in(events)["act"])


def test_a_helper_that_is_stopped_may_have_done_something() -> None:
    token = CancelToken()
    helper = FnCallAgent(
        [waiting("act", token)], ScriptedModel([calls(("act", {}))]), name="helper", description="Helps."
    )
    agent = FnCallAgent([helper.as_tool()], ScriptedModel([calls(("helper", {"request": "Go."}))]))
    events = [event for event in sync.iterate(agent.astream("Go.", cancel=token)) if event.depth == 0]
    assert MAY_BE_DONE in text_of(results_in([event.event for event in events])["helper"])


def test_a_tool_that_ran_out_of_time_before_it_began_did_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    let_go = threading.Event()
    monkeypatch.setattr(sync, "MAX_WORKERS", 1)

    @tool(timeout_s=0.05)
    def act() -> str:
        """Act."""
        return "done"

    async def run() -> str:
        agent = FnCallAgent([act], ScriptedModel([calls(("act", {})), answer("So.")]))
        busy = asyncio.create_task(sync.in_worker(let_go.wait, 30))
        await asyncio.sleep(0.01)
        told = [event.event async for event in agent.astream("Go.")]
        let_go.set()
        await busy
        return text_of(results_in(told)["act"])

    assert "did not start within 0.05 s; nothing was done" in asyncio.run(run())


def test_each_call_has_one_result_however_the_run_is_stopped() -> None:
    token = CancelToken()

    @tool
    async def quick() -> str:
        """Return at once."""
        return "quick"

    tools = [quick, waiting("slow", token), waiting("later", token, concurrent=False)]
    events = events_of(tools, token, "quick", "slow", "later", "later")
    ids = [event.call_id for event in events if isinstance(event, ToolFinished)]
    assert sorted(ids) == sorted(set(ids))
    assert len(ids) == 4
    functions = [message for message in events[-1].messages if message.role == "function"]
    assert len(functions) == 4


# --- runs that go on ---


def resumed(*ids: str, **options: Any) -> tuple[Run, _LoopState]:
    """A run that goes on after an interruption with open calls of these ids."""
    history = [
        Message("assistant", "", function_call=FunctionCall("act", "{}"), extra={"function_id": one}) for one in ids
    ]
    run = Run(messages=(), lang="en", limits=Limits(), context=ToolContext(), **options)
    return run, _LoopState(history=[Message("user", "Go."), *history], start=1)


def errors_of(results: list[ToolFinished]) -> dict[str, str]:
    return {one.call_id: one.error for one in results}


def test_a_call_that_was_in_doubt_before_a_run_went_on_is_still_in_doubt_when_it_is_stopped() -> None:
    run, state = resumed("c0", "c1", start=RunState(in_doubt=frozenset({"c0"})))
    assert errors_of(_stopped_calls(run, state)) == {"c0": STOPPED, "c1": "Cancelled"}
    state.spent = Spent(turns=1)  # calls of an answer since then, even with the same ids
    assert errors_of(_stopped_calls(run, state)) == {"c0": "Cancelled", "c1": "Cancelled"}


def test_a_helper_that_waits_for_approval_may_have_done_something_when_it_is_stopped() -> None:
    run, state = resumed("c0", "c1")
    state.pauses["c1"] = ApprovalNeeded((FunctionCall("act", "{}"),), ("d0",))
    assert errors_of(_stopped_calls(run, state)) == {"c0": "Cancelled", "c1": STOPPED}


def test_a_call_in_doubt_that_a_cancel_kept_from_beginning_again_is_still_in_doubt() -> None:
    token, made = CancelToken(), list[str]()

    @tool(needs_approval=True)
    def act(context: ToolContext) -> None:
        """Act."""
        made.append(context.call_id)

    async def approve(_call: FunctionCall, _context: ToolContext) -> bool:
        token.cancel()
        await asyncio.Event().wait()
        return True

    async def results() -> list[ToolFinished]:
        run, state = resumed("c0", "c1", start=RunState(in_doubt=frozenset({"c0"})), answers={"c0": True}, cancel=token)
        loop = FnCallAgent([act], ScriptedModel([]), approve=approve).make_loop(functions=[])
        events: list[Any] = []
        calls = open_calls(state.history)
        plan = await loop.executor.plan(calls, approve=approve, answers=run.answers, in_doubt=run.start.in_doubt)
        with pytest.raises(Interrupted):
            await _gather(loop._call_tools(run, state, plan), events)
        return [event for event in events if isinstance(event, ToolFinished)]

    assert errors_of(asyncio.run(results())) == {"c0": STOPPED, "c1": "Cancelled"}
    assert made == []


def test_only_a_call_of_the_interrupted_turn_is_in_doubt_and_no_later_one_of_its_id() -> None:
    @tool
    def act() -> str:
        """Act."""
        return "done"

    again = [FunctionCallDelta(0, id="c0", name="act", arguments="{}"), ModelFinished("tool_calls")]
    agent = FnCallAgent([act], ScriptedModel([again, answer("Done.")]))
    start = RunState(history=resumed("c0")[1].history[1:], in_doubt=frozenset({"c0"}))

    async def results() -> list[str]:
        run = replace(agent.make_run((Message("user", "Go."),), "en"), start=start, resume=True, answers={"c0": False})
        events: list[Any] = []
        await _gather(agent.events(run), events)
        assert events[-1].stop_reason == "finished"
        return [event.message.get_text_content() for event in events if isinstance(event, ToolFinished)]

    refused, done = asyncio.run(results())
    assert (refused != "done", done) == (True, "done")


async def _gather(events: AsyncIterator[Any], gathered: list[Any]) -> None:
    async for event in events:
        gathered.append(event)  # noqa: PERF401 - those before an error are kept


def test_a_wait_that_begins_after_the_cancel_ends_at_once() -> None:
    async def waited() -> None:
        cancel, wait = CancelToken(), InterruptibleWait()
        cancel.cancel()
        cancel.enter(wait)
        with wait:
            await asyncio.Event().wait()

    with pytest.raises(Interrupted):
        asyncio.run(asyncio.wait_for(waited(), 30))


def test_a_token_stops_all_who_wait_with_it_and_none_of_them_for_the_others() -> None:
    async def endless() -> AsyncIterator[int]:
        yield 1
        await asyncio.Event().wait()

    async def short() -> AsyncIterator[int]:
        yield 1

    async def read(events: AsyncIterator[int], token: CancelToken) -> str:
        try:
            async for _ in interruptible(events, ends_at=None, cancel=token):
                begun.append(1)  # noqa: PERF401 - as they come
        except Interrupted:
            return "interrupted"
        return "ended"

    begun: list[int] = []

    async def main() -> list[str]:
        token = CancelToken()
        waiting = [asyncio.create_task(read(endless(), token)) for _ in range(2)]
        while len(begun) < 2:
            await asyncio.sleep(0)
        ended = await read(short(), token)
        token.cancel()
        token.cancel()
        return [ended, *await asyncio.gather(*waiting)]

    assert asyncio.run(asyncio.wait_for(main(), 30)) == ["ended", "interrupted", "interrupted"]
