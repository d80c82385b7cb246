"""Agents that write `_run`: their tools belong to the run, and agents above them decide as about all others."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from jackfield import Agent, FnCallAgent, Message, ToolContext, tool
from jackfield.agents import Event, Run
from jackfield.events import RunFinished
from jackfield.messages import ContentItem, Usage
from jackfield.testing import ScriptedModel, answer, calls


class InQwensWay(Agent):
    def _run(self, messages: list[Message], lang: str = "en", **_: Any) -> Iterator[list[Message]]:
        yield [Message("assistant", str(self._call_tool("look", "{}")))]


@tool(name="look", description="Looks.", effects={"files"})
def look(context: ToolContext[str | None]) -> str:
    return f"{context.deps}: {[Path(file).name for file in context.files]}"


def below() -> InQwensWay:
    return InQwensWay([look], name="below", description="Looks.")


def test_a_tool_gets_what_belongs_to_the_run(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("text")
    question = Message("user", [ContentItem(text="What is it?"), ContentItem(file=str(tmp_path / "a.txt"))])
    assert below().ask(question, deps="Anna").text == "Anna: ['a.txt']"
    assert str(below()._call_tool("look", "{}")) == "None: []", "outside of a run there is nothing of one"


@pytest.mark.parametrize("in_run", [True, False])
def test_a_tool_writes_to_the_workspace_of_the_agent(tmp_path: Path, in_run: bool) -> None:
    @tool(name="look")
    def write(context: ToolContext) -> str:
        """Write."""
        return str(context.workspace.root)

    agent = InQwensWay([write], workspace=str(tmp_path))
    assert (agent.ask("Write.").text if in_run else agent._call_tool("look")) == str(tmp_path)


@pytest.mark.parametrize("way", ["tool", "handoff"])
@pytest.mark.parametrize(
    ("options", "said"),
    [({}, ": []"), ({"approve": {"ask": "ask", "by": lambda call, _: call.name != "look"}}, "did not allow")],
)
def test_the_rules_of_an_agent_above_hold(way: str, options: dict[str, Any], said: str) -> None:
    if way == "tool":
        model = ScriptedModel([calls(("below", {"request": "Look."})), answer("Done.")])
        result = FnCallAgent([below().as_tool()], model, **options).ask("Look.")
    else:
        result = FnCallAgent(llm=ScriptedModel([calls(("transfer_to_below", {}))]), handoffs=[below()], **options).ask(
            "Look."
        )
    assert said in " ".join(message.get_text_content() for message in result.messages)


@pytest.mark.parametrize(
    ("own", "of_run", "said"),
    [(None, None, ": []"), (False, None, "did not allow"), (False, True, ": []"), (True, False, "did not allow")],
)
def test_calls_need_the_approval_of_the_run_or_else_of_the_agent(own: Any, of_run: Any, said: str) -> None:
    def approving(answer: Any) -> Any:
        return None if answer is None else (lambda *_: answer)

    asking = tool(name="look", description="Looks.", needs_approval=own is not None)(lambda: ": []")
    agent = InQwensWay([asking], approve=approving(own))
    assert said in agent.ask("Look.", approve=approving(of_run)).text


def test_a_kind_that_writes_events_gives_options_of_a_call_to_its_run() -> None:
    class Counting(Agent):
        async def events(self, run: Run) -> AsyncIterator[Event]:
            yield RunFinished("finished", (Message("assistant", f"{run.lang} {run.options}"),), Usage())

    *_, last = Counting()._run([Message("user", "Hi")], lang="zh", size=3)
    assert [message.content for message in last] == ["zh {'size': 3}"]


def test_what_belongs_to_a_run_holds_for_its_own_agent_only() -> None:
    class Inner(InQwensWay):
        def _run(self, messages: list[Message], lang: str = "en", **_: Any) -> Iterator[list[Message]]:
            yield from self._call_llm(messages)

    class Outer(InQwensWay):
        def _run(self, messages: list[Message], lang: str = "en", **_: Any) -> Iterator[list[Message]]:
            said = [str(one._call_tool("look", "{}")) for one in (self, inner)]
            for one in (self, inner):
                list(one._call_llm(messages))
            yield [Message("assistant", " ".join(said))]

    def model() -> ScriptedModel:
        return ScriptedModel([answer("Yes.")])

    inner = Inner([look], model())
    outer = Outer([look], model())
    assert outer.ask("Look.", deps="Anna", config={"seed": 7}).text == "Anna: [] None: []"
    assert isinstance(outer.llm, ScriptedModel)
    assert isinstance(inner.llm, ScriptedModel)
    assert [one.llm.requests[0].config.seed for one in (outer, inner)] == [7, None]
