"""A run starts with the kept list, and has what the server lists or reports in the run from its next turn on."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from jackfield import FnCallAgent, Message
from jackfield.events import ApprovalNeeded, ToolFinished
from jackfield.request import ChatRequest
from jackfield.testing import ScriptedModel, answer, calls
from jackfield_mcp.toolset import MCPServers

from .conftest import HERE, until

SERVER = [sys.executable, "-E", str(HERE / "changing_server.py")]
ASK = [Message("user", "go")]
BEFORE = "one: First.\ntwo: Second.\n"
AFTER = "two: Second.\nthree: Third.\nhidden: Hidden.\n"

Make = Callable[..., MCPServers]


def agree(*_: Any) -> bool:
    return True


@pytest.fixture(params=["stdio", "http"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Make]:
    """Makes a set with the server, which is quiet or not, over each transport."""
    (tmp_path / "tools").write_text(BEFORE)
    processes: list[subprocess.Popen[bytes]] = []

    def make_one(*options: str) -> MCPServers:
        entry: dict[str, Any] = {"command": SERVER[0], "args": [*SERVER[1:], str(tmp_path), *options]}
        if request.param == "http":
            if not processes:
                processes.append(subprocess.Popen([*SERVER, str(tmp_path), *options, "http"]))
                asyncio.run(until((tmp_path / "port").exists))
            entry = {"url": f"http://127.0.0.1:{(tmp_path / 'port').read_text()}/mcp", "type": "http"}
        server = {**entry, "exclude": ["hidden"]}
        return MCPServers(mcpServers={"s": server}, cache_folder=str(tmp_path / "kept"))

    yield make_one
    for process in processes:
        process.kill()
        process.wait()


def run(servers: MCPServers, *script: Any, approve: Any = agree) -> tuple[list[set[str]], list[Any], FnCallAgent]:
    """Run an agent; the tools that its model was shown in each turn, without the server's name, and the events."""
    steps = iter(script)

    def next_step(request: ChatRequest) -> Any:
        step = next(steps)
        return step(request) if callable(step) else step

    model = ScriptedModel(next_step, processors=[])
    agent = FnCallAgent([servers], model, approve=approve)

    async def collect() -> list[Any]:
        return [event.event async for event in agent.astream(ASK)]

    events = asyncio.run(collect())
    shown = [{function["name"].removeprefix("s-") for function in one.functions} for one in model.requests]
    return shown, events, agent


def change(tools: str = AFTER) -> Any:
    return calls(("s-change", {"tools": tools}))


def results(events: list[Any]) -> list[str]:
    return [str(one.message.content) for one in events if isinstance(one, ToolFinished)]


def names_of_tools(request: ChatRequest) -> Any:
    return answer(" ".join(function["name"] for function in request.functions))


OLD, NEW = {"change", "one", "two"}, {"change", "two", "three"}


@pytest.mark.parametrize("how", ["unknown", "known", "shared"])
def test_a_reported_change_is_offered_from_the_next_turn_on(how: str, make: Make) -> None:
    if how == "known":
        run(make(), answer("done"))
    last = calls(("s-one", {}), ("s-three", {}), ("s-hidden", {}))
    with ExitStack() as stack:
        servers = stack.enter_context(make()) if how == "shared" else make()
        shown, events, _ = run(servers, change(), last, answer("done"))
    assert shown == [OLD, NEW, NEW]
    changed, *others = results(events)
    one, three, hidden = sorted(others, key=lambda text: ("s-hidden" in text, "is done" in text))
    assert (changed, three) == ("change is done", "three is done")
    assert "s-one" in one
    assert "s-two" in one, "the model reads which tools there are"
    assert "s-hidden" in hidden
    assert "is done" not in one + hidden


def test_what_the_server_lists_when_a_run_first_connects_is_offered_from_the_next_turn_on(
    make: Make, tmp_path: Path
) -> None:
    run(make("quiet"), answer("done"))
    (tmp_path / "tools").write_text(AFTER)
    shown, _, _ = run(make("quiet"), calls(("s-two", {})), answer("done"))
    assert shown == [OLD, NEW]


@pytest.mark.parametrize("known", [False, True])
def test_a_change_that_is_reported_while_the_tools_are_listed_is_not_lost(
    make: Make, tmp_path: Path, known: bool
) -> None:
    if known:
        run(make("busy"), answer("done"))
    (tmp_path / "next").write_text(AFTER)
    shown, _, agent = run(make("busy"), calls(("s-two", {})), calls(("s-three", {})), answer("done"), names_of_tools)
    assert shown[0] in (OLD, NEW)
    assert shown[-1] == NEW
    assert "s-three" in agent.ask("Go on.").text


def test_the_next_run_of_an_agent_starts_with_the_latest_list_and_starts_no_server(make: Make, tmp_path: Path) -> None:
    run(make(), answer("done"))
    shown, _, agent = run(make(), change(), answer("done"), names_of_tools)
    starts = (tmp_path / "starts").read_text()
    assert shown == [OLD, NEW]
    assert "s-three" not in agent.function_map
    assert "s-three" in agent.ask("Go on.").text
    assert (tmp_path / "starts").read_text() == starts


def test_added_and_changed_tools_need_approval_until_they_are_approved(make: Make) -> None:
    run(make(), answer("done"))
    asked: list[str] = []

    def approve(call: Any, *_: Any) -> bool:
        asked.append(call.name)
        return True

    both = calls(("s-two", {}), ("s-three", {}))
    tools = "one: First.\ntwo: Changed.\nthree: Third.\n"
    shown, events, _ = run(make(), change(tools), both, both, answer("done"), approve=approve)
    assert shown[1] == {"change", "one", "two", "three"}
    assert sorted(asked) == ["s-three", "s-two"], "once each: an approval is kept"
    assert sorted(results(events)[1:]) == ["three is done"] * 2 + ["two is done"] * 2  # in whichever order they ended
    _, events, _ = run(make(), change(tools + "four: Fourth.\n"), calls(("s-four", {})), approve=None)
    assert any(isinstance(one, ApprovalNeeded) for one in events)


def test_a_change_that_cannot_be_listed_leaves_the_tools_as_they_are(make: Make) -> None:
    run(make(), answer("done"))
    shown, _, _ = run(make(), change("broken"), answer("done"))
    assert shown == [OLD, OLD]
