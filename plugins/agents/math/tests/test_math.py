"""Code in answers: what is run, what the model reads, and where it ends."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest

from jackfield import FnCallAgent, tool
from jackfield.agents import CancelToken
from jackfield.errors import ConfigError
from jackfield.events import ModelEvent
from jackfield.messages import FUNCTION, FunctionCall
from jackfield.request import ChatRequest
from jackfield.testing import ScriptedModel, answer, calls
from jackfield_math import TIRMathAgent
from jackfield_testkit.records import MemoryStore, interrupted

BLOCK = "I compute.\n```python\nprint(1)\n```\n"


@tool(name="run_code", description="Runs code.")
def run_code(code: str) -> str:
    return f"ran {code.strip()}"


def solver(*texts: str, tools: Any = None, **options: Any) -> tuple[TIRMathAgent, ScriptedModel]:
    model = ScriptedModel([answer(text) for text in texts])
    return TIRMathAgent(tools or [run_code], model, **options), model


def results(messages: Any) -> list[str]:
    return [message.get_text_content() for message in messages if message.role == FUNCTION]


def test_code_is_run_and_the_model_reads_its_output() -> None:
    agent, model = solver(BLOCK, "It is \\boxed{1}.")
    result = agent.ask("How much?")
    assert (result.text, result.stop_reason) == ("It is \\boxed{1}.", "finished")
    assert results(result.messages) == ["ran print(1)"]
    assert [message.role for message in result.messages] == ["assistant", "assistant", "function", "assistant"]
    assert "step by step" in model.requests[0].messages[0].get_text_content()
    assert model.requests[1].messages[-1].content == "```output\nran print(1)\n```"
    assert model.requests[1].messages[-2].content == BLOCK
    assert "```output" in model.requests[0].config.stop
    assert result.usage.total_tokens == 4


def test_the_fences_of_a_tool_do_not_end_the_block_of_its_output() -> None:
    fenced = tool(name="fenced", description="Runs code.")(write_fences)
    agent, model = solver(BLOCK, "It is \\boxed{1}.", tools=[fenced])
    agent.ask("How much?")
    assert model.requests[1].messages[-1].content == "```output\n1\n\nerror:\n\nnone\n```"


def write_fences(code: str) -> str:
    return f"stdout:\n\n```\n{len(code.split())}\n  ```\n\nerror:\n\n```\nnone\n```"


@pytest.mark.parametrize(
    ("text", "ran"),
    [
        ("```python\na\n```\nand\n```py\nb\n```", ["ran b"]),
        ("```python\na\n```\n```python\nunfinished", ["ran a"]),
        ("```python\na\n```\n```output\n5\n```\nIt is \\boxed{5}.", ["ran a"]),
        ("```python\na\n```\nso \\boxed{1}", []),
        ("```python\na\n```\nso \\boxed{1}\n```python\nb\n```", ["ran b"]),
        ("Is it \\boxed{1}?\n```python\na\n```", ["ran a"]),
        ("```python \na\n``` \t\nso", ["ran a"]),
        ('```python\na = """\n  ```\n"""\n```', ['ran a = """\n  ```\n"""']),
        ("Use ```python\na\n```", []),
        ("```\na\n```", []),
        ("It is 5.", []),
    ],
)
def test_the_last_whole_block_counts(text: str, ran: list[str]) -> None:
    agent, _ = solver(text, "Done.")
    assert results(agent.ask("How much?").messages) == ran


def test_it_ends_after_ten_answers_and_at_other_limits() -> None:
    agent, model = solver(*[BLOCK] * 20)
    assert (agent.ask("How much?").stop_reason, len(model.requests)) == ("turn_limit", 10)
    agent, model = solver(*[BLOCK] * 20, limits={"tool_calls": 2})
    assert (agent.ask("How much?").stop_reason, len(model.requests)) == ("tool_call_limit", 3)


def test_code_that_needs_approval_waits_for_it_in_another_run() -> None:
    @tool(name="run_code", description="Runs code.", needs_approval=True)
    def guarded(code: str) -> str:
        return f"ran {code}"

    agent, _ = solver(BLOCK, "Done.", tools=[guarded])
    paused = agent.ask("How much?")
    (call_id,) = paused.waiting
    assert paused.stop_reason == "approval_needed"
    assert agent.ask([], history=paused.history).stop_reason == "approval_needed"
    result = agent.ask([], history=paused.history, resume={call_id: True})
    assert (result.text, results(result.messages)) == ("Done.", ["ran print(1)\n"])
    asked: list[str] = []
    agent, _ = solver(BLOCK, "Done.", tools=[guarded], approve=lambda call, _: not asked.append(call.name))
    assert results(agent.ask("How much?").messages) == ["ran print(1)\n"]
    assert asked == ["run_code"]
    agent, _ = solver(BLOCK, "Done.", tools=[guarded], approve=lambda call, _: False)
    assert results(agent.ask("How much?", approve=lambda call, _: True).messages) == ["ran print(1)\n"], (
        "the run's wins"
    )


def test_code_that_an_agent_above_allows_only_after_asking_is_asked_about() -> None:
    asked: list[str] = []
    agent, _ = solver(BLOCK, "I cannot.", name="solver", description="Computes.")
    boss = ScriptedModel([calls(("solver", {"request": "How much?"})), answer("No.")])

    def refuse(call: FunctionCall, _: object) -> bool:
        asked.append(call.name)
        return False

    rules: Any = {"allow": ["solver"], "by": refuse}
    assert FnCallAgent([agent.as_tool()], boss, approve=rules).ask("How much?").text == "No."
    assert asked == ["run_code"]


@pytest.mark.parametrize("read_only", [True, False])
def test_an_interrupted_run_goes_on_and_runs_no_code_twice_without_asking(read_only: bool) -> None:
    ran: list[str] = []

    @tool(name="run_code", description="Runs code.", read_only=read_only)
    def counting(code: str) -> str:
        ran.append(code)
        return "1"

    def script(request: ChatRequest) -> list[ModelEvent]:
        return answer("It is \\boxed{1}." if "```output" in request.messages[-1].get_text_content() else BLOCK)

    def fresh(store: MemoryStore) -> TIRMathAgent:
        return TIRMathAgent([counting], ScriptedModel(script), store=store)

    for store in interrupted(lambda store: fresh(store).ask("How much?")):
        for run_id in store.kept:
            ran.clear()
            is_done = bool(store.events("ToolFinished"))
            is_under_way = bool(store.events("TurnFinished")) and not is_done
            resumed = fresh(store).resume(run_id)
            if is_under_way and not read_only:
                assert (resumed.stop_reason, ran) == ("approval_needed", [])
                continue
            assert (resumed.text, results(resumed.messages)) == ("It is \\boxed{1}.", ["1"])
            assert len(ran) == (0 if is_done else 1)


@pytest.mark.parametrize("reason", ["cancelled", "time_limit"])
def test_a_run_that_is_stopped_leaves_no_call_open(reason: str) -> None:
    cancel = CancelToken()

    @tool(name="run_code", description="Runs code.")
    async def endless(code: str) -> str:
        if reason == "cancelled":
            cancel.cancel()
        await asyncio.Event().wait()
        raise AssertionError(code)

    limits = {"seconds": 0.5} if reason == "time_limit" else {}
    agent, _ = solver(BLOCK, "Done.", tools=[endless], limits=limits)
    result = agent.ask("How much?", cancel=cancel)
    assert result.stop_reason == reason
    told = results(result.messages)
    assert len(told) == sum(bool(message.function_call) for message in result.messages)
    assert reason == "time_limit" or len(told) == 1, "a time limit may be reached before the call"
    assert "AssertionError" not in str(told), "it ends during the call"


def test_one_tool_is_needed() -> None:
    for tools in ([], [run_code, tool(name="other", description="Runs code.")(write_fences)]):
        with pytest.raises(ConfigError, match=f"exactly one tool, one that runs code; got {len(tools)} tools"):
            TIRMathAgent(tools, ScriptedModel([]))


def test_its_messages_have_its_name_and_its_own_system_message_comes_first() -> None:
    agent, model = solver(BLOCK, "It is \\boxed{1}.", name="solver", system_message="Be brief.")
    result = agent.ask("How much?")
    assert [message.name for message in result.messages if message.role != FUNCTION] == ["solver"] * 3
    assert model.requests[0].messages[0].get_text_content().startswith("Be brief.\n\n")


def test_stop_words_of_the_caller_hold_besides_its_own_and_calls_have_ids_of_their_own() -> None:
    agent, model = solver(BLOCK, BLOCK, "It is \\boxed{1}.", prompts={"solve": "Compute."})
    result = agent.ask("How much?", config={"temperature": 0.5, "stop": ["END"]})
    assert all({"END", "```output"} <= set(request.config.stop) for request in model.requests)
    assert [request.config.temperature for request in model.requests] == [0.5] * 3
    assert model.requests[0].messages[0].content == "Compute."
    ids = [message.function_id for message in result.messages if message.function_call]
    assert len(set(ids)) == 2
    assert ids == [message.function_id for message in result.messages if message.role == FUNCTION]
    again, _ = solver(BLOCK, "Done.")
    other = again.ask("How much?", history=result.history)
    assert len({*ids, *(message.function_id for message in other.messages if message.function_call)}) == 3


@pytest.mark.parametrize(("limit", "ran"), [(0, 0), (1, 1), (3, 3)])
def test_a_limit_of_calls_allows_that_many(limit: int, ran: int) -> None:
    agent, _ = solver(*[BLOCK] * 9, limits={"tool_calls": limit})
    result = agent.ask("How much?")
    assert (result.stop_reason, len(results(result.messages))) == ("tool_call_limit", ran)


def test_an_answer_in_chinese_gets_its_prompt_in_chinese() -> None:
    agent, model = solver("\\boxed{1}")
    agent.run_nonstream("How much?", lang="zh")
    assert re.search("[\u4e00-\u9fff]", model.requests[0].messages[0].get_text_content())


def test_a_text_after_a_block_is_an_answer_only_with_a_result() -> None:
    agent, model = solver("```python\na\n```\nNow I wait.", "It is \\boxed{1}.")
    assert results(agent.ask("How much?").messages) == ["ran a"]
    assert len(model.requests) == 2
