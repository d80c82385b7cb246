"""The `deps` of a run: checked by type checkers, and before a run whose tools need them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Optional

import pytest

from jackfield import FnCallAgent, tool
from jackfield.errors import ConfigError
from jackfield.secrets import secrets_of
from jackfield.testing import ScriptedModel, answer, calls
from jackfield.tools import BaseTool, ToolContext


@dataclass
class User:
    name: str


@tool
def who(context: ToolContext[User]) -> str:
    """Say who asks."""
    return context.deps.name


@tool
def maybe(context: ToolContext[User | None]) -> str:
    """Say who asks, if it is known."""
    return context.deps.name if context.deps else "nobody"


@tool
def anything(context: ToolContext) -> str:
    """Say what there is."""
    return str(context.deps)


@tool
def any_deps(context: ToolContext[Any] | None = None) -> str:
    """Say what there is."""
    return str(context and context.deps)


class Whose(BaseTool):
    name = "whose"
    description = "Say who asks."

    def call(self, params: str | Mapping[str, Any], *, context: ToolContext[User] | None = None) -> str:
        return "" if context is None else context.deps.name


def agent(*tools: Any, steps: Any = (), **options: Any) -> FnCallAgent[User]:
    return FnCallAgent[User](tools, ScriptedModel([*steps, answer("Done.")]), name="helper", **options)


@tool
def who_or_nobody(context: Optional[ToolContext[User]] = None) -> str:  # noqa: UP045
    """Say who asks."""
    return "" if context is None else context.deps.name


@tool
def nobody_or_who(context: ToolContext[User] | None = None) -> str:
    """Say who asks."""
    return "" if context is None else context.deps.name


@tool
def noted(context: ToolContext[Annotated[User | None, "whoever asks"]]) -> str:
    """Say who asks, if it is known."""
    return context.deps.name if context.deps else "nobody"


@pytest.mark.parametrize("needy", [who, Whose(), who_or_nobody, nobody_or_who], ids=lambda made: made.name)
def test_forgotten_deps_are_an_error_before_the_run(needy: BaseTool) -> None:
    asked = agent(maybe, needy)
    with pytest.raises(ConfigError, match=rf"'helper' needs deps: its tool '{needy.name}' takes a ToolContext\[User\]"):
        asked.ask("Hi")
    assert isinstance(asked.llm, ScriptedModel)
    assert asked.llm.requests == []
    assert asked.ask("Hi", deps=User("Anna")).text == "Done."


@pytest.mark.parametrize("empty", [0, "", {}, []], ids=repr)
def test_empty_deps_are_deps(empty: Any) -> None:
    @tool
    def show(context: ToolContext[dict[str, int]]) -> str:
        """Show what there is."""
        return repr(context.deps)

    result = agent(show, steps=[calls(("show", {}))]).ask("Hi", deps=empty)
    assert [message.content for message in result.messages if message.role == "function"] == [repr(empty)]


def test_the_agents_that_a_run_may_reach_need_deps_too() -> None:
    clerk = FnCallAgent([who], ScriptedModel([]), name="clerk", description="Knows who.")
    for boss in (agent(clerk.as_tool()), agent(handoffs=[clerk])):
        with pytest.raises(ConfigError, match="agent 'clerk' needs deps: its tool 'who'"):
            boss.ask("Hi")


def test_tools_that_can_do_without_deps_need_none() -> None:
    steps = [calls(("maybe", {}), ("noted", {}), ("anything", {}), ("any_deps", {}))]
    result = agent(maybe, noted, anything, any_deps, steps=steps).ask("Hi")
    told = [message.content for message in result.messages if message.role == "function"]
    assert told == ["nobody", "nobody", "None", "None"]


def test_a_type_that_only_type_checkers_know_is_no_obstacle() -> None:
    def odd(context: ToolContext[User]) -> str:
        """Say who asks."""
        return context.deps.name

    odd_tool = tool(odd)
    odd.__annotations__["context"] = "ToolContext[Missing]"
    assert agent(odd_tool).ask("Hi").text == "Done."


def test_an_agent_keeps_no_trace_of_its_type_argument() -> None:
    class Own(FnCallAgent[User]):
        pass

    for made in (agent(), Own(llm=ScriptedModel([answer("Done.")]))):
        assert "__orig_class__" not in vars(made)
        secrets_of(made)
        assert made.ask("Hi").text == "Done."
