"""An agent whose answer is data: the way that is chosen, the answers that are counted, and what an error says."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from jackfield import FnCallAgent, Message, tool
from jackfield.agents import Event, Run
from jackfield.agents._structured import choose_way, end_in_data
from jackfield.answers import Form, form_of
from jackfield.errors import BrokenPluginError, ConfigError, InvalidAnswerError
from jackfield.events import FunctionCallDelta, ModelEvent, ModelFinished, RunFinished, TextDelta
from jackfield.messages import Usage
from jackfield.request import ModelFacts
from jackfield.testing import ScriptedModel, answer, calls
from jackfield.tools import ToolContext, toolset

FORM = {"type": "object", "properties": {"far": {"type": "boolean"}}, "required": ["far"]}


@tool
def look() -> str:
    """Look."""
    return "seen"


@toolset
def looks(context: ToolContext) -> list[Any]:
    """Tools that are made for a run."""
    return [look]


@pytest.mark.parametrize(
    ("facts", "tools", "way"),
    [
        (ModelFacts(json_schema=True), [], "native"),
        (ModelFacts(json_schema=True, native_tools=True), [look], "tool"),
        (ModelFacts(json_schema=True, native_tools=True), [looks], "tool"),
        (ModelFacts(json_schema=True, schema_with_tools=True), [look], "native"),
        (ModelFacts(json_schema=True, schema_with_tools=True), [looks], "native"),
        (ModelFacts(json_schema=True, native_tools=False), [looks], "prompt"),
        (ModelFacts(native_tools=True), [], "tool"),
        (ModelFacts(native_tools=False), [], "prompt"),
    ],
)
def test_the_strictest_way_is_chosen_that_the_model_allows(facts: ModelFacts, tools: list[Any], way: str) -> None:
    assert choose_way(FnCallAgent(tools, ScriptedModel([], facts=facts)), None) == way


class WithoutTool(FnCallAgent):
    """A kind that says nothing about the tool, and has events of its own."""

    def events(self, run: Run) -> AsyncIterator[Event]:
        return super().events(run)


def test_a_kind_that_cannot_answer_by_a_tool_is_asked_in_words() -> None:
    agent = WithoutTool(llm=ScriptedModel([], facts=ModelFacts(native_tools=True)))
    assert choose_way(agent, None) == "prompt"
    with pytest.raises(ConfigError, match="cannot answer with a tool"):
        choose_way(agent, "tool")
    with pytest.raises(ConfigError, match="unknown way 'magic'"):
        choose_way(agent, "magic")  # type: ignore[arg-type]


@pytest.mark.parametrize("options", [{"attempts": 1}, {"attempts": 2}, {}], ids=["1", "2", "default"])
@pytest.mark.parametrize("text", ["", "no", '{"far": "perhaps"}'])
def test_an_error_after_all_attempts_has_the_last_text_and_the_whole_usage(options: dict[str, int], text: str) -> None:
    model, attempts = ScriptedModel(lambda _: answer(text)), options.get("attempts", 3)
    with pytest.raises(InvalidAnswerError, match=f"in {attempts} attempts?: ") as caught:
        FnCallAgent(llm=model).ask("Far?", output=FORM, way="prompt", **options)
    assert len(model.requests) == attempts
    assert caught.value.partial_text == text
    assert caught.value.usage == Usage(prompt_tokens=attempts, completion_tokens=attempts)


class Unreadable(Form[Any]):
    """A form by which no answer can be checked."""

    def read(self, text: str) -> Any:
        raise ConfigError("it takes too many steps")


def test_a_form_that_cannot_be_checked_is_no_wrong_answer_and_is_not_asked_for_again() -> None:
    model = ScriptedModel(lambda _: answer('{"far": true}'))
    with pytest.raises(ConfigError, match="too many steps"):
        FnCallAgent(llm=model).ask("Far?", output=Unreadable(FORM), attempts=3, way="prompt")
    assert len(model.requests) == 1


def test_attempts_see_the_answers_before_and_the_result_has_all_of_them() -> None:
    model = ScriptedModel([answer("no"), answer("never"), answer('{"far": true}')])
    result = FnCallAgent(llm=model).ask("Far?", output=FORM, attempts=3, way="prompt")
    assert result.output == {"far": True}
    roles = [message.role for message in result.messages]
    assert roles == ["assistant", "user", "assistant", "user", "assistant"]
    assert [len(request.messages) for request in model.requests] == [2, 4, 6]
    assert result.usage.total_tokens == 6
    with pytest.raises(ConfigError, match="attempts must be at least 1"):
        FnCallAgent(llm=model).ask("Far?", output=FORM, attempts=0)


@pytest.mark.parametrize(
    ("question", "asked", "sent_back"),
    [
        ("Far?", "Answer with one JSON object", "This answer does not fit"),
        ("远吗？", "只用一个 JSON 对象回答", "这个回答不符合要求"),
    ],
)
def test_data_is_asked_for_in_the_language_of_the_conversation(question: str, asked: str, sent_back: str) -> None:
    model = ScriptedModel([answer("no"), answer('{"far": true}')])
    FnCallAgent(llm=model).ask(question, output=FORM, way="prompt")
    assert model.requests[0].messages[0].get_text_content().startswith(asked)
    assert model.requests[1].messages[-1].get_text_content().startswith(sent_back)


def test_an_agent_that_takes_over_after_a_wrong_answer_sees_the_answer_and_what_was_wrong() -> None:
    clerk = FnCallAgent(llm=ScriptedModel([answer('{"far": true}')]), name="clerk", description="Knows.")
    model = ScriptedModel([answer("no"), calls(("transfer_to_clerk", {}))])
    desk = FnCallAgent(llm=model, name="desk", handoffs=[clerk])
    assert desk.ask("Far?", output=FORM).output == {"far": True}
    assert isinstance(clerk.llm, ScriptedModel)
    _, question, wrong, correction, *_ = clerk.llm.requests[0].messages
    assert (question.content, wrong.content) == ("Far?", "no")
    assert "not valid JSON" in correction.get_text_content()


def test_what_is_sent_back_is_recorded_before_the_model_answers_again() -> None:
    model = ScriptedModel([answer("no"), answer("never"), answer('{"far": true}')])
    agent = FnCallAgent(llm=model)
    recorded: list[tuple[int, str]] = []

    class Record:
        async def added(self, messages: list[Message]) -> None:
            recorded.extend((len(model.requests), message.role) for message in messages)

    async def main() -> None:
        run = replace(agent.make_run((Message("user", "Far?"),), "en"), record=Record())  # type: ignore[arg-type]
        async for _ in end_in_data(agent, form_of(FORM), run, way="prompt", attempts=3):
            pass

    asyncio.run(main())
    assert recorded == [(1, "user"), (2, "user")]


def test_a_limit_ends_the_run_between_attempts_and_is_no_wrong_answer() -> None:
    agent = FnCallAgent([look], ScriptedModel(lambda _: calls(("look", {}))), limits={"turns": 2})
    result = agent.ask("Far?", output=FORM, way="prompt")
    assert result.stop_reason == "turn_limit"
    with pytest.raises(InvalidAnswerError, match="ended with 'turn_limit'"):
        _ = result.output
    limited = FnCallAgent(llm=ScriptedModel(lambda _: answer("no")), limits={"tokens": 4})
    result = limited.ask("Far?", output=FORM, attempts=9, way="prompt")
    assert (result.stop_reason, result.usage.total_tokens) == ("token_limit", 4)


class Mute(FnCallAgent):
    """Ends without a word, and without an end."""

    async def events(self, run: Run) -> AsyncIterator[Event]:
        for event in list[RunFinished]():
            yield event


def test_a_kind_that_ends_without_an_end_is_named() -> None:
    with pytest.raises(BrokenPluginError, match="Mute ended without RunFinished"):
        Mute(llm=ScriptedModel([])).ask([Message("user", "Far?")], output=FORM)


def pieces(index: int, name: str, *arguments: str) -> list[ModelEvent]:
    first, *rest = arguments
    return [
        FunctionCallDelta(index, id=f"c{index}", name=name, arguments=first),
        *(FunctionCallDelta(index, arguments=piece) for piece in rest),
    ]


@pytest.mark.parametrize("answer_first", [True, False])
def test_a_call_beside_the_answer_is_made_with_all_of_its_arguments(answer_first: bool) -> None:
    @tool
    def echo(text: str) -> str:
        """Echo."""
        return f"echo {text}"

    names = ("answer", "echo") if answer_first else ("echo", "answer")
    arguments = {"answer": ('{"far": ', "false}"), "echo": ('{"text": ', '"ha"}')}
    events = [event for index, name in enumerate(names) for event in pieces(index, name, *arguments[name])]
    script = [[*events, ModelFinished("tool_calls")], answer('{"far": true}')]
    result = FnCallAgent([echo], ScriptedModel(script)).ask("Far?", output=FORM, way="tool")
    assert [message.content for message in result.messages if message.role == "function"] == ["echo ha"]
    assert result.output == {"far": True}, "an answer beside calls is provisional"


@pytest.mark.parametrize("reason", ["tool_calls", "stop", "length"])
def test_data_of_the_backend_about_an_answer_by_a_tool_is_not_sent_back(reason: Any) -> None:
    end = ModelFinished(reason, data={"signature": "of the call"})
    script: list[Any] = [[*pieces(0, "answer", '{"far": true}'), end], [TextDelta("Yes."), end]]
    agent = FnCallAgent(llm=ScriptedModel(script))
    by_tool = agent.ask("Far?", output=FORM, way="tool")
    assert by_tool.messages[-1].origin is None
    assert by_tool.finish_reason == ("stop" if reason == "tool_calls" else reason)
    in_words = agent.ask("Far?").messages[-1].origin
    assert in_words is not None
    assert in_words.data == {"signature": "of the call"}


def test_data_of_the_backend_about_other_calls_beside_an_answer_is_sent_back() -> None:
    both = [*pieces(0, "answer", '{"far": true}'), *pieces(1, "look", "{}")]
    first = [*both, ModelFinished("tool_calls", data={"signature": "of the calls"})]
    model = ScriptedModel([first, [*pieces(0, "answer", '{"far": true}'), ModelFinished("tool_calls")]])
    assert FnCallAgent([look], model).ask("Far?", output=FORM, way="tool").output == {"far": True}
    [call] = [message for message in model.requests[1].messages if message.function_call]
    assert call.origin is not None
    assert call.origin.data == {"signature": "of the calls"}


def test_an_answer_by_a_tool_without_arguments_is_an_empty_object() -> None:
    script = [[*pieces(0, "answer", " ", "\n"), ModelFinished("tool_calls")]]
    result = FnCallAgent(llm=ScriptedModel(script)).ask("Far?", output={"type": "object"}, way="tool")
    assert result.output == {}


@pytest.mark.parametrize("count", range(5))
def test_the_answer_tool_has_a_name_that_no_other_tool_has(count: int) -> None:
    names = ("answer", "final_answer", "answer_2", "answer_3", "answer_4")
    tools = [tool(name=name, description="Acts.")(lambda: "done") for name in names[:count]]
    model = ScriptedModel([answer('{"far": true}')])
    FnCallAgent(tools, model).ask("Far?", output=FORM, way="tool")
    assert [function["name"] for function in model.requests[0].functions] == [*names[: count + 1]]
    assert f"by calling the tool `{names[count]}`" in model.requests[0].messages[0].get_text_content()


def test_the_form_follows_the_system_message_of_whoever_answers() -> None:
    other = FnCallAgent(llm=ScriptedModel([answer('{"far": true}')]), name="other", description="Knows.")
    script = [answer('{"far": true}'), calls(("transfer_to_other", {}))]
    desk = FnCallAgent(llm=ScriptedModel(script), system_message="Be short.", handoffs=[other])
    question = [Message("system", "Rhyme."), Message("user", "Far?")]
    for agent, first in ((desk, "Be short.\n\nRhyme.\n\n"), (other, "Rhyme.\n\n")):
        assert desk.ask(question, output=FORM, way="prompt").output == {"far": True}
        assert isinstance(agent.llm, ScriptedModel)
        assert agent.llm.requests[0].messages[0].get_text_content().startswith(first)
