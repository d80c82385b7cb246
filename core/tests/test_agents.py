"""Agents: what a run does, where it ends, and what its history looks like."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield import Agent, BaseTool, BasicAgent, FnCallAgent, Message, tool
from jackfield.agents import (
    CancelToken,
    Event,
    Run,
    RunOptions,
    RunView,
    Spent,
    TurnView,
    open_calls,
    with_calls_closed,
)
from jackfield.agents._decide import AskModel, Finish, Pause, RunTools, decide
from jackfield.config import GenerateConfig, Limits
from jackfield.errors import BrokenPluginError, ConfigError, ModelConnectionError, PluginNotFoundError
from jackfield.events import (
    ApprovalNeeded,
    FunctionCallDelta,
    ModelFinished,
    ResponseReplaced,
    RunEvent,
    RunFailed,
    RunFinished,
    TextDelta,
    ToolFinished,
    ToolProgress,
    TurnFinished,
    TurnStarted,
)
from jackfield.messages import ContentItem, FinishReason, FunctionCall, Usage
from jackfield.models import Retry
from jackfield.request import ChatRequest
from jackfield.runs import RunResources
from jackfield.testing import ScriptedModel, answer, calls
from jackfield.tools import PlannedCall, ToolContext

ASK = [{"role": "user", "content": "go"}]


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def no_wait(_: float) -> None:
    """Wait for nothing."""


def events_of(agent: Agent, messages: Any = ASK, **options: Any) -> list[Any]:
    async def collect() -> list[RunEvent]:
        return [event async for event in agent.astream(messages, **options)]

    return [event.event for event in asyncio.run(collect())]


def ending(agent: Agent, messages: Any = ASK, **options: Any) -> RunFinished:
    last = events_of(agent, messages, **options)[-1]
    assert isinstance(last, RunFinished)
    return last


# --- deciding ---


def call(name: str, call_id: str | None) -> Message:
    extra = None if call_id is None else {"function_id": call_id}
    return Message("assistant", "", function_call=FunctionCall(name, "{}"), extra=extra)


def result(name: str, call_id: str) -> Message:
    return Message("function", "ok", name=name, extra={"function_id": call_id})


def test_a_question_is_asked() -> None:
    assert decide([Message("user", "q")], Spent(), Limits()) == AskModel()


def test_calls_without_a_result_are_run_first() -> None:
    action = decide([Message("user", "q"), call("f", "1"), call("g", "2"), result("f", "1")], Spent(turns=1), Limits())
    assert isinstance(action, RunTools)
    assert [(planned.call.name, planned.index) for planned in action.calls] == [("g", 1)]


def test_ids_of_earlier_turns_may_come_again() -> None:
    history = [Message("user", "q"), call("f", "1"), result("f", "1"), call("g", "1")]
    assert [planned.call.name for planned in open_calls(history)] == ["g"]


@pytest.mark.parametrize(("call_id", "result_id"), [(None, None), ("1", "9"), ("1", None), (None, "9")])
def test_a_result_of_another_call_leaves_a_call_open(call_id: str | None, result_id: str | None) -> None:
    extra = None if result_id is None else {"function_id": result_id}
    history = [Message("user", "q"), call("f", call_id), Message("function", "ok", name="g", extra=extra)]
    assert [planned.call.name for planned in open_calls(history)] == ["f"]


def test_a_history_that_ends_in_an_answer_of_an_earlier_run_is_still_asked() -> None:
    assert decide([Message("user", "q"), Message("assistant", "a")], Spent(), Limits()) == AskModel()


def test_calls_that_a_caller_wrote_wait_unless_the_run_is_resumed() -> None:
    history = [Message("user", "q"), call("rm", "1")]
    calls = (PlannedCall(0, "1", FunctionCall("rm", "{}")),)
    for turns in (0, 1, 3):
        spent = Spent(turns=turns)
        assert decide(history, spent, Limits(), turns_before=turns) == Pause(calls)
        assert decide(history, spent, Limits(), turns_before=turns, resume=True) == RunTools(calls)
        assert decide(history, Spent(turns=turns + 1), Limits(), turns_before=turns) == RunTools(calls)


def test_a_call_without_an_id_gets_the_same_one_whatever_earlier_turns_contain() -> None:
    history = [Message("user", "q"), call("f", "call_1"), result("f", "call_1"), call("g", None)]
    assert [planned.call_id for planned in open_calls(history)] == ["call_1"]


def test_a_new_id_is_that_of_no_other_call_and_no_result_of_the_turn() -> None:
    both = [Message("user", "q"), call("f", None), call("g", "call_1")]
    assert [planned.call_id for planned in open_calls(both)] == ["call_2", "call_1"]
    answered = [*both, result("g", "call_1"), result("h", "call_2")]
    assert [planned.call_id for planned in open_calls(answered)] == ["call_3"]


def test_tool_calls_may_reach_their_limit_and_not_pass_it() -> None:
    history = [Message("user", "q"), call("f", "1"), call("g", "2")]
    limits = Limits(tool_calls=3)
    assert isinstance(decide(history, Spent(turns=1, tool_calls=1), limits), RunTools)
    assert decide(history, Spent(turns=1, tool_calls=2), limits) == Finish("tool_call_limit")


@pytest.mark.parametrize(
    ("spent", "limits", "reason"),
    [
        (Spent(turns=2), Limits(turns=2), "turn_limit"),
        (Spent(turns=1, usage=Usage(prompt_tokens=9, completion_tokens=1)), Limits(tokens=10), "token_limit"),
        (
            Spent(turns=1, usage=Usage(prompt_tokens=1, cost=Decimal("0.2"), currency="USD")),
            Limits(cost=Decimal("0.1")),
            "cost_limit",
        ),
    ],
)
def test_a_limit_ends_the_run_by_its_name(spent: Spent, limits: Limits, reason: str) -> None:
    history = [Message("user", "q"), call("f", "1"), result("f", "1")]
    assert decide(history, spent, limits) == Finish(reason)  # type: ignore[arg-type]


def test_a_cost_limit_without_a_price_is_said() -> None:
    history = [Message("user", "q"), call("f", "1"), result("f", "1")]
    with pytest.raises(ConfigError, match="limit tokens instead"):
        decide(history, Spent(turns=1, usage=Usage(prompt_tokens=5)), Limits(cost=Decimal(1)))


turns = st.lists(
    st.tuples(st.lists(st.sampled_from(["1", "2", "call_x"]), min_size=1, max_size=4), st.integers(0, 4)), max_size=4
)


@given(turns)
def test_a_closed_history_has_no_open_calls(script: list[tuple[list[str], int]]) -> None:
    history = [Message("user", "q")]
    for ids, answered in script:
        history += [call("f", call_id) for call_id in ids]
        history += [result("f", call_id) for call_id in ids[:answered]]
        history = with_calls_closed(history)
        assert open_calls(history) == ()
        assert sum(m.role == "function" for m in history) == sum(m.function_call is not None for m in history)


# --- running ---


def test_a_run_asks_calls_and_answers() -> None:
    model = ScriptedModel([calls(("add", {"a": 1, "b": 2})), answer("3")])
    response = FnCallAgent([add], model).run_nonstream(ASK)
    assert [message["role"] for message in response] == ["assistant", "function", "assistant"]
    assert response[1]["content"] == "3"
    assert response[0]["extra"]["function_id"] == response[1]["extra"]["function_id"]
    assert model.requests[1].messages[-1].content == "3"


def test_dicts_come_back_for_dicts_and_messages_for_messages() -> None:
    agent = FnCallAgent(llm=ScriptedModel(lambda _: answer("hi")))
    assert isinstance(agent.run_nonstream(ASK)[0], dict)
    assert isinstance(agent.run_nonstream([Message("user", "x")])[0], Message)
    assert isinstance(agent.run_nonstream([Message("user", "x"), ASK[0]])[0], Message)


def test_growing_lists_never_change_afterwards_and_end_with_the_whole() -> None:
    agent = FnCallAgent([add], ScriptedModel([calls(("add", {"a": 1, "b": 2}), text="I add"), answer("it is 3")]))
    seen: list[list[Message]] = []
    copies = []
    for snapshot in agent.run([Message("user", "go")]):
        seen.append(snapshot)
        copies.append([message.model_dump_json() for message in snapshot])
    assert [[message.model_dump_json() for message in snapshot] for snapshot in seen] == copies
    assert seen[-1][-1].content == "it is 3"


def test_the_agents_system_message_stands_before_the_users() -> None:
    model = ScriptedModel([answer("x")])
    BasicAgent(llm=model, system_message="AG").run_nonstream([{"role": "system", "content": "USR"}, *ASK])
    assert model.requests[0].messages[0] == Message("system", "AG\n\nUSR")


def test_the_callers_messages_are_not_changed() -> None:
    messages = [{"role": "system", "content": "USR"}, {"role": "user", "content": "go"}]
    BasicAgent(llm=ScriptedModel([answer("x")]), system_message="AG", name="n").run_nonstream(messages)
    assert messages == [{"role": "system", "content": "USR"}, {"role": "user", "content": "go"}]


def test_events_are_numbered_and_say_which_run_and_agent() -> None:
    agent = FnCallAgent([add], ScriptedModel([calls(("add", {"a": 1, "b": 2})), answer("3")]), name="adder")

    async def collect() -> list[RunEvent]:
        return [event async for event in agent.astream(ASK)]

    events = asyncio.run(collect())
    assert [event.number for event in events] == list(range(1, len(events) + 1))
    assert {(event.run_id, event.agent, event.depth) for event in events} == {(events[0].run_id, "adder", 0)}


def test_usage_is_summed_over_the_turns() -> None:
    agent = FnCallAgent([add], ScriptedModel([calls(("add", {"a": 1, "b": 2})), answer("3")]))
    assert ending(agent).usage.total_tokens == 4


def test_a_model_that_never_stops_calling_is_stopped_and_it_is_said() -> None:
    model = ScriptedModel(lambda _: calls(("add", {"a": 1, "b": 2})))
    end = ending(FnCallAgent([add], model))
    assert (end.stop_reason, len(model.requests)) == ("turn_limit", 20)
    assert open_calls(end.messages) == ()


def test_an_empty_reply_ends_the_run_at_once_and_says_so() -> None:
    model = ScriptedModel(lambda _: [ModelFinished("stop")])
    assert ending(FnCallAgent(llm=model)).stop_reason == "empty_reply"
    assert len(model.requests) == 1


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        (FunctionCallDelta(0, id="x", name="nope", arguments="{}"), "Tool nope does not exist"),
        (FunctionCallDelta(0, id="x", name="add", arguments='{"a": 1'), "b: Field required"),
        (FunctionCallDelta(0, id="x", name="add", arguments="one and two"), "must be a single JSON object"),
        (FunctionCallDelta(0, name="add", arguments='{"a": 1, "b": "x"}'), "integer"),
    ],
)
def test_a_bad_call_becomes_a_result_and_the_run_goes_on(bad: FunctionCallDelta, told: str) -> None:
    model = ScriptedModel([[bad, ModelFinished("tool_calls")], answer("sorry")])
    response = FnCallAgent([add], model).run_nonstream(ASK)
    assert told in response[1]["content"]
    assert response[-1]["content"] == "sorry"


@pytest.mark.parametrize("reason", ["length", "content_filter", "other"])
def test_a_call_that_was_cut_off_is_not_run_with_half_its_arguments(reason: FinishReason) -> None:
    asked: list[str] = []

    @tool
    def delete(path: str) -> str:
        """Delete a file."""
        asked.append(path)
        return "gone"

    half = FunctionCallDelta(0, id="x", name="delete", arguments='{"path": "/home/me')
    model = ScriptedModel([[half, ModelFinished(reason)], answer("oh")])
    response = FnCallAgent([delete], model).run_nonstream(ASK)
    assert asked == []
    assert "truncated" in response[1]["content"]


def test_a_whole_call_beside_one_that_was_cut_off_is_made() -> None:
    whole = FunctionCallDelta(0, id="x", name="add", arguments='{"a": 1, "b": 2}')
    half = FunctionCallDelta(1, id="y", name="add", arguments='{"a": 1, "b"')
    model = ScriptedModel([[whole, half, ModelFinished("length")], answer("oh")])
    results = [
        entry["content"] for entry in FnCallAgent([add], model).run_nonstream(ASK) if entry["role"] == "function"
    ]
    assert "3" in results
    assert len(results) == 2


def test_documents_in_the_system_message_do_not_change_the_language() -> None:
    model = ScriptedModel([answer("x")])
    FnCallAgent(llm=model, system_message="知识").run_nonstream(ASK, lang="en")
    assert model.requests[0].lang == "en"


@pytest.mark.parametrize(("question", "documents", "lang"), [("Why?", "知识", "en"), ("为什么？", "Facts", "zh")])
def test_what_a_kind_adds_for_its_model_does_not_change_the_language(question: str, documents: str, lang: str) -> None:
    class Reading(FnCallAgent):
        def events(self, run: Run) -> AsyncIterator[Event]:
            return super().events(replace(run, messages=(Message("user", documents),)))

    model = ScriptedModel([answer("x")], processors=[])
    Reading(llm=model).ask(question)
    assert model.requests[0].lang == lang


def test_an_image_in_a_result_is_a_note_to_a_model_that_takes_none() -> None:
    @tool
    def plot() -> list[ContentItem]:
        """Plot."""
        return [ContentItem(text="a plot"), ContentItem(image="data:image/png;base64,AAAA")]

    model = ScriptedModel([calls(("plot", {})), answer("nice")])
    response = FnCallAgent([plot], model).run_nonstream(ASK)
    assert response[1]["content"][1]["image"].startswith("data:")
    assert model.requests[1].messages[-1].get_text_content() == "a plot\n(image omitted: not supported by this model)"


def test_a_tool_may_take_bare_text_for_its_one_argument() -> None:
    class Run(BaseTool):
        name = "run"
        description = "Runs code."
        parameters = {"type": "object", "properties": {"code": {"type": "string"}}, "required": ["code"]}  # noqa: RUF012
        raw_argument = "code"

        def call(self, params: Any, *, context: Any = None) -> str:
            return str(params["code"]).upper()

    bare = FunctionCallDelta(0, id="x", name="run", arguments="print('hi')")
    response = FnCallAgent([Run()], ScriptedModel([[bare, ModelFinished("tool_calls")], answer("ok")])).run_nonstream(
        ASK
    )
    assert response[1]["content"] == "PRINT('HI')"


def test_calls_with_one_id_have_one_each_in_the_history_and_in_the_results() -> None:
    said = [FunctionCallDelta(n, id="same", name="add", arguments=f'{{"a": {n}, "b": 1}}') for n in range(3)]
    model = ScriptedModel([[*said, ModelFinished("tool_calls")], answer("done")])
    response = [Message(**one) for one in FnCallAgent([add], model).run_nonstream(ASK)]
    asked = [one.function_id for one in response if one.function_call]
    assert [one.function_id for one in response if one.role == "function"] == asked
    assert len(set(asked)) == 3


def test_the_first_delta_of_a_call_has_its_id_and_a_repeated_answer_has_ids_of_its_own() -> None:
    first = [FunctionCallDelta(0, "c1", "add", '{"a": 1'), ModelConnectionError("gone")]
    second = [FunctionCallDelta(0, "c2", "add", '{"a": 1'), FunctionCallDelta(0, arguments=', "b": 1}')]
    config = {"model": "m", "generate_cfg": {"max_retries": 1}}
    model = ScriptedModel(
        [first, [*second, ModelFinished("tool_calls")], answer("2")], config=config, processors=[Retry(sleep=no_wait)]
    )
    agent = FnCallAgent([add], model)
    deltas = [event.id for event in events_of(agent) if isinstance(event, FunctionCallDelta)]
    assert deltas == ["c1", "c2", ""]
    assert [message.function_id for message in model.requests[-1].messages[1:]] == ["c2", "c2"]


def test_interleaved_calls_are_kept_apart() -> None:
    deltas = [
        FunctionCallDelta(0, id="a", name="add", arguments='{"a": 1,'),
        FunctionCallDelta(1, id="b", name="add", arguments='{"a": 5, "b": 5}'),
        FunctionCallDelta(0, arguments='"b": 2}'),
        ModelFinished("tool_calls"),
    ]
    response = FnCallAgent([add], ScriptedModel([deltas, answer("ok")])).run_nonstream(ASK)
    assert [m["content"] for m in response if m["role"] == "function"] == ["3", "10"]


def test_an_error_of_the_model_is_told_and_raised_with_what_had_arrived() -> None:
    agent = FnCallAgent(llm=ScriptedModel([[TextDelta("half"), ModelConnectionError("gone")]]))
    seen: list[Any] = []

    async def consume() -> None:
        async for event in agent.astream(ASK):
            seen.append(event.event)  # noqa: PERF401 - what came before the error counts

    with pytest.raises(ModelConnectionError) as caught:
        asyncio.run(consume())
    assert caught.value.partial_text == "half"
    assert isinstance(seen[-1], RunFailed)


def test_an_agent_without_a_model_says_what_to_pass() -> None:
    with pytest.raises(ConfigError, match="llm='backend:model'"):
        FnCallAgent(name="mute").run_nonstream(ASK)


def test_two_tools_of_one_name_are_refused() -> None:
    with pytest.raises(ConfigError, match="two tools are named 'add'"):
        FnCallAgent([add, add])


def test_an_unknown_tool_is_refused_when_the_agent_is_made() -> None:
    with pytest.raises(PluginNotFoundError, match="no tool 'nope'"):
        FnCallAgent(["nope"])


# --- approval, cancelling, time ---


@tool(needs_approval=True)
def remove(path: str) -> str:
    """Remove a file."""
    return f"removed {path}"


def test_a_run_pauses_for_approval_and_is_taken_up_again_from_its_messages() -> None:
    model = ScriptedModel([calls(("remove", {"path": "x"})), answer("gone")])
    waiting = events_of(FnCallAgent([remove], model))
    assert isinstance(waiting[-2], ApprovalNeeded)
    paused = waiting[-1]
    assert isinstance(paused, RunFinished)
    assert paused.stop_reason == "approval_needed"
    allowed = FnCallAgent([remove], model, approve=lambda _call, _context: True)
    end = ending(allowed, [Message("user", "go"), *paused.messages], resume=True)
    assert [message.content for message in end.messages] == ["removed x", "gone"]


def test_a_refused_call_is_told_to_the_model_and_not_made() -> None:
    made: list[str] = []

    @tool(needs_approval=True)
    def act(what: str) -> str:
        """Act."""
        made.append(what)
        return "done"

    async def never(_call: FunctionCall, _context: ToolContext) -> bool:
        return False

    model = ScriptedModel([calls(("act", {"what": "x"}), ("add", {"a": 1, "b": 1})), answer("well")])
    end = ending(FnCallAgent([act, add], model, approve=never))
    results = [message.content for message in end.messages if message.role == "function"]
    assert made == []
    assert "did not allow" in str(results[0])
    assert results[1] == "2"


@pytest.mark.parametrize(("own", "of_run", "made"), [(False, True, True), (True, False, False), (True, None, True)])
def test_the_approval_of_a_run_replaces_that_of_its_agent(own: bool, of_run: bool | None, made: bool) -> None:
    paid: list[str] = []

    @tool(needs_approval=True)
    def pay(to: str) -> str:
        """Pay."""
        paid.append(to)
        return f"paid {to}"

    agent = FnCallAgent([pay], ScriptedModel([calls(("pay", {"to": "Ada"})), answer("Done.")]), approve=lambda *_: own)
    agent.ask("Pay.", approve=None if of_run is None else lambda *_: of_run)
    assert paid == (["Ada"] if made else [])


def test_the_answer_to_a_call_that_waited_does_not_allow_a_later_call_with_its_id() -> None:
    asked: list[str] = []

    def approve(asked_call: FunctionCall, _context: ToolContext) -> bool:
        asked.append(asked_call.arguments)
        return False

    again = calls(("remove", {"path": "y"}))  # its id is `call_1`, too
    model = ScriptedModel([calls(("remove", {"path": "x"})), again, answer("well")])
    agent = FnCallAgent([remove], model)
    paused = ending(agent)
    end = ending(agent, [Message("user", "go"), *paused.messages], resume={"call_1": True}, approve=approve)
    results = [message.get_text_content() for message in end.messages if message.role == "function"]
    assert asked == ['{"path": "y"}']
    assert results[0] == "removed x"
    assert "did not allow" in results[1]


def test_cancelling_ends_the_run_with_a_valid_history() -> None:
    token = CancelToken()
    started = threading.Event()

    @tool
    async def wait() -> str:
        """Wait for ever."""
        started.set()
        await asyncio.Event().wait()
        return ""

    agent = FnCallAgent([wait, add], ScriptedModel([calls(("wait", {}), ("add", {"a": 1, "b": 2}))]))
    threading.Thread(target=lambda: (started.wait(10), token.cancel())).start()
    end = ending(agent, cancel=token)
    assert end.stop_reason == "cancelled"
    assert open_calls(end.messages) == ()
    assert {m.name for m in end.messages if m.role == "function"} == {"wait", "add"}


def test_a_token_cancelled_before_the_run_ends_it_before_the_model_answers() -> None:
    token = CancelToken()
    token.cancel()
    assert ending(FnCallAgent(llm=ScriptedModel([answer("never")])), cancel=token).stop_reason == "cancelled"


def test_what_a_model_had_said_when_the_time_was_over_is_kept() -> None:
    class Slow(ScriptedModel):
        async def stream(self, request: Any) -> Any:
            yield TextDelta("half an ")
            await asyncio.Event().wait()

    end = ending(FnCallAgent(llm=Slow([]), limits={"seconds": 0.5}))
    assert end.stop_reason == "time_limit"
    assert end.messages[-1].content == "half an "


def test_a_slow_consumer_is_not_hit_by_the_time_limit_of_a_wait() -> None:
    # The time-out must be around the run's own waits: not around the code between two events.
    agent = FnCallAgent(llm=ScriptedModel([answer("a long enough answer for several events")]), limits={"seconds": 0.5})

    async def consume() -> list[Any]:
        slept, steps = 0, []
        async for step in agent.astream(ASK):
            if isinstance(step.event, TextDelta) and not slept:
                await asyncio.sleep(0.6)  # it would be cancelled here
                slept += 1
            steps.append(step)
        assert slept
        return steps

    assert isinstance(asyncio.run(consume())[-1].event, RunFinished)


# --- resources, progress, files ---


class Opened:
    def __init__(self) -> None:
        self.closed = False

    async def aclose(self) -> None:
        self.closed = True


def test_what_tools_open_is_closed_with_the_run_unless_the_caller_keeps_it() -> None:
    opened: list[Opened] = []

    async def make() -> Opened:
        opened.append(Opened())
        return opened[-1]

    @tool
    async def use(context: ToolContext) -> str:
        """Use a thing."""
        thing = await context.resources.get("thing", make)
        return str(thing.closed)

    agent = FnCallAgent([use], ScriptedModel(lambda r: calls(("use", {})) if len(r.messages) < 2 else answer("ok")))
    agent.run_nonstream(ASK)
    assert [thing.closed for thing in opened] == [True]

    async def two_runs() -> list[bool]:
        async with RunResources() as kept:
            await agent.arun(ASK, resources=kept)
            await agent.arun(ASK, resources=kept)
            return [thing.closed for thing in opened[1:]]

    assert asyncio.run(two_runs()) == [False]
    assert opened[1].closed


def test_a_tool_tells_how_far_it_is() -> None:
    @tool
    def work(context: ToolContext) -> str:
        """Work."""
        context.report("half way")
        return "done"

    events = events_of(FnCallAgent([work], ScriptedModel([calls(("work", {})), answer("ok")])))
    assert [event.text for event in events if isinstance(event, ToolProgress)] == ["half way"]


def test_a_tool_sees_the_files_of_the_agent_and_of_the_user_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a.pdf", "b.pdf"):
        Path(name).write_bytes(b"%PDF-1.7")
    seen: list[tuple[str, ...]] = []

    @tool(effects={"files"})
    def look(context: ToolContext) -> str:
        """Look."""
        seen.append(context.files)
        return ""

    content = [{"file": "b.pdf"}, {"text": "read it"}, {"file": "a.pdf"}]
    model = ScriptedModel([calls(("look", {})), answer("ok")])
    said = {"role": "assistant", "content": [{"file": "/etc/passwd"}]}
    messages = [{"role": "user", "content": content}, said, {"role": "user", "content": "Go on."}]
    FnCallAgent([look], model, files=["a.pdf"]).run_nonstream(messages)
    assert seen == [("a.pdf", "b.pdf")]


def test_results_stand_in_call_order_whichever_tool_is_first() -> None:
    second_done = asyncio.Event()

    @tool
    async def slow() -> str:
        """Wait for the other."""
        await second_done.wait()
        return "slow"

    @tool
    async def fast() -> str:
        """Be first."""
        second_done.set()
        return "fast"

    events = events_of(FnCallAgent([slow, fast], ScriptedModel([calls(("slow", {}), ("fast", {})), answer("ok")])))
    assert [e.message.content for e in events if isinstance(e, ToolFinished)] == ["fast", "slow"]
    view = RunView()
    for event in events[:-1]:
        view.feed(event)
    assert [message.content for message in view.messages() if message.role == "function"] == ["slow", "fast"]


# --- agents in Qwen-Agent's way ---


class Legacy(Agent):
    def _run(self, messages: list[Message], lang: str = "en", **_: Any) -> Iterator[list[Message]]:
        response: list[Message] = []
        for part in self._call_llm(messages, [t.schema() for t in self.function_map.values()]):
            yield part
            response = part
        used, name, arguments, _text = self._detect_tool(response[-1])
        if used:
            assert name is not None
            assert arguments is not None
            content = self._call_tool(name, arguments)
            response = [*response, Message("function", content, name=name, extra=response[-1].extra)]
            yield response


def test_a_subclass_that_writes_run_works_in_every_way_of_running() -> None:
    def model() -> ScriptedModel:
        return ScriptedModel([calls(("add", {"a": 2, "b": 2}))])

    assert Legacy([add], model()).run_nonstream(ASK)[-1]["content"] == "4"
    assert list(Legacy([add], model()).run(ASK))[-1][-1]["content"] == "4"
    assert ending(Legacy([add], model())).messages[-1].content == "4"


class InOnePiece(Agent):
    def _run(self, messages: list[Message], lang: str = "en", **_: Any) -> Iterator[list[Message]]:
        yield from self._call_llm(messages, stream=False, extra_generate_cfg={"seed": 7})


def test_a_subclass_may_ask_its_model_for_one_whole_answer() -> None:
    model = ScriptedModel([answer("a long answer in many pieces")])
    agent = InOnePiece(llm=model, extra_generate_cfg={"seed": 1, "temperature": 0.5})
    lists = [event.messages for event in events_of(agent) if isinstance(event, ResponseReplaced)]
    assert [[message.content for message in messages] for messages in lists] == [["a long answer in many pieces"]]
    assert (model.requests[0].config.seed, model.requests[0].config.temperature) == (7, 0.5)


def test_a_turn_begins_and_ends_in_the_events_with_what_it_brought() -> None:
    agent = FnCallAgent([add], ScriptedModel([calls(("add", {"a": 2, "b": 2})), answer("4")]))
    turns = [event for event in events_of(agent) if isinstance(event, TurnStarted | TurnFinished)]
    assert [type(event) for event in turns] == [TurnStarted, TurnFinished] * 2
    assert [event.turn for event in turns] == [1, 1, 2, 2]
    ends = [event for event in turns if isinstance(event, TurnFinished)]
    assert [bool(event.messages[-1].function_call) for event in ends] == [True, False]
    assert ends[-1].messages[-1].content == "4"


def test_an_agent_that_says_nothing_of_how_it_runs_is_refused() -> None:
    with pytest.raises(TypeError, match="must define `events` or `_run`"):
        Agent()


def test_a_language_that_somebody_sets_wins_over_one_that_is_found() -> None:
    def langs(**how: Any) -> tuple[str, str]:
        config = {"model": "m", "generate_cfg": {"lang": "zh"}} if how.pop("configured", False) else {"model": "m"}
        model = ScriptedModel([answer("Yes.")], config=config)
        FnCallAgent(llm=model).run_nonstream([{"role": "user", "content": "Hello"}], **how)
        return model.requests[0].lang, str(model.requests[0].config.lang)

    assert langs() == ("en", "None")  # found: a processor that knows better may say otherwise
    assert langs(configured=True) == ("zh", "zh")
    assert langs(lang="zh") == ("zh", "zh")
    assert langs(configured=True, lang="en") == ("en", "en")


@pytest.mark.parametrize(("system", "lang"), [("你是助手", "zh"), ("You help.", "en")])
def test_a_system_message_of_the_agent_counts_for_the_language(system: str, lang: str) -> None:
    model = ScriptedModel([answer("Yes.")], processors=[])
    FnCallAgent(llm=model, system_message=system).ask("Hello")
    assert model.requests[0].lang == lang


# --- model options of a run ---


def requests_of(agent: Agent) -> list[ChatRequest]:
    assert isinstance(agent.llm, ScriptedModel)
    return agent.llm.requests


def asked_with(**options: Any) -> list[GenerateConfig]:
    """Run an agent that calls a tool once, and return the options of each request."""
    model = ScriptedModel([calls(("add", {"a": 1, "b": 1})), answer("2")])
    FnCallAgent([add], model, extra_generate_cfg={"temperature": 1.0, "seed": 7}).ask("Add.", **options)
    return [request.config for request in model.requests]


def test_model_options_of_a_run_override_those_of_the_agent() -> None:
    for config in ({"temperature": 0}, GenerateConfig(temperature=0)):
        assert [(one.temperature, one.seed) for one in asked_with(config=config)] == [(0, 7), (0, 7)]
    assert [one.temperature for one in asked_with()] == [1.0, 1.0]


def test_model_options_can_depend_on_the_turn() -> None:
    views: list[TurnView] = []

    def config(view: TurnView) -> dict[str, Any] | None:
        views.append(view)
        return {"temperature": 0} if view.tool_calls else None

    assert [(one.temperature, one.seed) for one in asked_with(config=config)] == [(1.0, 7), (0, 7)]
    assert [(view.turn, view.tool_calls, len(view.messages)) for view in views] == [(1, 0, 1), (2, 1, 3)]
    assert views[1].usage.total_tokens > 0


@pytest.mark.parametrize(("limit", "reason"), [(4, "finished"), (3, "tool_call_limit"), (2, "tool_call_limit")])
def test_every_call_of_a_turn_counts_for_the_limit_and_for_the_options_of_the_next_turn(
    limit: int, reason: str
) -> None:
    counts: list[int] = []
    add_one = ("add", {"a": 1, "b": 1})
    model = ScriptedModel([calls(add_one, add_one, add_one), calls(add_one), answer("8")])
    agent = FnCallAgent([add], model, limits={"tool_calls": limit})
    result = agent.ask("Add.", config=lambda view: counts.append(view.tool_calls))  # type: ignore[func-returns-value]
    assert result.stop_reason == reason
    assert counts == {4: [0, 3, 4], 3: [0, 3], 2: [0]}[limit]


def test_an_unknown_model_option_of_a_run_is_named() -> None:
    agent = FnCallAgent([], ScriptedModel([answer("Hi.")]))
    with pytest.raises(ConfigError, match=r"config: unknown setting 'temprature'.*temperature"):
        agent.ask("Hi.", config={"temprature": 0})
    with pytest.raises(ConfigError, match="config: unknown setting 'temprature'"):
        agent.run([{"role": "user", "content": "Hi."}], config={"temprature": 0})
    with pytest.raises(ConfigError, match="config of turn 1: unknown setting 'temprature'"):
        agent.ask("Hi.", config=lambda _: {"temprature": 0})
    with pytest.raises(ConfigError, match="config must be a dict"):
        agent.ask("Hi.", config="hot")  # type: ignore[call-overload]


def test_model_options_reach_the_agent_that_takes_the_conversation_over_but_no_agent_that_is_a_tool() -> None:
    helper = FnCallAgent([], ScriptedModel([answer("Found.")]), name="helper", description="Finds.")
    clerk = FnCallAgent(
        [helper.as_tool()],
        ScriptedModel([calls(("helper", {"request": "Find it."})), answer("Done.")]),
        name="clerk",
        description="Files.",
        extra_generate_cfg={"seed": 7},
    )
    desk = FnCallAgent([], ScriptedModel([calls(("transfer_to_clerk", {}))]), name="desk", handoffs=[clerk])
    assert desk.ask("Go.", config={"temperature": 0}).text == "Done."
    assert [(one.config.temperature, one.config.seed) for one in requests_of(clerk)] == [(0, 7), (0, 7)]
    assert [one.config.temperature for one in requests_of(helper)] == [None]


class Older(Agent):
    def _run(self, messages: list[Message], lang: str = "en", **options: Any) -> Iterator[list[Message]]:
        yield from self._call_llm(messages, **options)


def test_model_options_reach_what_a_kind_in_qwen_agents_form_asks() -> None:
    agent = Older(llm=ScriptedModel([answer("Hi."), answer("Hi.")]))
    agent.run_nonstream("Hi.", config={"temperature": 0})
    assert requests_of(agent)[0].config.temperature == 0
    with pytest.raises(ConfigError, match=r"Older defines `_run`.*pass a dict"):
        agent.run_nonstream("Hi.", config=lambda _: None)


# --- options of kinds ---


class RoundsOptions(RunOptions, total=False):
    rounds: int


class Rounds(FnCallAgent):
    run_options = RoundsOptions


def test_an_option_of_a_kind_is_checked_before_the_run() -> None:
    agent = Rounds([], ScriptedModel([answer("Hi.")]))
    with pytest.raises(ConfigError, match="option 'rounds' of agent 'Rounds' must be int, got str"):
        agent.ask("Hi.", rounds="2")  # type: ignore[call-overload]
    with pytest.raises(ConfigError, match=r"no option 'round'.*rounds"):
        agent.ask("Hi.", round=2)  # type: ignore[call-overload]
    assert agent.ask("Hi.", rounds=2).text == "Hi."  # type: ignore[call-overload]


def test_an_error_about_an_option_names_no_internal_one() -> None:
    with pytest.raises(ConfigError) as caught:
        FnCallAgent([], ScriptedModel([])).ask("Hi.", confg={})  # type: ignore[call-overload]
    assert "config" in str(caught.value)
    assert "parent" not in str(caught.value)


class Silent(Agent):
    """A kind that never says how its run ended."""

    async def events(self, run: Run) -> AsyncIterator[Event]:
        yield TextDelta("half an answer")


def test_a_kind_whose_run_has_no_end_is_named_and_its_observers_see_a_failure() -> None:
    agent, seen = Silent(), []

    async def follow() -> None:
        async for placed in agent.astream(ASK):
            seen.append(placed.event)  # noqa: PERF401 - it raises, and what came before is looked at

    with pytest.raises(BrokenPluginError, match="Silent ended without RunFinished"):
        asyncio.run(follow())
    assert isinstance(seen[-1], RunFailed)
    with pytest.raises(BrokenPluginError, match="Silent ended without RunFinished"):
        agent.ask("Who?")
