"""The tools of a set that changes are wrapped again after each change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from jackfield import FnCallAgent, tool
from jackfield.testing import ScriptedModel, answer, calls
from jackfield.tools import BaseTool, ToolChanges, ToolContext, ToolEntry, Toolset


class Changing(Toolset):
    name = "changing"

    def __init__(self, *, is_fixed: bool) -> None:
        super().__init__()
        self.is_fixed = is_fixed
        self.changes = ToolChanges()

    def current(self) -> list[BaseTool]:
        assert self.changes is not None
        work = tool(name=f"work_{self.changes.version}", description="Work.", cacheable=True, read_only=True)
        return [work(lambda: "done")]

    def fixed_tools(self) -> Sequence[ToolEntry] | None:
        return self.current() if self.is_fixed else None

    async def tools_of_run(self, context: ToolContext[Any]) -> Sequence[ToolEntry]:
        return self.current()


@pytest.mark.parametrize("is_fixed", [True, False])
@pytest.mark.parametrize("name", ["cached_results", "retried_calls"])
def test_a_wrapped_set_offers_the_tools_of_its_latest_change(name: str, is_fixed: bool) -> None:
    toolset = Changing(is_fixed=is_fixed)
    assert toolset.changes is not None

    def report(_: Any) -> Any:
        toolset.changes.report()  # type: ignore[union-attr]
        return answer("done")

    model = ScriptedModel(report, processors=[])
    agent = FnCallAgent([{"name": name, "tools": [toolset]}], model)
    for _ in range(3):
        agent.ask("Go.")
    shown = [[function["name"] for function in request.functions] for request in model.requests]
    assert shown == [["work_0"], ["work_1"], ["work_2"]]


@pytest.mark.parametrize("is_fixed", [True, False])
def test_a_wrapped_set_changes_within_a_run(is_fixed: bool) -> None:
    toolset = Changing(is_fixed=is_fixed)

    def change() -> str:
        """Change the tools."""
        assert toolset.changes is not None
        toolset.changes.report()
        return "changed"

    model = ScriptedModel([calls(("change", {})), answer("done")], processors=[])
    FnCallAgent([change, {"name": "cached_results", "tools": [toolset]}], model).ask("Go.")
    shown = [[function["name"] for function in request.functions] for request in model.requests]
    assert shown == [["change", "work_0"], ["change", "work_1"]]
