"""An option that nobody reads is an error, and why a run ended is in what it gives back."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from jackfield import Agent, BasicAgent, FnCallAgent, tool
from jackfield.errors import ConfigError
from jackfield.messages import Message
from jackfield.testing import ScriptedModel, answer, calls

ASKED: list[dict[str, Any]] = [{"role": "user", "content": "Hi"}]


@tool
def double(number: int) -> int:
    """Double a number."""
    return 2 * number


# --- options of a run ---

RUNS: tuple[Callable[..., Any], ...] = (
    lambda agent, **options: agent.run(ASKED, **options),
    lambda agent, **options: agent.run_nonstream(ASKED, **options),
    lambda agent, **options: asyncio.run(agent.arun(ASKED, **options)),
)


@pytest.mark.parametrize("run", RUNS, ids=["run", "run_nonstream", "arun"])
@pytest.mark.parametrize("kind", [BasicAgent, FnCallAgent])
def test_an_option_of_a_run_that_nobody_reads_is_an_error_before_anything_is_asked(kind: Any, run: Any) -> None:
    model = ScriptedModel([answer("a")])
    with pytest.raises(ConfigError, match=r"have no option 'langg'; did you mean 'lang'\?"):
        run(kind(llm=model), langg="zh")
    assert model.requests == []


@pytest.mark.parametrize(
    ("option", "value", "advice"),
    [("resume", {"c0": True}, "approvals="), ("resume", True, "approvals="), ("run_id", "other", "first argument")],
    ids=["decisions", "resume", "run_id"],
)
@pytest.mark.parametrize("is_async", [False, True], ids=["resume", "aresume"])
def test_what_resume_sets_itself_is_no_option_of_it(is_async: bool, option: str, value: object, advice: str) -> None:
    agent = FnCallAgent(llm=ScriptedModel([]))
    options: Any = {option: value}
    with pytest.raises(ConfigError, match=f"no option '{option}'.*{advice}"):
        asyncio.run(agent.aresume("r", **options)) if is_async else agent.resume("r", **options)


class InQwensWay(Agent):
    def _run(self, messages: list[Message], lang: str = "en", **options: Any) -> Iterator[list[Message]]:
        yield [Message("assistant", f"{options}")]


class WithOneOption(Agent):
    def _run(self, messages: list[Message], lang: str = "en", mood: str = "") -> Iterator[list[Message]]:  # type: ignore[override]
        yield [Message("assistant", mood)]


def test_an_agent_that_writes_run_takes_its_own_parameters() -> None:
    assert InQwensWay().run_nonstream(ASKED, whatever=1)[0]["content"] == "{'whatever': 1}"
    assert WithOneOption().run_nonstream(ASKED, mood="good")[0]["content"] == "good"
    with pytest.raises(ConfigError, match=r"no option 'moood'; did you mean 'mood'"):
        WithOneOption().run_nonstream(ASKED, moood="good")


# --- one thing where several are wanted ---


@pytest.mark.parametrize("option", ["files", "function_list", "observers"])
@pytest.mark.parametrize("given", ["a.pdf", {"name": "a"}, Path("a.pdf"), 7], ids=repr)
def test_one_thing_in_place_of_a_list_is_not_taken_apart(option: str, given: Any) -> None:
    with pytest.raises(ConfigError, match=f"{option} must be a list of"):
        FnCallAgent(llm=ScriptedModel([]), **{option: given})


def test_a_batch_of_one_text_is_not_a_batch_of_letters() -> None:
    model = ScriptedModel([answer("a")] * 9)
    with pytest.raises(ConfigError, match="requests must be a list of questions"):
        model.batch("question")
    assert model.requests == []


# --- why a run ended ---


@pytest.mark.parametrize(
    ("script", "options", "reason"),
    [
        ([answer("a")], {}, "finished"),
        ([calls(("double", {"number": 1})), answer("a")], {"limits": {"turns": 1}}, "turn_limit"),
        ([calls(("double", {"number": 1})), answer("a")], {"limits": {"tool_calls": 0}}, "tool_call_limit"),
    ],
)
@pytest.mark.parametrize("as_dicts", [True, False])
def test_every_way_to_run_says_why_the_run_ended(script: Any, options: Any, reason: str, as_dicts: bool) -> None:
    asked: list[Any] = ASKED if as_dicts else [Message("user", "Hi")]

    def agent() -> FnCallAgent:
        return FnCallAgent([double], ScriptedModel(script), **options)

    whole = agent().run_nonstream(asked)
    waited = asyncio.run(agent().arun(asked))
    grown = list(agent().run(asked))
    assert whole.stop_reason == waited.stop_reason == grown[-1].stop_reason == reason
    assert {one.stop_reason for one in grown[:-1]} <= {None}
    assert whole.usage is not None
    assert isinstance(whole, list)
    assert whole == list(whole) == grown[-1]
    if as_dicts:
        assert json.loads(json.dumps(whole)) == whole


def test_a_paused_run_that_is_run_again_without_an_answer_pauses_again() -> None:
    @tool(needs_approval=True)
    def wipe() -> str:
        """Wipe."""
        raise AssertionError("nobody agreed")

    agent = FnCallAgent([wipe], ScriptedModel([calls(("wipe", {}))]))
    asked: list[Any] = [Message("user", "Hi")]
    paused = agent.run_nonstream(asked)
    assert paused.stop_reason == "approval_needed"
    again = agent.run_nonstream([*asked, *paused])
    assert again.stop_reason == "approval_needed"
    assert again == []
