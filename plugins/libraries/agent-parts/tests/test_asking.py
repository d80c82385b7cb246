"""Ask another agent within a run."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from jackfield import BasicAgent
from jackfield.agents import Agent, CancelToken, Event, ParentRun, Run
from jackfield.errors import JackfieldError, ModelRequestError
from jackfield.events import RunFinished, StopReason, TextDelta
from jackfield.messages import Message
from jackfield.streams import Interrupted, closing
from jackfield.testing import ScriptedModel, answer
from jackfield_agent_parts import Answered, ask_below


class Asking(Agent):
    """Asks another agent, and answers with what that one said."""

    def __init__(self, asked: Agent, limits: Any = None, **options: Any) -> None:
        super().__init__(llm=ScriptedModel([]), name="asking", limits=limits)
        self.asked = asked
        self.options = options
        self.answered = Answered()

    async def events(self, run: Run) -> AsyncIterator[Event]:
        parent = ParentRun(run, run.start.spent)
        async with closing(ask_below(self.asked, "Why?", parent, self.answered, **self.options)) as events:
            async for event in events:
                assert self.answered.messages == () or event.depth > run.depth
                yield event
        message = Message("assistant", f"It said: {self.answered.text}")
        yield RunFinished("finished", (message,), parent.spent.usage)


def test_the_answer_is_there_once_all_events_have_passed() -> None:
    model = ScriptedModel([answer("Because.")])
    agent = Asking(BasicAgent(llm=model, name="below"))
    result = agent.run_nonstream([{"role": "user", "content": "Ask."}])
    assert [message["content"] for message in result] == ["It said: Because."]
    answered = agent.answered
    assert (answered.text, answered.stop_reason) == ("Because.", "finished")
    assert [message.content for message in answered.messages] == ["Because."]
    assert [message.content for message in model.requests[0].messages] == ["Why?"]


def test_notes_about_an_answer_come_before_its_text() -> None:
    extras: list[dict[str, Any] | None] = [{"note": "A part."}, {"other": "x"}, None, {"note": ""}, {"note": "Old."}]
    messages = tuple(Message("assistant", "", extra=extra) for extra in extras)
    assert Answered("Text", messages).text_with_notes == "A part.\n\nOld.\n\nText"
    assert Answered("Text", messages[1:4]).text_with_notes == "Text"
    assert Answered("", messages[:1]).text_with_notes == "A part."


class Halted(Agent):
    """Ends its run at once, or waits for ever."""

    def __init__(self, reason: StopReason | None) -> None:
        super().__init__(name="halted")
        self.reason = reason

    async def events(self, run: Run) -> AsyncIterator[Event]:
        if self.reason is None:
            await asyncio.Event().wait()
        else:
            yield RunFinished(self.reason, (), run.start.spent.usage)


def test_the_reason_why_it_stopped_is_known_even_if_it_said_nothing() -> None:
    agent = Asking(Halted("input_needed"))
    agent.run_nonstream([{"role": "user", "content": "Ask."}])
    assert (agent.answered.stop_reason, agent.answered.messages, agent.answered.text) == ("input_needed", (), "")


def test_the_run_that_waits_is_interrupted_at_its_time_limit_or_when_it_is_cancelled() -> None:
    async def ask(way: str) -> None:
        cancel = CancelToken()
        limits = {"seconds": 0.05} if way == "limit" else {}
        asking = asyncio.create_task(Asking(Halted(None), limits=limits).aask("Ask.", cancel=cancel))
        await asyncio.sleep(0.05)
        if way == "cancel":
            cancel.cancel()
        await asyncio.wait_for(asking, 60)

    for way in ("limit", "cancel"):
        with pytest.raises(Interrupted):
            asyncio.run(ask(way))


def test_its_events_pass_one_level_deeper_and_its_usage_counts() -> None:
    agent = Asking(BasicAgent(llm=ScriptedModel([answer("Because.")]), name="below"))

    async def gather() -> list[tuple[int, object]]:
        return [(event.depth, event.event) async for event in agent.astream([{"role": "user", "content": "Ask."}])]

    events = asyncio.run(gather())
    texts = [(depth, event.text) for depth, event in events if isinstance(event, TextDelta)]
    assert "".join(text for depth, text in texts if depth == 1) == "Because."
    ends = [(depth, event) for depth, event in events if isinstance(event, RunFinished)]
    assert [depth for depth, _ in ends] == [1, 0]
    below, above = (event.usage for _, event in ends)
    assert above == below


def test_an_agent_that_asks_another_reports_only_its_own_answer_to_the_run_above() -> None:
    agent = Asking(Asking(BasicAgent(llm=ScriptedModel([answer("Because.")]), name="below")))
    result = agent.run_nonstream([{"role": "user", "content": "Ask."}])
    assert [message["content"] for message in result] == ["It said: It said: Because."]
    assert agent.answered.text == "It said: Because."


def test_options_reach_the_agent_below() -> None:
    model = ScriptedModel([answer("Because.")])
    Asking(BasicAgent(llm=model, name="below"), lang="zh").run_nonstream([{"role": "user", "content": "Ask."}])
    assert model.requests[0].lang == "zh"


def test_an_error_below_is_raised_and_there_is_no_answer() -> None:
    agent = Asking(BasicAgent(llm=ScriptedModel([[ModelRequestError("no")]]), name="below"))
    with pytest.raises(JackfieldError, match="no"):
        agent.run_nonstream([{"role": "user", "content": "Ask."}])
    assert agent.answered == Answered()
    assert (agent.answered.text, agent.answered.messages, agent.answered.stop_reason) == ("", (), "finished")
