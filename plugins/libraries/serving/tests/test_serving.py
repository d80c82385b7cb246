"""Runs of a service: they live until they end, and readers get every event once."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import pytest

from jackfield import FnCallAgent, tool
from jackfield.config import Limits
from jackfield.errors import ConfigError, ContextLengthError, RunNotFoundError
from jackfield.events import (
    ApprovalNeeded,
    FunctionCallDelta,
    ModelEvent,
    PluginEvent,
    RunFailed,
    RunFinished,
    RunStarted,
    TextDelta,
    ToolFinished,
    ToolStarted,
    TurnFinished,
)
from jackfield.messages import ContentItem, Message
from jackfield.request import ChatRequest, ModelFacts
from jackfield.stores import StoredRun
from jackfield.testing import ScriptedModel, answer, calls
from jackfield.tools import BaseTool, Denial, ToolContext, Workspace
from jackfield_multi_agent.group import GroupChat
from jackfield_multi_agent.user import UserAgent
from jackfield_serving import (
    INPUT,
    QUESTION,
    AgentNotFoundError,
    InputTooLargeError,
    MemoryStore,
    NotWaitingError,
    Numbered,
    Serving,
    ServingLimits,
    SessionBusyError,
    TooManyRunsError,
    is_public_url,
    markdown_of,
    public_address,
)
from jackfield_serving.agents import serve_agent
from jackfield_serving.numbering import STRIDE
from jackfield_serving.reading import read_run
from jackfield_serving.recording import ServedStore


def agent(*script: Any, tools: Any = (), **options: Any) -> FnCallAgent:
    return FnCallAgent(list(tools), ScriptedModel(list(script)), name="helper", **options)


async def read(serving: Serving, run_id: str, after: int = 0, owner: str = "") -> list[Numbered]:
    return [one async for one in serving.attach(run_id, after=after, owner=owner)]


@pytest.mark.parametrize(
    ("error", "is_logged"), [(ZeroDivisionError("inner"), True), (ContextLengthError("too long"), False)]
)
def test_the_log_names_the_cause_of_a_failure_that_clients_are_not_told(
    error: Exception, is_logged: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        async with Serving({"a": agent([error])}) as serving:
            await read(serving, await serving.start("a", "Tide?"))

    asyncio.run(main())
    assert [str(one.exc_info[1]) for one in caplog.records if one.exc_info and one.levelno >= logging.WARNING] == (
        ["inner"] if is_logged else []
    )


def test_a_run_is_started_followed_and_read() -> None:
    async def main() -> None:
        async with Serving({"a": agent(answer("The tide is low."))}) as serving:
            run_id = await serving.start("a", "Tide?")
            events = await read(serving, run_id)
            kinds = [type(one.event.event) for one in events]
            assert kinds[0] is RunStarted
            assert kinds[-2:] == [TurnFinished, RunFinished]
            texts = [one.event.event.text for one in events if isinstance(one.event.event, TextDelta)]
            assert len(texts) > 1
            assert "".join(texts) == "The tide is low."
            numbers = [one.number for one in events]
            assert numbers == sorted(set(numbers))
            info = await serving.run(run_id)
            assert (info.phase, info.stop_reason, info.text) == ("ended", "finished", "The tide is low.")

    asyncio.run(main())


def test_a_request_that_has_arrived_is_accepted_before_the_runs_of_others_begin() -> None:
    async def main() -> None:
        order = []

        def script(request: ChatRequest) -> list[ModelEvent]:
            order.append(f"{request.messages[-1].content} is asked")
            return answer("Low.")

        async def start(name: str) -> None:
            run_id = await serving.start("a", name)
            order.append(f"{name} is accepted")
            if name == "first":  # the loop reads another request in its next turn, and begins it in the one after that
                asyncio.get_running_loop().call_soon(tasks.create_task, start("second"))
            await read(serving, run_id)

        async with Serving({"a": FnCallAgent(llm=ScriptedModel(script))}) as serving, asyncio.TaskGroup() as tasks:
            tasks.create_task(start("first"))
        assert order == ["first is accepted", "second is accepted", "first is asked", "second is asked"]

    asyncio.run(main())


def test_agents_are_found_by_name_without_being_described() -> None:
    class Described(ScriptedModel):
        times = 0

        @property
        def facts(self) -> ModelFacts:
            self.times += 1
            return super().facts

    async def main() -> None:
        model = Described([])
        async with Serving({"a": FnCallAgent(llm=model, name="a"), "b": agent(answer("hi"))}) as serving:
            before = model.times
            assert "a" in serving.agents
            assert "c" not in serving.agents
            assert list(serving.agents) == ["a", "b"]
            assert model.times == before
            assert serving.agents["a"].name == "a"
            assert serving.agents.get("c") is None
            assert model.times > before

    asyncio.run(main())


def test_a_clients_tool_pauses_the_run_until_its_result_arrives() -> None:
    async def main() -> None:
        script = [calls(("locate", {"who": "Ada"})), answer("Ada is in Rome.")]
        async with Serving({"a": agent(*script)}) as serving:
            schema = {"name": "locate", "parameters": {"type": "object", "properties": {"who": {"type": "string"}}}}
            run_id = await serving.start("a", "Where is Ada?", client_tools=[schema])
            first = await read(serving, run_id)
            assert isinstance(first[-1].event.event, RunFinished)
            info = await serving.run(run_id)
            [waiting] = info.waiting
            assert (info.phase, waiting.kind, waiting.call.name) == ("waiting", "client_tool", "locate")
            assert json.loads(waiting.call.arguments) == {"who": "Ada"}
            with pytest.raises(NotWaitingError):
                await serving.answer(run_id, {"other": "x"})
            await serving.answer(run_id, {waiting.call_id: "Rome"})
            rest = await read(serving, run_id, after=first[-1].number)
            assert [one.number for one in first + rest] == sorted({one.number for one in first + rest})
            assert isinstance(rest[-1].event.event, RunFinished)
            assert (await serving.run(run_id)).text == "Ada is in Rome."
            with pytest.raises(NotWaitingError):
                await serving.answer(run_id, {waiting.call_id: "Rome"})

    asyncio.run(main())


def test_results_of_a_clients_tools_may_arrive_one_after_the_other() -> None:
    async def main() -> None:
        script = [calls(("locate", {"who": "Ada"}), ("locate", {"who": "Bob"})), answer("In Rome and in Bonn.")]
        async with Serving({"a": agent(*script)}) as serving:
            run_id = await serving.start("a", "Where are they?", client_tools=[LOCATE])
            number, counts = 0, []
            for place in ("Rome", "Bonn"):
                await read(serving, run_id, number)
                run = await serving.run(run_id)
                number = run.number
                counts.append(len(run.waiting))
                await serving.answer(run_id, {run.waiting[0].call_id: place})
            await read(serving, run_id, number)
            run = await serving.run(run_id)
            results = [message.get_text_content() for message in run.response if message.role == "function"]
            assert (counts, results, run.text) == ([2, 1], ["Rome", "Bonn"], "In Rome and in Bonn.")

    asyncio.run(main())


def test_a_run_that_continues_still_answers_in_the_form_that_was_asked_for() -> None:
    form = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}

    async def main() -> None:
        script = [calls(("locate", {"who": "Ada"})), answer("Rome"), answer('{"city": "Rome"}')]
        async with Serving({"a": agent(*script)}) as serving:
            run_id = await serving.start("a", "Where is Ada?", client_tools=[LOCATE], output=form)
            await read(serving, run_id)
            [waiting] = (await serving.run(run_id)).waiting
            await serving.answer(run_id, {waiting.call_id: "Rome"})
            await read(serving, run_id)
            assert (await serving.run(run_id)).output == {"city": "Rome"}

    asyncio.run(main())


def test_a_result_reaches_readers_while_another_call_goes_on() -> None:
    async def main() -> None:
        seen = asyncio.Event()

        @tool
        async def quick() -> str:
            """Answer at once."""
            return "quick"

        @tool
        async def slow() -> str:
            """Answer once the reader has seen the other answer."""
            await asyncio.wait_for(seen.wait(), 30)
            return "slow"

        script = [calls(("slow", {}), ("quick", {})), answer("Done.")]
        async with Serving({"a": agent(*script, tools=[quick, slow])}) as serving:
            results = []
            async for one in serving.attach(await serving.start("a", "Both.")):
                if isinstance(one.event.event, ToolFinished):
                    results.append(one.event.event.message.get_text_content())
                    seen.set()
            assert results == ["quick", "slow"]

    asyncio.run(main())


@pytest.mark.parametrize("decision", [True, False, Denial("Ada was paid yesterday.")])
def test_an_approval_continues_the_run(decision: bool | Denial) -> None:
    paid: list[str] = []

    @tool(needs_approval=True)
    def pay(to: str) -> str:
        """Pay."""
        paid.append(to)
        return "paid"

    async def main() -> None:
        script = [calls(("pay", {"to": "Ada"})), answer("Done.")]
        async with Serving({"a": agent(*script, tools=[pay])}) as serving:
            run_id = await serving.start("a", "Pay Ada.")
            events = await read(serving, run_id)
            assert any(isinstance(one.event.event, ApprovalNeeded) for one in events)
            [waiting] = (await serving.run(run_id)).waiting
            await serving.answer(run_id, {waiting.call_id: decision})
            await read(serving, run_id, after=events[-1].number)
            assert paid == (["Ada"] if decision is True else [])
            run = await serving.run(run_id)
            assert run.text == "Done."
            [result] = [message.get_text_content() for message in run.response if message.role == "function"]
            assert ("yesterday" in result) == isinstance(decision, Denial), "the model reads the reason"

    asyncio.run(main())


def test_a_run_below_that_continues_does_not_begin_again_for_its_readers() -> None:
    @tool(needs_approval=True)
    def pay() -> str:
        """Pay."""
        return "paid"

    async def main() -> None:
        model = ScriptedModel([calls(("pay", {})), answer("It is paid.")])
        helper = FnCallAgent([pay], model, name="clerk", description="Pays.").as_tool()
        boss = agent(calls(("clerk", {"request": "Pay."})), answer("Done."), tools=[helper])
        async with Serving({"a": boss}) as serving:
            run_id = await serving.start("a", "Pay.")
            before = await read(serving, run_id)
            [waiting] = (await serving.run(run_id)).waiting
            assert waiting.agent == "clerk"
            await serving.answer(run_id, {waiting.call_id: True})
            after = await read(serving, run_id, after=before[-1].number)
            for events, begun in ((before, [0, 1]), (after, [])):
                assert [one.event.depth for one in events if isinstance(one.event.event, RunStarted)] == begun
            turns = [one.event.depth for one in before + after if isinstance(one.event.event, TurnFinished)]
            assert turns == [0, 1, 1, 0]

    asyncio.run(main())


class Edit(BaseTool):
    name, description, needs_approval = "edit", "Edit.", True
    parameters: ClassVar[dict[str, object]] = {"type": "object", "properties": {"to": {"type": "string"}}}

    def call(self, params: Any, *, context: ToolContext | None = None) -> str:
        return "edited"

    def preview(self, arguments: Mapping[str, Any], *, workspace: Workspace) -> str:
        if arguments["to"] == "fails":
            raise RuntimeError("inside")
        return f"+{arguments['to']} in {workspace.root}"


def test_a_pending_call_of_a_nested_agent_shows_the_change_in_the_workspace_of_that_agent() -> None:
    def editor(folder: str, name: str = "editor") -> FnCallAgent:
        script = [calls(("edit", {"to": "tea"})), answer("Done.")]
        return FnCallAgent([Edit()], ScriptedModel(script), name=name, description="Edits.", workspace=folder)

    def asks(nested: BaseTool, name: str, *more: Any, **options: Any) -> FnCallAgent:
        model = ScriptedModel([calls((nested.name, {"request": "Edit."}))])
        return FnCallAgent([nested, *more], model, name=name, description="Asks.", workspace="top", **options)

    async def previews_of(source: FnCallAgent) -> list[str]:
        async with Serving({"a": source}) as serving:
            run_id = await serving.start("a", "Edit.")
            await read(serving, run_id)
            run = await serving.run(run_id)
            assert [one.call.name for one in run.waiting] == ["edit"]
            return list((await serving.previews(run)).values())

    async def main() -> None:
        assert await previews_of(asks(editor("below").as_tool(), "boss", Edit())) == ["+tea in below"]
        deeper = asks(asks(editor("deep").as_tool(), "middle").as_tool(), "boss", editor("below").as_tool())
        assert await previews_of(deeper) == ["+tea in deep"]

    asyncio.run(main())


def test_a_call_of_which_two_agents_could_be_meant_shows_no_change() -> None:
    async def main() -> None:
        other = FnCallAgent([Edit()], ScriptedModel([]), name="other", description="Edits.", workspace="there")
        source = FnCallAgent(
            [Edit()], ScriptedModel([calls(("edit", {"to": "tea"}))]), workspace="here", handoffs=[other]
        )
        async with Serving({"a": source}) as serving:
            run_id = await serving.start("a", "Edit.")
            await read(serving, run_id)
            assert await serving.previews(await serving.run(run_id)) == {}

    asyncio.run(main())


def test_a_pending_call_shows_the_change_that_its_tool_would_make() -> None:
    async def main() -> None:
        script = [calls(("edit", {"to": "tea\ud800"}), ("edit", {"to": "fails"}))]
        source = FnCallAgent([Edit()], ScriptedModel(script), workspace="here")
        async with Serving({"a": source}) as serving:
            run_id = await serving.start("a", "Edit.")
            await read(serving, run_id)
            run = await serving.run(run_id)
            assert run.agent == "a"
            assert await serving.previews(run) == {run.waiting[0].call_id: "+tea? in here"}
            below = tuple(replace(one, agent="helper") for one in run.waiting)
            asked = tuple(replace(one, kind="question") for one in run.waiting)
            for other in (replace(run, waiting=below), replace(run, waiting=asked), replace(run, agent="gone")):
                assert await serving.previews(other) == {}

    asyncio.run(main())


def test_another_owner_finds_no_run() -> None:
    async def main() -> None:
        async with Serving({"a": agent(answer("Hi."))}) as serving:
            run_id = await serving.start("a", "Hi", owner="ada", session="s")
            await read(serving, run_id, owner="ada")
            for call in (serving.run, serving.cancel, serving.delete, serving.fork):
                with pytest.raises(RunNotFoundError):
                    await call(run_id, owner="bob")
            with pytest.raises(RunNotFoundError):
                await read(serving, run_id, owner="bob")
            with pytest.raises(RunNotFoundError):
                await serving.answer(run_id, {"x": True}, owner="bob")
            with pytest.raises(RunNotFoundError):
                await serving.start("a", "Hi", owner="bob", continues=run_id)
            assert await serving.runs(owner="bob") == []
            assert await serving.sessions(owner="bob") == []
            assert [one.session for one in await serving.sessions(owner="ada")] == ["s"]

    asyncio.run(main())


@pytest.mark.parametrize("method", ["round_robin", "manual"])
def test_a_run_that_waits_for_a_person_can_be_cancelled(method: Any) -> None:
    async def main() -> None:
        ann = FnCallAgent(llm=ScriptedModel([answer("Who pays?")]), name="Ann", description="Talks.")
        members = [ann, UserAgent(name="Cy", description="Pays.")]
        group = GroupChat(members, agent_selection_method=method, name="group")
        async with Serving({"a": group}) as serving:
            run_id = await serving.start("a", "Lunch!")
            await read(serving, run_id)
            assert (await serving.run(run_id)).phase == "waiting"
            await serving.cancel(run_id)
            await read(serving, run_id)
            run = await serving.run(run_id)
            assert (run.phase, run.stop_reason) == ("ended", "cancelled")

    asyncio.run(main())


def test_a_person_in_a_group_continues_the_run_with_a_message() -> None:
    async def main() -> None:
        def member(name: str, *texts: str) -> FnCallAgent:
            return FnCallAgent(llm=ScriptedModel([answer(text) for text in texts]), name=name, description="Talks.")

        group = GroupChat(
            [member("Ann", "Who pays?", "Thanks, Cy."), UserAgent(name="Cy", description="Pays.")],
            agent_selection_method="round_robin",
            name="group",
        )
        async with Serving({"a": group}) as serving:
            run_id = await serving.start("a", "Lunch!")
            first = await read(serving, run_id)
            run = await serving.run(run_id)
            [waiting] = run.waiting
            assert (run.phase, waiting.kind, waiting.call_id) == ("waiting", "input", INPUT)
            await serving.answer(run_id, {INPUT: "I do."})
            rest = await read(serving, run_id, after=first[-1].number)
            numbers = [one.number for one in first + rest]
            assert numbers == sorted(set(numbers))
            run = await serving.run(run_id)
            said = [message.get_text_content() for message in (*run.messages, *run.response)]
            assert said == ["Lunch!", "Who pays?", "I do.", "Thanks, Cy."]
            late = [type(one.event.event) for one in await read(serving, run_id)]
            assert late.count(RunStarted) == 2

    asyncio.run(main())


def test_a_reader_that_leaves_cancels_a_run_only_if_it_says_so() -> None:
    started, ended = asyncio.Event(), list[str]()

    @tool
    async def wait() -> str:
        """Wait."""
        started.set()
        try:
            await asyncio.sleep(3600)
        finally:
            ended.append("wait")
        return "done"

    async def main() -> None:
        async with Serving({"a": agent(calls(("wait", {})), answer("Done."), tools=[wait])}) as serving:
            run_id = await serving.start("a", "Wait.")
            for cancel_on_leave in (False, True):
                stream = serving.attach(run_id, cancel_on_leave=cancel_on_leave)
                while not isinstance((await anext(stream)).event.event, ToolStarted):  # it follows a recorded step
                    pass
                await started.wait()
                await stream.aclose()  # type: ignore[attr-defined]
                await asyncio.sleep(0.05)
                assert bool(ended) == cancel_on_leave
            await read(serving, run_id)
            assert (await serving.run(run_id)).stop_reason == "cancelled"

    asyncio.run(main())


def test_limits_refuse_what_is_too_much_and_say_when_to_come_back() -> None:
    limits = ServingLimits(runs=1, queue=1, runs_per_owner=1, input_bytes=200, history_bytes=300, retry_after_s=7)

    async def main() -> None:
        slow = agent(*[calls(("_wait", {}))] * 3, tools=[tool(_wait)])
        async with Serving({"a": slow}, limits=limits) as serving:
            with pytest.raises(InputTooLargeError):
                await serving.start("a", "x" * 200)
            first = await serving.start("a", "Hi", owner="ada")
            with pytest.raises(TooManyRunsError, match="you already have 1 active run: wait") as caught:
                await serving.start("a", "Hi", owner="ada")
            assert caught.value.retry_after_s == 7
            second = await serving.start("a", "Hi", owner="bob")
            await asyncio.sleep(0)
            phases = [(await serving.run(first, owner="ada")).phase, (await serving.run(second, owner="bob")).phase]
            assert phases == ["running", "queued"]
            with pytest.raises(TooManyRunsError):
                await serving.start("a", "Hi", owner="cy")
            await serving.cancel(second, owner="bob")
            await serving.cancel(first, owner="ada")
            for run_id, owner in ((first, "ada"), (second, "bob")):
                await read(serving, run_id, owner=owner)
                assert (await serving.run(run_id, owner=owner)).stop_reason == "cancelled"
            await serving.start("a", "Hi", owner="ada")

    asyncio.run(main())


def test_a_run_that_this_process_does_not_execute_is_running_and_never_queued() -> None:
    async def main() -> None:
        served, store = {"a": agent(calls(("_wait", {})), tools=[tool(_wait)])}, MemoryStore()
        async with Serving(served, store=store) as serving, Serving(served, store=store) as other:
            run_id = await serving.start("a", "Hi")
            async for _ in serving.attach(run_id):
                break
            assert (await other.run(run_id)).phase == "running"
            assert [run.phase for run in await other.runs()] == ["running"]
            await serving.cancel(run_id)

    asyncio.run(main())


LOCATE = {"name": "locate", "parameters": {"type": "object", "properties": {}}}


async def _wait() -> str:
    """Wait."""
    await asyncio.sleep(3600)
    return "done"


@pytest.mark.parametrize("is_reader_first", [True, False])
def test_a_queued_run_that_is_cancelled_ends_without_its_turn_and_the_next_one_has_it(is_reader_first: bool) -> None:
    async def main() -> None:
        gate, began = asyncio.Event(), asyncio.Event()

        @tool
        async def wait() -> str:
            """Wait."""
            began.set()
            await gate.wait()
            return "waited"

        model = ScriptedModel([calls(("wait", {})), answer("The tide is low."), answer("Yes.")])
        limits = ServingLimits(runs=1)
        async with Serving({"a": FnCallAgent([wait], model, name="helper")}, limits=limits) as serving:
            running, cancelled, following = [await serving.start("a", text) for text in ("Tide?", "Wind?", "Sun?")]
            await began.wait()
            assert [(await serving.run(one)).phase for one in (running, cancelled, following)] == [
                "running", "queued", "queued",
            ]  # fmt: skip
            assert (serving.active, serving.queued) == (3, 2)
            reader = asyncio.create_task(read(serving, cancelled))
            if is_reader_first:
                await asyncio.sleep(0)
            await serving.cancel(cancelled)
            last = (await asyncio.wait_for(reader, 30))[-1].event.event
            assert isinstance(last, RunFinished)
            assert last.stop_reason == "cancelled"
            assert ((await serving.run(running)).phase, len(model.requests)) == ("running", 1)
            assert (await serving.run(following)).phase == "queued"
            gate.set()
            await read(serving, running)
            await read(serving, following)
            assert [(await serving.run(one)).text for one in (running, following)] == ["The tide is low.", "Yes."]
            assert (serving.active, serving.queued) == (0, 0)

    asyncio.run(main())


def test_a_session_has_one_run_at_a_time_and_a_run_continues_another() -> None:
    async def main() -> None:
        model = ScriptedModel([calls(("locate", {})), answer("In Rome."), answer("Yes, in Italy.")])
        async with Serving({"a": FnCallAgent(llm=model, system_message="Be brief.", name="helper")}) as serving:
            outcomes = await asyncio.gather(
                *(serving.start("a", "Where is Ada?", session="s", client_tools=[LOCATE]) for _ in range(3)),
                return_exceptions=True,
            )
            [first] = [one for one in outcomes if isinstance(one, str)]
            assert [type(one) for one in outcomes if one is not first] == [SessionBusyError] * 2
            with pytest.raises(SessionBusyError) as caught:
                await serving.start("a", "In Italy?", session="s")
            assert caught.value.run_id == first
            await read(serving, first)
            [waiting] = (await serving.run(first)).waiting
            await serving.answer(first, {waiting.call_id: "Rome"})
            await read(serving, first)
            second = await serving.start("a", "In Italy?", session="s", continues=first)
            await read(serving, second)
            asked = [message.get_text_content() for message in model.requests[-1].messages]
            assert asked == ["Be brief.", "Where is Ada?", "", "Rome", "In Rome.", "In Italy?"]
            [session] = await serving.sessions()
            assert (session.runs, session.last_run, session.title) == (2, second, "Where is Ada?")

    asyncio.run(main())


SYSTEMS: list[tuple[list[str], list[str], str]] = [
    ([], [], "Own."),
    (["One."], [], "Own.\n\nOne."),
    (["One.", "Two."], [], "Own.\n\nOne.\n\nTwo."),
    ([], ["Three."], "Own.\n\nThree."),
    (["One."], ["Three."], "Own.\n\nThree."),
    (["One.", "Two."], ["Three.", "Four."], "Own.\n\nThree.\n\nFour."),
]


@pytest.mark.parametrize(("first", "second", "text"), SYSTEMS, ids=str)
def test_the_model_gets_one_system_message_with_the_clients_latest_texts(
    first: list[str], second: list[str], text: str
) -> None:
    async def main() -> None:
        model = ScriptedModel([answer("yes"), answer("no")])
        own = FnCallAgent(llm=model, name="helper", system_message="Own.")
        async with Serving({"a": own}) as serving:
            run_id = ""
            for question, systems in (("one", first), ("two", second)):
                # One comes before the question, and the others come after it.
                messages = [Message("system", one) for one in systems]
                run_id = await serving.start(
                    "a", [*messages[:1], Message("user", question), *messages[1:]], continues=run_id
                )
                await read(serving, run_id)
                assert (await serving.run(run_id)).stop_reason == "finished"
        sent = model.requests[-1].messages
        assert [message.role for message in sent] == ["system", "user", "assistant", "user"]
        assert [message.get_text_content() for message in sent] == [text, "one", "yes", "two"]

    asyncio.run(main())


def test_a_fork_continues_from_the_step_that_it_was_made_at() -> None:
    async def main() -> None:
        script = [calls(("look", {})), answer("First."), answer("Second.")]
        async with Serving({"a": agent(*script, tools=[tool(look)])}) as serving:
            run_id = await serving.start("a", "Look.")
            events = await read(serving, run_id)
            [number] = [one.number for one in events if isinstance(one.event.event, ToolFinished)]
            copy = await serving.fork(run_id, at=number)
            await read(serving, copy)
            run = await serving.run(copy)
            assert (run.text, run.parent) == ("Second.", run_id)
            assert (await serving.run(run_id)).text == "First."

    asyncio.run(main())


@pytest.mark.parametrize("place", ["zero", "before the first answer", "after the result"])
def test_a_fork_has_the_steps_up_to_a_number_and_at_least_the_question(place: str) -> None:
    async def main() -> None:
        script = [calls(("look", {})), answer("First."), answer("Second.")]
        async with Serving({"a": agent(*script, tools=[tool(look)])}) as serving:
            run_id = await serving.start("a", "Look.")
            steps = {type(one.event.event): one.number for one in reversed(await read(serving, run_id))}
            numbers = {
                "zero": 0,
                "before the first answer": steps[TurnFinished] - 1,
                "after the result": steps[ToolFinished] + 1,
            }
            copy = await serving.fork(run_id, at=numbers[place])
            await read(serving, copy)
            run = await serving.run(copy)
            said = [message.get_text_content() for message in (*run.messages, *run.response)]
            assert said == ["Look.", *(["", "nothing"] if place == "after the result" else []), "Second."]

    asyncio.run(main())


def look() -> str:
    """Look."""
    return "nothing"


def test_a_request_is_checked_before_the_run_begins() -> None:
    async def main() -> None:
        async with Serving({"a": agent(answer("Hi."), tools=[tool(look)])}) as serving:
            with pytest.raises(AgentNotFoundError):
                await serving.start("b", "Hi")
            requests: list[dict[str, Any]] = [
                {"client_tools": [{"description": "no name"}]},
                {"client_tools": [{"name": "look", "parameters": {}}]},
                {"config": {"temprature": 1}},
                {"output": {"type": "no-such-type"}},
                {"client_tools": [{"name": "x", "parameters": {"type": "object", "default": object()}}]},
            ]
            for options in requests:
                with pytest.raises(ConfigError):
                    await serving.start("a", "Hi", **options)
            assert await serving.runs() == []

    asyncio.run(main())


def test_an_agent_that_fails_ends_its_run_for_every_reader() -> None:
    async def main() -> None:
        async with Serving({"a": agent([ValueError("broken model")])}) as serving:
            run_id = await serving.start("a", "Hi")
            events = await read(serving, run_id)
            assert isinstance(events[-1].event.event, RunFailed)
            run = await serving.run(run_id)
            assert (run.phase, run.stop_reason, run.error_kind) == ("ended", "failed", "ValueError")
            late = await read(serving, run_id)
            assert late[-1].event.event == events[-1].event.event

    asyncio.run(main())


def test_the_answer_of_a_schema_is_data() -> None:
    async def main() -> None:
        schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
        async with Serving({"a": agent(answer('{"city": "Rome"}'))}) as serving:
            run_id = await serving.start("a", "Where?", output=schema)
            await read(serving, run_id)
            assert (await serving.run(run_id)).output == {"city": "Rome"}

    asyncio.run(main())


def test_a_service_in_memory_forgets_the_oldest_runs() -> None:
    async def main() -> None:
        limits = ServingLimits(kept_runs=2)
        async with Serving({"a": agent(*[answer("Hi.")] * 4)}, limits=limits) as serving:
            ids = []
            for _ in range(4):
                ids.append(await serving.start("a", "Hi"))
                await read(serving, ids[-1])
            assert {run.run_id for run in await serving.runs()} == {*ids[-2:]}

    asyncio.run(main())


def test_a_run_that_has_not_ended_is_never_forgotten() -> None:
    async def main() -> None:
        store = MemoryStore(max_runs=1)
        holds = {
            name: await store.create(StoredRun(run_id=name, agent="a"), ["{}"]) for name in ("one", "two", "three")
        }
        assert [run.run_id for run in await store.runs()] == ["three", "two", "one"]
        await store.append("two", holds["two"], [], state="finished")
        await store.create(StoredRun(run_id="four", agent="a"), ["{}"])
        assert [run.run_id for run in await store.runs()] == ["four", "three", "one"]

    asyncio.run(main())


@pytest.mark.parametrize("state", ["approval_needed", "input_needed"])
def test_a_run_that_waits_for_a_person_is_never_forgotten_and_takes_no_room_of_others(state: str) -> None:
    async def main() -> None:
        store = MemoryStore(max_runs=2)
        for name, end in (("r1", state), ("r2", "finished"), ("r3", "failed"), ("r4", state), ("r5", "cancelled")):
            hold = await store.create(StoredRun(run_id=name, agent="a"), ["{}"])
            await store.append(name, hold, [], state=end)
        assert [run.run_id for run in await store.runs()] == ["r5", "r4", "r3", "r1"]

    asyncio.run(main())


@pytest.mark.parametrize(
    ("url", "is_public"),
    [
        ("https://example.org/a.png", True),
        ("HTTP://example.org", True),
        ("data:image/png;base64,AA==", True),
        ("/etc/passwd", False),
        ("etc/passwd", False),
        ("", False),
        ("//server/share", False),
        ("file:///etc/passwd", False),
        ("C:/users/ada", False),
        ("http://[", False),
    ],
)
def test_a_public_address_names_no_file_of_the_server(url: str, is_public: bool) -> None:
    assert is_public_url(url) is is_public
    item = ContentItem(file=url or "/")
    assert public_address(item) == (url if is_public else "")
    assert markdown_of(item) == (f"![file]({url})" if is_public else "[file]")


def test_texts_and_frames_have_no_public_address() -> None:
    frames = ContentItem(video=["https://example.org/1.png"])
    assert (public_address(frames), markdown_of(frames)) == ("", "[video]")
    assert public_address(ContentItem(text="https://example.org")) == ""


@pytest.mark.parametrize(
    ("of_service", "of_agent", "expected"), [(None, 7, 7), (5, None, 5), (5, 7, 5), (9, 7, 7), (None, None, None)]
)
def test_the_shorter_time_limit_of_an_agent_and_its_service_holds(
    of_service: float | None, of_agent: float | None, expected: float | None
) -> None:
    store = ServedStore(MemoryStore(), lambda *_: None)
    served = serve_agent("a", agent(limits=Limits(seconds=of_agent, turns=3)), store, run_s=of_service)
    assert (served.agent.limits.seconds, served.agent.limits.turns) == (expected, 3)


def test_a_conversation_with_an_agent_that_is_gone_goes_on_without_its_instructions() -> None:
    async def main() -> None:
        store = MemoryStore()
        gone = FnCallAgent(llm=ScriptedModel([answer("Low.")]), name="gone", system_message="Be old.")
        async with Serving({"gone": gone}, store=store) as serving:
            before = await serving.start("gone", "Tide?")
            await read(serving, before)
        new = FnCallAgent(llm=ScriptedModel([answer("High.")]), name="new", system_message="Be new.")
        async with Serving({"new": new}, store=store) as serving:
            run_id = await serving.start("new", "And now?", continues=before)
            await read(serving, run_id)
            messages = (await serving.run(run_id)).messages
            assert [message.get_text_content() for message in messages] == ["Be new.", "Tide?", "Low.", "And now?"]

    asyncio.run(main())


def test_a_run_that_cannot_begin_ends_for_its_readers() -> None:
    class Unready(FnCallAgent):
        """Fails before it records anything."""

        def astream(self, *_: Any, **__: Any) -> Any:
            raise ConfigError("the agent is not ready")

    async def main() -> None:
        async with Serving({"a": Unready(llm=ScriptedModel([]), name="a")}) as serving, asyncio.timeout(20):
            run_id = await serving.start("a", "Tide?")
            events = await read(serving, run_id)
            assert isinstance(events[-1].event.event, RunFailed)
            info = await serving.run(run_id)
            assert (info.phase, info.stop_reason, info.error_kind) == ("ended", "failed", "ConfigError")

    asyncio.run(main())


def test_a_late_answer_does_not_count_for_a_later_call_of_the_same_id() -> None:
    """Models use ids of calls again: a run may wait for the same id once more before the late answer is recorded."""
    paid: list[str] = []

    @tool(needs_approval=True)
    def pay(to: str) -> str:
        """Pay."""
        paid.append(to)
        return "paid"

    def call(to: str) -> list[Any]:
        events = calls(("pay", {"to": to}))
        return [replace(one, id="call_0") if isinstance(one, FunctionCallDelta) else one for one in events]

    class SlowStore(MemoryStore):
        """Takes its time for the first answer: another one is recorded, and used, before."""

        is_slow = False

        async def hold(self, run_id: str) -> int:
            if self.is_slow:
                self.is_slow = False
                await serving.answer(run_id, {"call_0": True})
                await read(serving, run_id)
            return await super().hold(run_id)

    async def main() -> None:
        nonlocal serving
        script = [call("Ada"), call("Bob"), answer("Done.")]
        async with Serving({"a": agent(*script, tools=[pay])}, store=store) as serving:
            run_id = await serving.start("a", "Pay.")
            await read(serving, run_id)
            store.is_slow = True
            with pytest.raises(NotWaitingError):
                await serving.answer(run_id, {"call_0": True})
            assert paid == ["Ada"]
            assert [one.call_id for one in (await serving.run(run_id)).waiting] == ["call_0"]

    store = SlowStore()
    serving: Serving
    asyncio.run(main())


@pytest.mark.parametrize("decision", [True, False])
def test_a_question_of_a_running_call_is_answered_by_a_client(decision: bool) -> None:
    @tool
    async def order(what: str, context: ToolContext) -> str:
        """Order."""
        is_agreed = await context.ask({"server_asks": f"Really {what}?"})
        return "ordered" if is_agreed else "not ordered"

    async def main() -> None:
        script = [calls(("order", {"what": "tea"})), answer("Done.")]
        async with Serving({"a": agent(*script, tools=[order])}) as serving:
            run_id = await serving.start("a", "Tea.", takes_questions=True)
            asked = ""
            async for _number, event in serving.attach(run_id):
                if isinstance(event.event, PluginEvent) and event.event.name == QUESTION:
                    [waiting] = (await serving.run(run_id)).waiting
                    assert (waiting.kind, waiting.call_id) == ("question", event.event.data["call_id"])
                    assert "Really tea?" in waiting.call.arguments
                    with pytest.raises(NotWaitingError):
                        await serving.answer(run_id, {"other": True})
                    with pytest.raises(NotWaitingError):
                        await serving.answer(run_id, {waiting.call_id: {"sure": True}})  # it has no form
                    asked = waiting.call_id
                    await serving.answer(run_id, {asked: decision})
            run = await serving.run(run_id)
            results = [message.get_text_content() for message in run.response if message.role == "function"]
            assert results == ["ordered" if decision else "not ordered"]
            with pytest.raises(NotWaitingError):
                await serving.answer(run_id, {asked: decision})

    asyncio.run(main())


def test_a_form_of_a_running_call_is_filled_by_a_client() -> None:
    filled: list[object] = []

    @tool
    async def order(context: ToolContext) -> str:
        """Order."""
        assert context.fills_forms
        filled.append(await context.ask({"server_asks": "Which?", "form": {"properties": {"size": {}}}}))
        return "done"

    async def main() -> None:
        async with Serving({"a": agent(calls(("order", {})), answer("Done."), tools=[order])}) as serving:
            run_id = await serving.start("a", "Tea.", takes_questions=True)
            async for _number, event in serving.attach(run_id):
                if isinstance(event.event, PluginEvent) and event.event.name == QUESTION:
                    await serving.answer(run_id, {event.event.data["call_id"]: {"size": "large"}})

    asyncio.run(main())
    assert filled == [{"size": "large"}]


def test_a_question_is_declined_where_no_client_answers_it() -> None:
    asked: list[object] = []

    @tool
    async def order(context: ToolContext) -> str:
        """Order."""
        assert not context.fills_forms
        asked.append(await context.ask({"server_asks": "Really?"}))
        return "done"

    async def main() -> None:
        async with Serving({"a": agent(calls(("order", {})), answer("Done."), tools=[order])}) as serving:
            await read(serving, await serving.start("a", "Tea."))

    asyncio.run(main())
    assert asked == [False]


@pytest.mark.parametrize("first", [True, False, Denial("too dear")])
def test_calls_may_be_decided_one_after_the_other(first: bool | Denial) -> None:
    @tool(needs_approval=True)
    def pay(amount: int) -> str:
        """Pay a sum."""
        return f"paid {amount}"

    async def main() -> None:
        # The model uses the ids of the first turn again.
        twice = [calls(("pay", {"amount": 1}), ("pay", {"amount": 2})) for _ in range(2)]
        async with Serving({"a": agent(*twice, answer("Done."), tools=[pay])}) as serving:
            run_id = await serving.start("a", "Pay.")
            counts, number = [], 0
            for decision in (first, True, first, True):
                await read(serving, run_id, number)
                run = await serving.run(run_id)
                number = run.number
                counts.append(len(run.waiting))
                await serving.answer(run_id, {run.waiting[0].call_id: decision})
            await read(serving, run_id, number)
            run = await serving.run(run_id)
            results = [message.get_text_content() for message in run.response if message.role == "function"]
            assert (counts, run.text) == ([2, 1, 2, 1], "Done.")
            assert [result == "paid 1" for result in results[::2]] == [first is True] * 2
            assert results[1::2] == ["paid 2"] * 2

    asyncio.run(main())


def test_a_decision_holds_for_no_call_of_a_later_turn() -> None:
    @tool(needs_approval=True)
    def pay() -> str:
        """Pay a sum."""
        return "paid"

    async def main() -> None:
        store = MemoryStore(10)
        # The model uses the id of the first call again.
        payer = agent(calls(("pay", {})), calls(("pay", {})), answer("Done."), tools=[pay])
        async with Serving({"a": payer}, store=store) as serving:
            run_id = await serving.start("a", "Pay.")
            first = await read(serving, run_id)
            await serving.answer(run_id, {"call_1": True})
            rest = await read(serving, run_id, first[-1].number)
            [turn] = [one.number for one in rest if isinstance(one.event.event, TurnFinished)]
            # The process ends before the second call was asked about.
            run, entries = await store.read(run_id)
            record = read_run(run, entries[: turn // STRIDE])
            assert [message.role for message in record.response] == ["assistant", "function", "assistant"]
            assert record.answers.approvals == {}

    asyncio.run(main())
