"""A server that fails at any step of the protocol costs an answer or a clear error, and leaves nothing behind."""

from __future__ import annotations

import asyncio
import gc
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from jackfield import FnCallAgent, sync
from jackfield.errors import JackfieldError
from jackfield.events import ToolFinished
from jackfield.testing import ScriptedModel, answer, calls
from jackfield.tools import ToolContext
from jackfield_mcp.session import OpenServer, ServerEndedError
from jackfield_mcp.toolset import MCPServers

from . import stepping_server
from .conftest import PATIENCE_S, is_running, until

LIMIT_S = 0.5  # for each of connecting, listing, calling and closing
MOST_AT_ONCE = 16
# The steps at which calls once waited for ever, and others where each transport fails in its own way.
QUICK = (
    *[("initialized", act) for act in ("die", "close", "stall")],
    *[("list", act) for act in ("die", "close", "garbage")],
    *[("list-2", "die"), ("start", "close"), ("initialize", "half"), ("prompts", "die"), ("resources-2", "die")],
    *[("call", "die"), ("call", "close"), ("notify", "wrong"), ("sample", "die"), ("elicit", "stall")],
    *[("result", "half"), ("shutdown", "stall")],
)
EVERY = tuple((step, act) for step in stepping_server.STEPS for act in stepping_server.ACTS)
SAID = re.compile(
    r"stepped|MCP server 's' .*"
    r"(nothing was done|may or may not|cannot be used|is currently unavailable|did not list|invalid response)",
    re.S,
)


@dataclass(frozen=True)
class Case:
    step: str
    act: str
    is_http: bool
    folder: Path


@contextmanager
def served(case: Case) -> Iterator[dict[str, Any]]:
    """The settings of a server that fails as the case says."""
    command = [sys.executable, "-E", "-S", stepping_server.__file__, case.step, case.act, str(case.folder)]
    if not case.is_http:
        yield {"command": command[0], "args": command[1:]}
        return
    server = subprocess.Popen([*command, "http"])
    try:
        port = case.folder / "port"
        asyncio.run(until(port.exists))
        yield {"url": f"http://127.0.0.1:{port.read_text()}/mcp", "type": "http"}
    finally:
        server.kill()
        server.wait()


async def outcome(case: Case, server: dict[str, Any]) -> str:
    """The result of the run's first call, or the error that ended the run."""
    limits = dict.fromkeys(("connect_timeout_s", "list_timeout_s", "call_timeout_s", "close_timeout_s"), LIMIT_S)
    # A server that ends is noticed at once; until then it has time to start on a busy machine.
    ends = case.act in ("die", "close")
    patient = dict.fromkeys(("connect_timeout_s", "list_timeout_s"), PATIENCE_S / 4) if ends else {}
    entry = {**server, **limits, **patient, "sampling": ScriptedModel([answer("hello")])}
    settings = {"name": "mcp", "mcpServers": {"s": entry}, "cache_folder": str(case.folder / "kept")}
    model = ScriptedModel([calls(("s-step", {}), ("s-list_resources", {})), answer("done")])
    try:
        async with asyncio.timeout(PATIENCE_S):
            finished = [one.event async for one in FnCallAgent([settings], model).astream("go")]
    except JackfieldError as error:
        return str(error)
    except TimeoutError:
        return "it hung"
    (first,) = [event for event in finished if isinstance(event, ToolFinished) and event.index == 0]
    said = str(first.message.content)
    # Only a call that was never sent may be repeated without a thought.
    assert first.metadata.get("in_doubt", False) is ("may or may not" in said), said
    return said


async def tasks_left() -> int:
    """How many tasks the background loop has, besides this one."""
    await asyncio.sleep(0)
    return len(asyncio.all_tasks()) - 1


async def descriptors() -> int:
    """How many files, pipes and sockets this process has open."""
    gc.collect()
    return len(list(Path("/proc/self/fd").iterdir()))


def break_all(cases: Sequence[Case], tasks: int) -> list[str]:
    """Run all cases at the same time; those that broke the law, with what they said.

    Args:
        tasks: How many tasks the background loop may have afterwards, while servers at addresses still run.
    """
    with ExitStack() as stack:
        servers = [stack.enter_context(served(case)) for case in cases]

        async def run() -> list[str]:
            return await asyncio.gather(*map(outcome, cases, servers))

        said = asyncio.run(run())
        assert sync.run(tasks_left()) <= tasks
        own = [int(entry.name) for case in cases if not case.is_http for entry in case.folder.glob("[0-9]*")]
        asyncio.run(until(lambda: not any(map(is_running, own))))
    return [f"{case.step} {case.act}: {text}" for case, text in zip(cases, said, strict=True) if not SAID.search(text)]


@pytest.mark.parametrize("transport", ["stdio", "http"])
@pytest.mark.parametrize(
    "steps",
    [pytest.param(QUICK, id="some", marks=pytest.mark.slow), pytest.param(EVERY, id="all", marks=pytest.mark.nightly)],
)
def test_a_failure_at_any_step_ends_the_run_and_leaves_nothing(
    steps: Sequence[tuple[str, str]], transport: str, tmp_path: Path
) -> None:
    cases = []
    for step, act in steps:
        folder = tmp_path / f"{step}-{act}"
        folder.mkdir()
        cases.append(Case(step, act, transport == "http", folder))
    (tmp_path / "first").mkdir()
    tasks = sync.run(tasks_left())
    # Some descriptors are opened once per process, by the first run.
    assert break_all([Case("", "", transport == "http", tmp_path / "first")], tasks) == []
    before = sync.run(descriptors())
    broken = [text for chunk in batched(cases, MOST_AT_ONCE) for text in break_all(chunk, tasks)]
    assert broken == []
    assert sync.run(descriptors()) <= before


def batched(cases: Sequence[Case], size: int) -> Iterator[Sequence[Case]]:
    return (cases[start : start + size] for start in range(0, len(cases), size))


@pytest.mark.parametrize("is_closed_by_us", [True, False])
def test_a_call_ends_with_its_connection_though_its_answer_is_forgotten(is_closed_by_us: bool, tmp_path: Path) -> None:
    case = Case("", "", False, tmp_path)

    async def run(server: dict[str, Any]) -> None:
        servers = MCPServers(mcpServers={"s": server}, cache_folder=str(tmp_path / "kept"))
        async with servers:
            part: Any = servers.fixed_tools()[0]
            session = await part.session(ToolContext())
            is_waiting = threading.Event()

            async def wait_for_ever(_: OpenServer) -> None:
                is_waiting.set()
                await asyncio.Event().wait()

            waiting = asyncio.ensure_future(session.do(wait_for_ever, what="the call to 'step'"))
            await until(is_waiting.is_set)
            if is_closed_by_us:
                await session.aclose()
            else:
                (pid,) = [int(entry.name) for entry in tmp_path.glob("[0-9]*")]
                os.kill(pid, signal.SIGKILL)
            with pytest.raises(ServerEndedError, match="which may or may not have taken effect"):
                async with asyncio.timeout(PATIENCE_S):
                    await waiting

    with served(case) as server:
        asyncio.run(run(server))
