"""Ask the face `mcp` with the client of FastMCP: over HTTP, and as a program that it starts."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

from fastmcp import Client
from fastmcp.client.transports import StdioTransport


async def check(target: Any) -> None:
    """Call tools, hear of progress, and answer an approval."""
    asked: list[str] = []
    reports: list[str | None] = []

    async def elicit(message: str, *_: Any) -> dict[str, bool]:
        asked.append(message)
        return {"allow": True}

    async def note(_: float, __: float | None, message: str | None) -> None:
        reports.append(message)

    async with Client(target, elicitation_handler=elicit, progress_handler=note) as client:
        assert [tool.name for tool in await client.list_tools()] == ["helper"]
        first = await client.call_tool("helper", {"message": "Hi"})
        assert first.structured_content["text"] == "You said: Hi", first
        await client.call_tool("helper", {"message": "look into the book"})
        assert "helper calls look_up" in reports, reports
        paid = await client.call_tool("helper", {"message": "pay"})
        assert paid.structured_content["text"] == "It says: paid 3", paid
        assert asked == ['Allow the call pay {"amount": 3}?'], asked
        assert await client.list_resources() == []
        (template,) = await client.list_resource_templates()
        assert template.name == "source", template
        failed = await client.call_tool("helper", {"message": ""}, raise_on_error=False)
        assert failed.is_error


async def main() -> None:
    """Check both transports."""
    python, folder, url = sys.argv[1:]
    await check(url)
    serve = ["-m", "jackfield", "serve", "agents:helper", "--stdio", "mcp"]
    await check(StdioTransport(python, serve, cwd=str(Path(folder))))


asyncio.run(main())
