"""A result that depends on the caller is never given to another caller."""

from __future__ import annotations

import asyncio
import dataclasses
from pathlib import Path
from typing import Any

import pytest

from jackfield import BaseTool, FnCallAgent, ToolContext, tool
from jackfield.errors import ConfigError
from jackfield.events import RunEvent, ToolFinished
from jackfield.testing import ScriptedModel, answer, calls
from jackfield_tool_results.cached import CachedResults


def ask(entry: CachedResults, user: str | None) -> str:
    """The result of the call that an agent makes for a user."""
    model = ScriptedModel([calls(("balance", {"account": "main"})), answer("done")])

    async def collect() -> list[RunEvent]:
        return [event async for event in FnCallAgent([entry], model).astream("go", deps=user)]

    [done] = [event.event for event in asyncio.run(collect()) if isinstance(event.event, ToolFinished)]
    return str(done.message.content)


def cached(read: Any, **settings: Any) -> CachedResults:
    @tool(cacheable=True)
    def balance(account: str, context: ToolContext) -> str:
        """Tell a balance."""
        return f"{account} of {read(context)}"

    return CachedResults(tools=[balance], **settings)


READS = {
    "at once": lambda context: context.deps,
    "by getattr": lambda context: getattr(context, "deps", None),
    "in a copy": lambda context: dataclasses.replace(context, lang="en").deps,
    "twice": lambda context: (context.deps, context.deps)[1],
    "only if there are any": lambda context: context.deps or "nobody",
}


@pytest.mark.parametrize("read", READS.values(), ids=READS)
@pytest.mark.parametrize("in_file", [False, True])
def test_a_tool_that_reads_deps_is_called_for_each_caller(
    read: Any, in_file: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    entry = cached(read, **({"path": str(tmp_path / "results")} if in_file else {}))
    users = ["ada", None, "bob", "ada"]
    assert [ask(entry, user) for user in users] == [f"main of {read(ToolContext(deps=user))}" for user in users]
    warnings = [record.getMessage() for record in caplog.records if "not cached" in record.getMessage()]
    assert len(warnings) == 1
    assert "`key`" in warnings[0]


def test_a_caller_without_deps_is_a_caller_as_well() -> None:
    entry = cached(lambda context: context.deps)
    assert [ask(entry, user) for user in (None, "ada", None)] == ["main of None", "main of ada", "main of None"]


def test_a_tool_that_does_not_read_deps_is_cached_whoever_asks() -> None:
    called: list[str] = []
    entry = cached(lambda context: called.append(context.lang))
    assert ask(entry, "ada") == ask(entry, "bob") == "main of None"
    assert len(called) == 1


def test_with_a_key_each_caller_has_results_of_its_own() -> None:
    called: list[str] = []

    def read(context: ToolContext) -> str:
        called.append(str(context.deps))
        return str(context.deps)

    entry = cached(read, key=lambda context: context.deps)
    assert [ask(entry, user) for user in ("ada", "bob", "ada", "bob")] == [f"main of {u}" for u in ("ada", "bob") * 2]
    assert called == ["ada", "bob"]


def test_with_a_scope_the_results_are_for_all_callers() -> None:
    entry = cached(lambda context: context.deps, scope="team")
    assert [ask(entry, user) for user in ("ada", "bob")] == ["main of ada"] * 2


def test_another_process_finds_no_result_of_a_tool_that_reads_deps(tmp_path: Path) -> None:
    @tool(name="balance", cacheable=True)
    def balance(account: str, context: ToolContext) -> str:
        """Tell a balance."""
        return f"{account} of {context.deps}"

    # A second toolset does not know yet that the tool reads deps, as after a restart.
    entries = [CachedResults(tools=[balance], path=str(tmp_path / "results")) for _ in range(2)]
    assert [ask(entry, user) for entry, user in zip(entries, ("ada", "bob"), strict=True)] == [
        "main of ada",
        "main of bob",
    ]


@pytest.mark.parametrize("named", [None, "", 7])
def test_a_key_that_names_nobody_is_an_error(named: Any) -> None:
    entry = cached(lambda context: context.deps, key=lambda _: named)
    assert "main of" not in ask(entry, "ada")
    wrapped = entry.fixed_tools()[0]
    assert isinstance(wrapped, BaseTool)
    with pytest.raises(ConfigError, match="`key` must return a string"):
        asyncio.run(_called(wrapped))


async def _called(tool: BaseTool) -> object:
    return await tool.call({"account": "main"}, context=ToolContext(deps="ada"))  # type: ignore[misc]
