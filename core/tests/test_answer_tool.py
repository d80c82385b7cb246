"""Data from agents with tools: a call of the output tool is the answer, and everything else goes on as before."""

from __future__ import annotations

import json
from typing import Any, cast, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from jackfield import Agent, FnCallAgent, tool
from jackfield.agents import Run
from jackfield.agents._answer_tool import _CallAsText
from jackfield.errors import ConfigError, InvalidAnswerError
from jackfield.events import (
    FunctionCallDelta,
    ModelEvent,
    ModelFinished,
    PluginEvent,
    ReasoningDelta,
    RetryScheduled,
    StreamReset,
    TextDelta,
    ToolStarted,
)
from jackfield.models._fold import fold
from jackfield.request import ModelFacts
from jackfield.results import Way
from jackfield.testing import ScriptedModel, answer, calls
from jackfield_testkit.records import MemoryStore, interrupted


class City(BaseModel):
    name: str
    people: int = 0


BONN = {"name": "Bonn", "people": 330000}
FITS = City(name="Bonn", people=330000)


@tool(idempotent=True)
def look_up(town: str) -> str:
    """Look a town up."""
    return f"{town}: 330000"


@tool(needs_approval=True)
def pay(amount: int) -> str:
    """Pay."""
    return f"{amount} paid"


def agent(*steps: Any, tools: Any = (look_up,), **options: Any) -> FnCallAgent:
    return FnCallAgent(tools, ScriptedModel(steps, facts=options.pop("facts", None)), **options)


def requests_of(asked: Agent) -> list[Any]:
    assert isinstance(asked.llm, ScriptedModel)
    return asked.llm.requests


# --- the answer ---


def test_a_call_of_the_output_tool_ends_the_run_and_reads_as_its_text() -> None:
    asked = agent(calls(("look_up", {"town": "Bonn"})), calls(("answer", BONN)))
    result = asked.ask("q", output=City)
    assert (result.output, result.way, result.stop_reason, result.finish_reason) == (FITS, "tool", "finished", "stop")
    assert json.loads(result.text) == BONN
    assert [message.role for message in result.messages] == ["assistant", "function", "assistant"]
    assert not result.messages[-1].function_call
    first, _ = requests_of(asked)
    assert [function["name"] for function in first.functions] == ["look_up", "answer"]
    assert first.functions[1]["parameters"] == City.model_json_schema()
    assert first.config.function_choice == "required"


def test_a_conversation_goes_on_without_the_tool() -> None:
    asked = agent(calls(("answer", BONN)), answer("Yes."))
    result = asked.ask("q", output=City)
    assert asked.ask("Sure?", history=result.history).text == "Yes."
    assert [function["name"] for function in requests_of(asked)[1].functions] == ["look_up"]


@pytest.mark.parametrize(
    ("wanted", "arguments", "value"),
    [
        (int, {"value": 3}, 3),
        (list[City], {"value": [BONN]}, [FITS]),
        (City | int, {"value": BONN}, FITS),
        (City | int, {"value": 7}, 7),
        (str, {"value": "Bonn"}, "Bonn"),
        ({"type": "object", "properties": {"name": {"type": "string"}}}, {"name": "Bonn"}, {"name": "Bonn"}),
        (dict[str, int], {}, {}),
    ],
)
def test_any_form_can_be_the_arguments(wanted: Any, arguments: dict[str, object], value: object) -> None:
    assert agent(calls(("answer", arguments))).ask("q", output=wanted).output == value


def test_a_call_without_arguments_is_an_empty_object() -> None:
    step = [FunctionCallDelta(0, "c", "answer"), ModelFinished("tool_calls")]
    assert agent(step).ask("q", output=dict[str, int]).output == {}


def test_arguments_that_do_not_fit_go_back_with_the_reasons() -> None:
    asked = agent(calls(("answer", {"people": "many"})), calls(("answer", BONN)))
    stream = asked.stream("q", output=City)
    events = list(stream)
    assert stream.result.output == FITS
    (retry,) = [event for event in events if isinstance(event, RetryScheduled)]
    assert "people" in retry.error
    assert "people" in requests_of(asked)[1].messages[-1].get_text_content()


def test_arguments_that_never_fit_are_an_error() -> None:
    broken = [FunctionCallDelta(0, "c", "answer", "{{{]"), ModelFinished("tool_calls")]
    with pytest.raises(InvalidAnswerError, match="in 2 attempts: not valid JSON"):
        agent(broken, broken).ask("q", output=City, attempts=2)


def test_a_text_in_place_of_the_call_is_read_as_well() -> None:
    assert agent(answer(json.dumps(BONN))).ask("q", output=City).output == FITS


def test_words_beside_the_call_do_no_harm() -> None:
    words = calls(("answer", BONN), text="As [1] says, {so}:")
    late = [*words[:-2], TextDelta(" {And more}"), *words[-2:]]
    blank = [words[0], TextDelta(" "), *words[1:]]
    for step in (words, late, blank):
        assert agent(step).ask("q", output=City, attempts=1).output == FITS


def test_no_argument_is_lost_if_the_name_of_a_call_comes_late() -> None:
    def late(name: str, arguments: str) -> list[ModelEvent]:
        pieces = [FunctionCallDelta(0, "c"), *(FunctionCallDelta(0, arguments=piece) for piece in arguments[:5])]
        return [*pieces, FunctionCallDelta(0, name=name), FunctionCallDelta(0, arguments=arguments[5:])]

    end = ModelFinished("tool_calls")
    result = agent([*late("look_up", '{"town": "Bonn"}'), end], [*late("answer", json.dumps(BONN)), end]).ask(
        "q", output=City, attempts=1
    )
    assert result.output == FITS
    assert [message.content for message in result.messages if message.role == "function"] == ["Bonn: 330000"]


@pytest.mark.parametrize("space", ["\n", " \n\n"])
def test_blank_lines_before_the_call_leave_its_answer_plain_json(space: str) -> None:
    result = agent(calls(("answer", BONN), text=space)).ask("q", output=City)
    assert json.loads(result.text) == BONN


@pytest.mark.parametrize(
    ("question", "described", "told"),
    [
        ("q", "Give your final answer, as data.", "Give your final answer by calling the tool `answer`"),
        ("你好", "以数据形式给出最终答案。", "请通过调用工具 `answer` 给出最终答案"),
    ],
)
def test_the_output_tool_is_described_in_the_language_of_the_conversation(
    question: str, described: str, told: str
) -> None:
    asked = agent(calls(("answer", BONN)))
    asked.ask(question, output=City)
    [request] = requests_of(asked)
    assert request.functions[-1]["description"].startswith(described)
    assert request.messages[0].content.startswith(told)


def test_the_first_of_several_answers_in_a_turn_counts() -> None:
    step = calls(("answer", BONN), ("answer", {"name": "Jena"}))
    result = agent(step).ask("q", output=City, attempts=1)
    assert (result.output, json.loads(result.text)) == (FITS, BONN)


@pytest.mark.parametrize("order", [1, -1])
def test_an_answer_beside_other_calls_waits_for_their_results(order: int) -> None:
    both: list[tuple[str, dict[str, object]]] = [("answer", {"name": "?"}), ("look_up", {"town": "Bonn"})]
    both = both[::order]
    asked = agent(calls(*both), calls(("answer", BONN)))
    stream = asked.stream("q", output=City)
    started = [event.call.name for event in stream if isinstance(event, ToolStarted)]
    assert (started, stream.result.output) == (["look_up"], FITS)
    assert requests_of(asked)[1].messages[-1].get_text_content() == "Bonn: 330000"


def test_a_tool_of_the_same_name_keeps_it() -> None:
    @tool(name="answer")
    def own(text: str) -> str:
        """Answer the phone."""
        return text

    asked = agent(calls(("answer", {"text": "hi"})), calls(("final_answer", BONN)), tools=[own])
    assert asked.ask("q", output=City).output == FITS


def test_the_answer_streams_as_text_and_starts_no_tool() -> None:
    stream = agent(calls(("answer", BONN))).stream("q", output=City)
    events = list(stream)
    assert json.loads("".join(event.text for event in events if isinstance(event, TextDelta))) == BONN
    assert not [event for event in events if isinstance(event, FunctionCallDelta | ToolStarted)]
    assert PluginEvent("jackfield.answer_way", {"way": "tool"}) in events


# --- what may be chosen ---


def test_the_way_can_be_chosen() -> None:
    held = ModelFacts(json_schema=True, schema_with_tools=True)
    for way in get_args(Way):
        assert agent(answer(json.dumps(BONN)), facts=held).ask("q", output=City, way=way).way == way
    with pytest.raises(ConfigError, match="unknown way 'magic'"):
        agent().ask("q", output=City, way=cast(Any, "magic"))
    with pytest.raises(ConfigError, match="pass output="):
        agent().ask("q", way="tool")


def test_a_kind_that_runs_no_loop_uses_the_prompt() -> None:
    class Own(Agent):
        async def events(self, run: Run) -> Any:
            async for event in FnCallAgent(llm=self.llm).events(run):
                yield event

    model = ScriptedModel([answer(json.dumps(BONN))])
    assert Own(llm=model).ask("q", output=City).way == "prompt"
    with pytest.raises(ConfigError, match="Own cannot answer with a tool"):
        Own(llm=model).ask("q", output=City, way="tool")


def test_a_server_that_refuses_forced_calls_is_not_asked_for_one() -> None:
    asked = agent(calls(("answer", BONN)), facts=ModelFacts(forced_calls=False))
    assert asked.ask("q", output=City).way == "tool"
    assert requests_of(asked)[0].config.function_choice == "auto"


def test_a_choice_of_the_caller_stays() -> None:
    asked = agent(calls(("look_up", {"town": "Bonn"})), answer(json.dumps(BONN)))

    def choose(turn: Any) -> dict[str, object]:
        return {"function_choice": "look_up" if turn.turn == 1 else "none"}

    assert asked.ask("q", output=City, config=choose).output == FITS
    first, second = requests_of(asked)
    assert first.config.function_choice == "look_up"
    assert [function["name"] for function in second.functions] == ["look_up"]


# --- limits, approval, hand-offs, records ---


def test_a_limit_ends_the_run_without_output() -> None:
    result = agent(calls(("look_up", {"town": "Bonn"})), limits={"turns": 1}).ask("q", output=City)
    assert result.stop_reason == "turn_limit"
    with pytest.raises(InvalidAnswerError):
        _ = result.output


def test_attempts_count_against_the_limit_of_turns() -> None:
    result = agent(calls(("answer", {})), calls(("answer", BONN)), limits={"turns": 1}).ask("q", output=City)
    assert result.stop_reason == "turn_limit"


def test_a_run_that_waits_for_approval_goes_on_to_its_answer() -> None:
    asked = agent(calls(("pay", {"amount": 3})), calls(("answer", BONN)), tools=[pay])
    paused = asked.ask("q", output=City)
    (call_id,) = paused.waiting
    assert asked.ask([], history=paused.history, resume={call_id: True}, output=City).output == FITS


@pytest.mark.parametrize("facts", [ModelFacts(), ModelFacts(json_schema=True, schema_with_tools=True)])
def test_an_agent_that_takes_over_is_asked_for_the_data_as_well(facts: ModelFacts) -> None:
    model = ScriptedModel([answer(json.dumps(BONN))])
    clerk = FnCallAgent(llm=model, name="clerk", description="Knows towns.")
    asked = agent(calls(("transfer_to_clerk", {})), facts=facts, handoffs=[clerk], name="desk")
    result = asked.ask("q", output=City)
    assert (result.output, result.path) == (FITS, ("desk", "clerk"))
    assert '"people"' in model.requests[0].messages[0].get_text_content()


def test_an_interrupted_run_goes_on_to_its_answer() -> None:
    script = [calls(("look_up", {"town": "Bonn"})), calls(("answer", {"people": "?"})), calls(("answer", BONN))]

    def answer_of(request: Any) -> Any:
        return script[sum(message.role != "system" for message in request.messages) // 2]

    def fresh(store: MemoryStore) -> FnCallAgent:
        return FnCallAgent([look_up], ScriptedModel(answer_of), store=store)

    places = 0
    for store in interrupted(lambda store: fresh(store).ask("q", output=City)):
        places += 1
        for run_id in store.kept:
            assert fresh(store).resume(run_id, output=City).output == FITS
    assert places > 2


# --- the stream ---

_DELTAS = st.lists(
    st.one_of(
        st.builds(TextDelta, st.sampled_from(["", "so ", "{"])),
        st.builds(ReasoningDelta, st.just("hm")),
        st.builds(
            FunctionCallDelta,
            st.integers(0, 3),
            st.just(""),
            st.sampled_from(["", "answer", "look_up"]),
            st.sampled_from(["", '{"a": ', "1}"]),
        ),
        st.just(StreamReset("again")),
    ),
    max_size=12,
)


def _cut(event: ModelEvent) -> list[ModelEvent]:
    if isinstance(event, TextDelta):
        return [TextDelta(char) for char in event.text]
    if isinstance(event, FunctionCallDelta):
        named = FunctionCallDelta(event.index, event.id, event.name)
        return [named, *(FunctionCallDelta(event.index, arguments=char) for char in event.arguments)]
    return [event]


def _transformed(events: list[ModelEvent]) -> Any:
    transform = _CallAsText("answer")
    out: list[ModelEvent] = []
    for event in [*events, ModelFinished("tool_calls")]:
        if isinstance(event, StreamReset):
            transform = _CallAsText("answer")
            out.append(event)
        else:
            out += transform.feed(event)
    return fold(out)


@given(_DELTAS)
def test_cutting_the_stream_elsewhere_changes_nothing(events: list[Any]) -> None:
    names: dict[int, str] = {}
    unique = []
    for event in events:  # a name comes once
        if isinstance(event, StreamReset):
            names.clear()
        if isinstance(event, FunctionCallDelta) and event.name:
            if event.index in names:
                continue
            names[event.index] = event.name
        unique.append(event)
    cut = [piece for event in unique for piece in _cut(event)]
    whole = _transformed(unique)
    assert _transformed(cut).messages == whole.messages
    assert "answer" not in [call.name for call in whole.get_function_calls()]
