"""MCP tools: a call compared to the SDK's own client, and creating an agent with ten servers."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, cast

from benchmarks.measure import Row, cpu_ms, in_turns, wall_ms
from jackfield import FnCallAgent, sync
from jackfield.messages import FunctionCall
from jackfield.testing import ScriptedModel, answer
from jackfield.tools import BaseTool, PlannedCall, ToolContext, ToolExecutor, ToolResult

SERVER = """
from mcp.server.mcpserver import MCPServer

server = MCPServer("sums")


@server.tool()
def add(a: int, b: int) -> int:
    "Add two numbers."
    return a + b


server.run("stdio")
"""
COMMAND = {"command": sys.executable, "args": ["-c", SERVER]}
CALLS = 100


def a_call() -> list[Row]:
    """Measure a call over stdio as an agent makes it, compared to the SDK's client."""
    from jackfield_mcp.toolset import MCPServers

    with (
        tempfile.TemporaryDirectory() as folder,
        MCPServers(mcpServers={"sums": COMMAND}, cache_folder=folder) as servers,
        _raw_client() as raw,
    ):
        tools = _tools(servers)
        executor = ToolExecutor(tools)
        planned = PlannedCall(0, "c", FunctionCall("sums-add", '{"a": 1, "b": 2}'))

        async def of_tool() -> None:
            context: ToolContext[Any] = ToolContext()
            for _ in range(CALLS):
                result = await cast("Awaitable[ToolResult]", tools["sums-add"].call({"a": 1, "b": 2}, context=context))
                assert result.metadata["server"] == "sums"

        async def of_agent() -> None:
            for _ in range(CALLS):
                assert not (await executor.finish(planned, ToolContext())).error

        loop = asyncio.new_event_loop()
        works: dict[str, Callable[[], object]] = {
            "raw": raw,
            "": lambda: sync.run(of_tool()),
            ", in an agent": lambda: sync.run(of_agent()),
            ", in an agent on another loop": lambda: loop.run_until_complete(of_agent()),
        }
        took = in_turns(works, rounds=15, clock=wall_ms)
        loop.close()
    raw_ms = took.pop("raw")
    peer = f"mcp.Client {raw_ms / CALLS:.2f} ms"
    return [
        Row(f"MCP call over stdio{where}", f"{ms / CALLS:.2f} ms", peer, ms / raw_ms, "1.3")
        for where, ms in took.items()
    ]


def ten_known_servers() -> list[Row]:
    """Measure creating an agent with ten servers whose tools, twenty each, are already known."""
    from jackfield_mcp.listing import Keeper, Listing, sound
    from jackfield_mcp.servers import parse_servers

    schema = {
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "Where"},
            "depth": {"type": "integer", "minimum": 1, "description": "How deep"},
        },
        "required": ["path"],
    }
    configured = {f"server{number}": {"command": f"no-such-program-{number}"} for number in range(10)}
    with tempfile.TemporaryDirectory() as folder:
        for server in parse_servers({"mcpServers": configured}).values():
            tools = [sound(f"tool_{number}", "Does something with a path.", schema, {}) for number in range(20)]
            Keeper(folder).save(server.identity(), Listing(tuple(tools)).following(None))
        entry = {"name": "mcp", "mcpServers": configured, "cache_folder": folder}
        model = ScriptedModel([answer("hi")])

        def made() -> None:
            assert len(FnCallAgent([entry], model).function_map) == 200

        took = in_turns({"made": made}, rounds=21, clock=cpu_ms)["made"]
    return [
        Row("an agent made with 10 known MCP servers", f"{took:.1f} ms", "200 tools, no server started", None, "5 ms")
    ]


def _tools(servers: Any) -> dict[str, BaseTool]:
    async def of_all() -> list[BaseTool]:
        return [tool for part in servers.fixed_tools() for tool in await part.tools_of_run(ToolContext())]

    return {tool.name: tool for tool in sync.run(of_all())}


@contextmanager
def _raw_client() -> Iterator[Callable[[], object]]:
    """Yield a function that makes calls with the SDK's client, opened and closed by one task on its own event loop."""
    from mcp import Client, StdioServerParameters

    loop = asyncio.new_event_loop()
    ready, over = asyncio.Event(), asyncio.Event()
    clients: list[Any] = []

    async def own() -> None:
        async with Client(StdioServerParameters(command=sys.executable, args=["-c", SERVER])) as client:
            clients.append(client)
            ready.set()
            await over.wait()

    async def calls() -> None:
        for _ in range(CALLS):
            done = await clients[0].call_tool("add", {"a": 1, "b": 2})
            assert not done.is_error

    owner = loop.create_task(own())
    loop.run_until_complete(ready.wait())

    def once() -> None:
        work: Coroutine[Any, Any, None] = calls()
        loop.run_until_complete(work)

    yield once
    over.set()
    loop.run_until_complete(owner)
    loop.close()
