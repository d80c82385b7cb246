"""Real servers that others wrote, from npm and PyPI, and one of our own that misbehaves.

npm fetches them once, into `.tools/mcp-servers` of the repository, as the lock file beside this says. Where node or the
packages cannot be had, the tests are skipped with the reason.
"""

from __future__ import annotations

import asyncio
import fcntl
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from jackfield import call_tool, sync
from jackfield.tools import BaseTool, ToolContext
from jackfield_mcp.toolset import MCPServers

HERE = Path(__file__).resolve().parent
CACHE = HERE.parents[3] / ".tools" / "mcp-servers"
BAD = {"command": sys.executable, "args": ["-E", "-S", str(HERE / "bad_server.py")]}
PATIENCE_S = 60.0

MakeServers = Callable[..., MCPServers]


@pytest.fixture(scope="session")
def npm_servers() -> Path:
    """The folder of the servers from npm."""
    wanted = (HERE / "npm" / "package-lock.json").read_text()
    CACHE.mkdir(parents=True, exist_ok=True)
    (CACHE.parent / ".gitignore").write_text("*\n")
    with (CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # several processes run tests
        done = CACHE / "done.json"
        if not done.exists() or done.read_text() != wanted:
            for name in ("package.json", "package-lock.json"):
                shutil.copy(HERE / "npm" / name, CACHE / name)
            _install()
            done.write_text(wanted)
    return CACHE / "node_modules" / "@modelcontextprotocol"


def _install() -> None:
    options = ["--no-audit", "--no-fund", "--ignore-scripts", "--fetch-retries=1", "--fetch-retry-mintimeout=500"]
    came = subprocess.run([program("npm"), "ci", *options], cwd=CACHE, capture_output=True, text=True, check=False)
    if came.returncode:
        pytest.skip(f"npm cannot fetch the servers: {came.stderr.strip()[-300:]}")


def program(name: str) -> str:
    """Where a program is; without it, the test is skipped."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"there is no {name}: the tests against servers of others need Node.js and npm")
    return found


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A folder for lists of tools."""
    return str(tmp_path_factory.mktemp("kept"))


@pytest.fixture(scope="module")
def bad(kept: str) -> Iterator[MCPServers]:
    """The server that misbehaves when it is told to, for all tests of a module."""
    with MCPServers(mcpServers={"bad": {**BAD, "max_message_bytes": 2**20}}, cache_folder=kept) as servers:
        yield servers


def tools_of(servers: MCPServers) -> dict[str, BaseTool]:
    """The tools of all servers by name, whether they were known or not."""

    async def of_all() -> list[Any]:
        parts = [await part.tools_of_run(ToolContext()) for part in servers.fixed_tools()]  # type: ignore[union-attr]
        return [tool for part in parts for tool in part]

    return {tool.name: tool for tool in sync.run(of_all())}


def call(servers: MCPServers, name: str, context: ToolContext[Any] | None = None, /, **arguments: Any) -> Any:
    """What a tool gives."""
    return call_tool(tools_of(servers)[name], arguments, context=context)


def is_running(pid: int) -> bool:
    """Whether a process is there, and is more than an entry of those that ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


async def until(holds: Callable[[], bool], patience_s: float = PATIENCE_S) -> None:
    """Wait until something holds."""
    async with asyncio.timeout(patience_s):
        while not holds():
            await asyncio.sleep(0.01)
