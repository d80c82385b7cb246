"""Contexts of calls: one outside of a run, one with deps, and which tools need deps."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, Optional, TypeVar

import pytest

from jackfield import ToolContext
from jackfield.tools._base import CallingRun
from jackfield.tools._deps import needed_deps
from tests.support.tools import Looks


def test_a_context_outside_of_a_run_refuses_what_it_is_asked(caplog: pytest.LogCaptureFixture) -> None:
    context, run = ToolContext[Any](), CallingRun()
    assert asyncio.run(context.ask({"a": 1})) is False  # type: ignore[arg-type]
    with caplog.at_level("DEBUG", "jackfield"):
        context.report("reading")
    assert [record.getMessage() for record in caplog.records] == ["reading"]
    assert (context.run, context.deps, context.files, context.fills_forms) == (None, None, (), False)
    assert (run.of_call("c"), run.asker(), asyncio.run(run.before_call())) == (run, None, "")
    with run.surround_call("c", "t"):
        pass


class User:
    """Someone who runs an agent."""


def test_a_context_may_be_made_with_the_type_of_its_deps() -> None:
    user = User()
    assert ToolContext[User](deps=user).deps is user


Anyone = TypeVar("Anyone")
NEEDS: list[tuple[Any, dict[str, str]]] = [
    (ToolContext[User], {"look": "User"}),
    (ToolContext[int], {"look": "int"}),
    (ToolContext[list[int]], {"look": "list"}),
    (ToolContext[User] | None, {"look": "User"}),
    (Optional[ToolContext[User]], {"look": "User"}),  # noqa: UP045
    (ToolContext[Annotated[User, "x"]], {"look": "Annotated[User]"}),
    (ToolContext, {}),
    (ToolContext[Any], {}),
    (ToolContext[object], {}),
    (ToolContext[None], {}),
    (ToolContext[User | None], {}),
    (ToolContext[Optional[User]], {}),  # noqa: UP045
    (ToolContext[Annotated[User | None, "x"]], {}),
    (ToolContext[Anyone], {}),  # type: ignore[valid-type]
    (int, {}),
]


@pytest.mark.parametrize(("hint", "needs"), NEEDS, ids=[str(hint) for hint, _ in NEEDS])
def test_a_tool_needs_deps_if_its_context_has_a_type_that_is_not_optional(hint: Any, needs: dict[str, str]) -> None:
    class Other(Looks):
        def call(self, params: Any, *, context: Any = None) -> str:
            return ""

    Other.call.__annotations__.update(context=hint)
    found = needed_deps([Other()])
    assert found.keys() == needs.keys()
    if "Annotated" not in str(needs):
        assert found == needs
