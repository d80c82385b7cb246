"""What one holds after asking: its text, its data, its history, and what it took to get there."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import BaseModel

from jackfield import Agent, BasicAgent, FnCallAgent, Message, RunResult, ToolContext, ToolResult, create_agent, tool
from jackfield.agents import Event, Run
from jackfield.errors import ConfigError, InvalidAnswerError
from jackfield.events import ModelFinished, PluginEvent, RetryScheduled, RunFinished, TextDelta
from jackfield.messages import Usage
from jackfield.request import ModelFacts
from jackfield.results import Source, sources_in
from jackfield.testing import ScriptedModel, answer, calls


class Odd:
    pass


class City(BaseModel):
    name: str
    people: int


BONN = '{"name": "Bonn", "people": 330000}'
HALF = '{"name": "Bonn"}'


@tool
def look_up(town: str) -> ToolResult:
    """Look up a town."""
    return ToolResult(f"{town}: 330000", {"sources": ["towns.pdf", {"location": "https://a.test/b.html", "page": 3}]})


@tool(needs_approval=True)
def pay(amount: int) -> str:
    """Pay."""
    return f"{amount} paid"


def agent(*steps: Any, tools: Any = (), **options: Any) -> FnCallAgent:
    facts = options.pop("facts", None)
    return FnCallAgent(tools, ScriptedModel(steps, facts=facts), **options)


# --- what it holds ---


def test_a_text_is_asked_and_the_result_has_all_that_came_of_it() -> None:
    asked = agent(calls(("look_up", {"town": "Bonn"})), answer("330000."), tools=[look_up])
    result = asked.ask("How many people live in Bonn?")
    assert (result.text, result.output, str(result)) == ("330000.",) * 3
    assert [message.role for message in result.messages] == ["assistant", "function", "assistant"]
    assert result.history == (Message("user", "How many people live in Bonn?"), *result.messages)
    assert (result.stop_reason, result.finish_reason, result.waiting) == ("finished", "stop", {})
    assert result.sources == (Source("towns.pdf"), Source("https://a.test/b.html", 3))
    assert [str(source) for source in result.sources] == ["towns.pdf", "b.html, page 3"]
    assert result.usage == Usage(prompt_tokens=2, completion_tokens=2)
    assert result.cost is None
    assert result.run_id
    assert result.seconds >= 0


def test_the_history_goes_on() -> None:
    model = ScriptedModel([answer("Bonn."), answer("330000.")])
    asked = BasicAgent(llm=model, system_message="Be brief.")
    first = asked.ask("Which town?")
    second = asked.ask("How many people?", history=first.history)
    roles_and_texts = [(message.role, message.content) for message in model.requests[1].messages]
    assert roles_and_texts == [
        ("system", "Be brief."),
        ("user", "Which town?"),
        ("assistant", "Bonn."),
        ("user", "How many people?"),
    ]
    assert [message.content for message in second.history] == ["Which town?", "Bonn.", "How many people?", "330000."]


def test_the_text_is_what_was_said_last_without_reasoning() -> None:
    asked = agent(
        calls(("look_up", {"town": "Bonn"}), text="I look."), answer("Found.", reasoning="hm"), tools=[look_up]
    )
    assert asked.ask("q").text == "Found."


def test_a_run_that_waits_for_a_yes_says_for_which_calls_and_goes_on() -> None:
    asked = agent(calls(("pay", {"amount": 3})), answer("Done."), tools=[pay])
    paused = asked.ask("Pay 3.")
    assert (paused.stop_reason, paused.text) == ("approval_needed", "")
    assert [(key, call.name) for key, call in paused.waiting.items()] == [("call_1", "pay")]
    done = asked.ask([], history=paused.history, resume={"call_1": True})
    assert done.text == "Done."
    assert "3 paid" in [message.content for message in done.messages]


@pytest.mark.parametrize("given", ["q", {"role": "user", "content": "q"}, Message("user", "q"), [Message("user", "q")]])
def test_a_text_or_one_message_is_taken_wherever_messages_are(given: Any) -> None:
    model = ScriptedModel([answer("a")] * 20)
    asked = BasicAgent(llm=model)
    dicts = isinstance(given, dict)
    assert asked.ask(given).text == "a"
    assert asyncio.run(asked.aask(given)).text == "a"
    assert asked.run_nonstream(given)[-1]["content"] == "a"
    assert isinstance(asked.run_nonstream(given)[-1], dict) is dicts
    assert [*asked.run(given)][-1][-1]["content"] == "a"
    assert asyncio.run(asked.arun(given))[-1]["content"] == "a"
    assert model.ask(given).text == "a"
    assert model.ask(given).text == "a"
    assert asyncio.run(model.acomplete(given)).get_content() == "a"
    assert [request.messages for request in model.requests] == [(Message("user", "q"),)] * 9


def test_a_result_becomes_plain_json() -> None:
    result = agent(calls(("look_up", {"town": "Bonn"})), answer("330000."), tools=[look_up]).ask("q")
    plain = json.loads(json.dumps(result.to_dict()))
    assert (plain["text"], plain["stop_reason"]) == ("330000.", "finished")
    assert plain["sources"] == [{"location": "towns.pdf"}, {"location": "https://a.test/b.html", "page": 3}]
    assert plain["messages"][-1] == {"role": "assistant", "content": "330000."}


def test_what_is_unknown_is_left_out_of_plain_json() -> None:
    class Silent(FnCallAgent):
        async def events(self, run: Run) -> AsyncIterator[Event]:
            yield RunFinished("finished", (), Usage())

    result = Silent(llm=ScriptedModel([])).ask("q")
    assert (result.finish_reason, result.cost) == (None, None)
    assert {"finish_reason", "cost"}.isdisjoint(result.to_dict().keys() | result.to_dict()["usage"].keys())
    assert agent(answer("a")).ask("q").to_dict()["finish_reason"] == "stop"


def test_what_is_empty_stays_in_plain_json() -> None:
    plain = agent(answer("")).ask("q").to_dict()
    empty = {"text": "", "sources": [], "citations": [], "warnings": []}
    assert {name: plain[name] for name in empty} == empty


def test_sources_of_any_plugin_are_read_and_what_is_not_one_is_left_out() -> None:
    assert sources_in({}) == sources_in({"sources": None}) == sources_in({"sources": "text"}) == []
    odd = ["a.txt", 3, {"page": 1}, {"location": "b.txt", "page": "x"}, {"location": "c.txt"}]
    assert sources_in({"sources": odd}) == [Source("a.txt"), Source("b.txt"), Source("c.txt")]


def test_sources_are_those_of_all_that_was_shown_each_once() -> None:
    class Knowing(FnCallAgent):
        async def events(self, run: Run) -> AsyncIterator[Event]:
            yield PluginEvent("mine.found", {"sources": ["towns.pdf", "map.png"]})
            async for event in super().events(run):
                yield event

    asked = Knowing([look_up], ScriptedModel([calls(("look_up", {"town": "Bonn"})), answer("a")]))
    assert [source.location for source in asked.ask("q").sources] == ["towns.pdf", "map.png", "https://a.test/b.html"]


# --- data ---


def test_the_answer_is_data_where_data_is_asked_for() -> None:
    asked = agent(calls(("look_up", {"town": "Bonn"})), answer(BONN), tools=[look_up])
    result: RunResult[City] = asked.ask("Which town?", output=City)
    assert result.output == City(name="Bonn", people=330000)
    assert json.loads(result.text) == result.output.model_dump()


def test_an_answer_that_does_not_fit_is_sent_back_with_the_reasons() -> None:
    model = ScriptedModel([answer(HALF), answer(BONN)])
    asked = FnCallAgent([look_up], model)
    stream = asked.stream("Which town?", output=City)
    retries = [event for event in stream if isinstance(event, RetryScheduled)]
    assert ["people" in retry.error for retry in retries] == [True]
    result = stream.result
    assert result.output.people == 330000
    assert [message.role for message in result.messages] == ["assistant", "user", "assistant"]
    assert "people" in result.messages[1].get_text_content()
    assert result.usage.total_tokens == 4
    assert model.requests[1].messages[-3:] == result.history[:3]


def test_a_json_schema_gives_plain_values() -> None:
    schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    assert agent(answer(HALF)).ask("q", output=schema).output == {"name": "Bonn"}
    assert agent(answer("[1, 2]")).ask("q", output=list[int]).output == [1, 2]


def test_no_answer_that_fits_is_an_error_with_the_last_one_and_what_all_cost() -> None:
    asked = agent(*[answer(HALF)] * 5)
    with pytest.raises(InvalidAnswerError, match="people") as caught:
        asked.ask("q", output=City, attempts=2)
    assert caught.value.partial_text == HALF
    assert caught.value.usage == Usage(prompt_tokens=2, completion_tokens=2)


def test_answers_that_do_not_fit_count_against_the_limits_of_the_run() -> None:
    model = ScriptedModel([answer(HALF)] * 5)
    result = FnCallAgent(llm=model, limits={"turns": 2}).ask("q", output=City, attempts=4)
    assert (result.stop_reason, len(model.requests)) == ("turn_limit", 2)
    with pytest.raises(InvalidAnswerError, match="turn_limit"):
        _ = result.output


def test_a_run_that_pauses_on_the_way_has_no_data_yet() -> None:
    asked = agent(calls(("pay", {"amount": 3})), answer(BONN), tools=[pay])
    paused = asked.ask("q", output=City)
    with pytest.raises(InvalidAnswerError, match="approval_needed"):
        _ = paused.output
    done = asked.ask([], history=paused.history, resume=True, approve=lambda _call, _context: True, output=City)
    assert done.output.name == "Bonn"


def test_a_server_holds_an_agent_to_the_schema_where_it_can_do_so_beside_tools() -> None:
    for tools, facts, way in (
        ((), ModelFacts(json_schema=True), "native"),
        ((look_up,), ModelFacts(json_schema=True, schema_with_tools=True), "native"),
        ((look_up,), ModelFacts(json_schema=True), "tool"),
        ((), ModelFacts(), "tool"),
        ((look_up,), ModelFacts(native_tools=False), "prompt"),
    ):
        model = ScriptedModel([answer(BONN)], facts=facts)
        assert FnCallAgent(tools, model).ask("q", output=City).way == way
        request = model.requests[0]
        offered = [function["name"] for function in request.functions]
        assert (request.config.response_format is not None) is (way == "native")
        assert ("answer" in offered) is (way == "tool")
        assert ("people" in request.messages[0].get_text_content()) is (way == "prompt")


def test_what_cannot_be_data_is_refused_before_anything_is_asked() -> None:
    model = ScriptedModel([answer("a")])
    with pytest.raises(ConfigError, match="JSON"):
        BasicAgent(llm=model).ask("q", output=Odd)
    with pytest.raises(ConfigError, match="attempts"):
        BasicAgent(llm=model).ask("q", output=City, attempts=0)
    assert model.requests == []


def test_an_agent_in_qwen_agents_way_gives_data_too() -> None:
    class Old(Agent):
        answers = iter([HALF, BONN])

        def _run(self, messages: list[Message], lang: str = "en", **_: Any) -> Iterator[list[Message]]:
            yield [Message("assistant", next(self.answers))]

    assert Old().ask("q", output=City).output.people == 330000


# --- streaming ---


def test_events_are_read_with_async_for_and_the_result_is_there_at_the_end() -> None:
    async def read() -> None:
        stream = agent(answer("Hello there.")).stream("Hi")
        with pytest.raises(RuntimeError, match="read all events first"):
            _ = stream.result
        text = "".join([event.text async for event in stream if isinstance(event, TextDelta)])
        assert text == stream.result.text == "Hello there."
        with pytest.raises(RuntimeError, match="once"):
            aiter(stream)

    asyncio.run(read())


def test_a_stream_that_is_left_early_ends_the_run() -> None:
    async def read() -> None:
        closed = []

        class Watching(BasicAgent):
            async def events(self, run: Run) -> AsyncIterator[Event]:
                try:
                    async for event in super().events(run):
                        yield event
                finally:
                    closed.append(run.id)

        async with Watching(llm=ScriptedModel([answer("a b c d e f")])).stream("q") as stream:
            async for event in stream:
                if isinstance(event, TextDelta):
                    break
        assert len(closed) == 1

    asyncio.run(read())


def test_a_stream_that_nobody_reads_runs_nothing() -> None:
    async def read() -> None:
        model = ScriptedModel([answer("a")])
        async with BasicAgent(llm=model).stream("q"):
            pass
        assert model.requests == []

    asyncio.run(read())


def test_a_plain_for_reads_it_where_no_event_loop_runs() -> None:
    stream = agent(answer("Hello.")).stream("Hi")
    kinds = [type(event) for event in stream]
    assert (kinds[-1], ModelFinished in kinds, stream.result.text) == (RunFinished, True, "Hello.")


# --- models ---


def test_a_model_is_asked_in_the_same_way() -> None:
    model = ScriptedModel([answer("Bonn."), answer(HALF), answer(BONN)])
    first = model.ask("Which town?")
    assert (first.text, first.output, first.stop_reason, first.finish_reason) == ("Bonn.", "Bonn.", "finished", "stop")
    second = model.ask("As data.", history=first.history, output=City)
    assert second.output == City(name="Bonn", people=330000)
    assert [message.content for message in model.requests[1].messages][:3] == ["Which town?", "Bonn.", "As data."]
    assert second.usage.total_tokens == 4
    assert asyncio.run(ScriptedModel([answer("")]).aask("q")).stop_reason == "empty_reply"


# --- what a program has for its own tools ---


@dataclass(frozen=True)
class User:
    name: str


def test_deps_reach_the_tools_of_that_run_and_no_others() -> None:
    @tool
    def who(context: ToolContext[User]) -> str:
        """Say who asks."""
        return context.deps.name

    @tool
    def nobody(context: ToolContext | None = None) -> str:
        """Say who asks."""
        assert context is not None
        return repr(context.deps)

    asked = agent(*[calls(("who", {}), ("nobody", {})), answer("a")], tools=[who, nobody])
    results = [m.content for m in asked.ask("q", deps=User("Anna")).messages if m.role == "function"]
    assert results == ["Anna", "User(name='Anna')"]
    alone = agent(calls(("nobody", {})), answer("a"), tools=[nobody]).ask("q")
    assert alone.messages[1].content == "None"


def test_an_option_that_the_kind_does_not_have_is_an_error_that_names_the_nearest() -> None:
    with pytest.raises(ConfigError, match="attempts"):
        create_agent("basic", llm=ScriptedModel([answer("a")])).ask("q", attemps=2)  # type: ignore[call-overload]
