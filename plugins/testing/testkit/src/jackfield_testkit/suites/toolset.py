"""Contract tests for toolsets."""

# ruff: noqa: S101 - these are tests: they assert

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import pytest

from jackfield import sync
from jackfield.agents import FnCallAgent
from jackfield.plugins import ToolsetSpec
from jackfield.testing import ScriptedModel, answer
from jackfield.tools import FunctionSchema, Toolset, check_tool_name, check_tool_schema
from jackfield_testkit.effects import undeclared, watching
from jackfield_testkit.installed import plain_host
from jackfield_testkit.suites.base import Suite

T = TypeVar("T")
_CLOSE_IT = "resources must be closed with the run: open them with `context.resources.get`, and clean up in `finally`"


class ToolsetSuite(Suite):
    """Contract of toolsets provided by plugins.

    ```python
    class TestAcme(ToolsetSuite):
        component = "jackfield-acme/clocks"
        tools = ("now", "today")
    ```

    Attributes:
        component: The toolset to test, as `distribution/name`, or only the name if it is unique.
        config: The toolset's settings.
        tools: The names of tools that must be available in a run.
        deps: Dependencies that a run passes to its tools.
        patience_s: How long to wait for something that should happen immediately, in seconds.
    """

    component: ClassVar[str]
    config: ClassVar[Mapping[str, object]] = {}
    tools: ClassVar[Sequence[str]] = ()
    deps: ClassVar[object] = None
    patience_s: ClassVar[float] = 30.0

    @pytest.fixture(autouse=True)
    def _in_a_folder_of_its_own(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)

    def make_agent(self) -> tuple[FnCallAgent, ScriptedModel]:
        """Create an agent with the toolset, and its model. Override this if yours needs more than `config`."""
        model = ScriptedModel(lambda _: answer("Done."), processors=[])
        return FnCallAgent([{"name": self.component, **self.config}], model, host=plain_host()), model

    def test_its_descriptor_names_a_set(self) -> None:
        host = plain_host()
        spec = host.spec("tool", self.component, ToolsetSpec)
        assert bool(spec.tools) != bool(spec.target), "a toolset must have either `tools` or a `target`"

    def test_making_an_agent_with_it_reaches_nothing(self) -> None:
        self.make_agent()  # bytecode of its imports may be written next to it, once
        with watching() as effects:
            self.make_agent()
        assert undeclared(effects, frozenset()) == [], (
            "the toolset must have no effects before a run calls `tools_of_run`"
        )

    def test_a_model_can_be_shown_its_tools(self) -> None:
        assert self.tools, "no tools: set tools = ('the name of a tool', …)"
        shown = self._run(self._tools_of_run)
        names = [function["name"] for function in shown]
        assert set(self.tools) <= set(names), f"it has {names}"
        for function in shown:
            check_tool_name(function["name"])
            check_tool_schema(function["name"], function["parameters"])
            assert str(function["description"]).strip(), f"{function['name']} has no description"
        assert json.loads(json.dumps(shown)) == list(shown), "a schema changes in a round trip through JSON"

    def test_runs_one_after_the_other_and_at_the_same_time_have_the_same_tools(self) -> None:
        async def several() -> list[Sequence[FunctionSchema]]:
            agent, model = self.make_agent()
            first = await self._shown(agent, model)
            return [first, *await asyncio.gather(*(self._shown(agent, model) for _ in range(3)))]

        first, *others = self._run(several)
        assert others == [first] * 3

    def test_asking_for_its_tools_is_no_change(self) -> None:
        async def versions() -> list[list[int]]:
            agent, model = self.make_agent()
            seen: list[list[int]] = []
            for _ in range(3):
                await self._shown(agent, model)
                origins = [entry.origin[0] for entry in agent.function_map.values() if entry.origin is not None]
                sets = [one for one in (*agent.toolsets, *origins) if isinstance(one, Toolset)]
                seen.append([one.changes.version for one in sets if one.changes is not None])
            return seen

        _, second, third = self._run(versions)
        assert second == third, (
            "call `changes.report()` only if the tools changed, because the next turn then requests them again"
        )

    def test_a_run_leaves_no_task_behind(self) -> None:
        assert self._run(lambda: self._left_by(self._tools_of_run)) == [], _CLOSE_IT

    @pytest.mark.parametrize("steps", [1, 3, 5, 10, 50])
    def test_a_run_that_is_cancelled_leaves_no_task_behind(self, steps: int) -> None:
        async def cancelled() -> None:
            task = asyncio.ensure_future(self._tools_of_run())
            for _ in range(steps):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])

        assert self._run(lambda: self._left_by(cancelled)) == [], _CLOSE_IT

    async def _left_by(self, work: Callable[[], Awaitable[object]]) -> list[str]:
        """Return the tasks that are still running after some work."""
        before = asyncio.all_tasks()
        await work()
        rest = asyncio.all_tasks() - before
        if rest:  # cancelled tasks may need some steps to end
            _, rest = await asyncio.wait(rest, timeout=self.patience_s)
        return [str(task.get_coro()) for task in rest]

    async def _tools_of_run(self) -> Sequence[FunctionSchema]:
        return await self._shown(*self.make_agent())

    async def _shown(self, agent: FnCallAgent, model: ScriptedModel) -> Sequence[FunctionSchema]:
        await agent.aask("Go.", deps=self.deps)
        return model.requests[-1].functions

    def _run(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        return sync.run(_in_time(work(), self.patience_s * 2))


async def _in_time(work: Coroutine[Any, Any, T], seconds: float) -> T:
    async with asyncio.timeout(seconds):
        return await work
