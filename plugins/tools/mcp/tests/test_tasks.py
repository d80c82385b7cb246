"""Tools that a server lets be called as tasks only."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from mcp_types import Task

from jackfield import sync
from jackfield.errors import ToolServiceError, ToolTimeoutError
from jackfield.tools import ToolContext
from jackfield_mcp.tasks import _poll_interval_s
from jackfield_mcp.toolset import MCPServers

from .conftest import call, tools_of, until

SERVER = str(Path(__file__).parent / "task_server.py")


def make_servers(folder: Path, mode: str = "tasks", **settings: object) -> MCPServers:
    entry = {"command": sys.executable, "args": ["-E", "-S", SERVER, str(folder / "log"), mode], **settings}
    return MCPServers(mcpServers={"t": entry}, cache_folder=str(folder))


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[MCPServers]:
    with make_servers(tmp_path) as opened:
        yield opened


@pytest.mark.parametrize(
    ("name", "content"), [("quick", "result of quick"), ("slow", "result of slow"), ("at_once", "at once")]
)
def test_a_tool_that_is_a_task_gives_the_result_of_its_task(servers: MCPServers, name: str, content: str) -> None:
    reports: list[str] = []
    context: ToolContext = replace(ToolContext(), report=reports.append)
    assert call(servers, f"t-{name}", context).content == content
    assert reports == (["step 1", "step 2"] if name == "slow" else [])


def test_a_task_that_fails_is_an_error_with_its_reason(servers: MCPServers) -> None:
    with pytest.raises(ToolServiceError, match=r"^result of fails$"):
        call(servers, "t-fails")
    with pytest.raises(ToolServiceError, match=r"'t' rejected the call to 't-refused': no such thing"):
        call(servers, "t-refused")
    with pytest.raises(ToolServiceError, match=r"the result does not match the output schema"):
        call(servers, "t-lies")


def test_the_question_of_a_task_is_asked(servers: MCPServers) -> None:
    questions: list[Mapping[str, object]] = []

    async def approve(arguments: Mapping[str, object]) -> bool:
        questions.append(arguments)
        return True

    assert call(servers, "t-asks", replace(ToolContext(), ask=approve)).content == "accept"
    assert [question["server_asks"] for question in questions] == ["Sure?"]


def test_a_task_that_its_caller_leaves_is_cancelled_on_the_server(servers: MCPServers, tmp_path: Path) -> None:
    tool = tools_of(servers)["t-endless"]

    async def leave() -> None:
        calling = asyncio.ensure_future(tool.call({}, context=ToolContext()))
        await until(lambda: "tasks/get" in methods(tmp_path))
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calling

    sync.run(leave())
    assert methods(tmp_path).count("tasks/cancel") == 1


def test_a_task_that_takes_too_long_is_cancelled_on_the_server(tmp_path: Path) -> None:
    for seconds in (0.3, 1.2, 4.8):  # a busy machine may need a while to begin the task
        slow = make_servers(tmp_path, call_timeout_s=seconds)
        with slow, pytest.raises(ToolTimeoutError, match="'t' did not finish the call to 't-endless'"):
            call(slow, "t-endless")
        if "tasks/cancel" in methods(tmp_path):
            return
    pytest.fail("the task goes on")


def test_a_stored_tool_is_called_as_a_task(servers: MCPServers, tmp_path: Path) -> None:
    assert "t-quick" in tools_of(servers)
    with make_servers(tmp_path) as again:
        assert call(again, "t-quick").content == "result of quick"


def test_a_tool_that_needs_tasks_is_left_out_and_named_if_its_server_has_none(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with make_servers(tmp_path, "without") as servers, caplog.at_level(logging.WARNING, "jackfield_mcp"):
        assert tools_of(servers) == {}
    assert "skipped the tool 'quick': it can only be called as a task" in caplog.text


def methods(folder: Path) -> list[str]:
    return (folder / "log").read_text().splitlines()


@pytest.mark.parametrize(
    ("suggested_ms", "waited_s"), [(None, 1.0), (250, 0.25), (0, 0.05), (49, 0.05), (30_000, 30.0), (10**9, 30.0)]
)
def test_a_task_is_asked_for_as_often_as_its_server_suggests_within_bounds(
    suggested_ms: int | None, waited_s: float
) -> None:
    now = "2026-01-01T00:00:00Z"
    times = {"createdAt": now, "lastUpdatedAt": now, "ttl": None}
    task = Task.model_validate(
        {"taskId": "1", "status": "working", "pollInterval": suggested_ms, **times}, by_name=False
    )
    assert _poll_interval_s(task) == waited_s
