"""Plugin hooks for the `mcp` toolset."""

from __future__ import annotations

from jackfield.plugins import ToolsetSpec, hook


@hook.toolsets
def toolsets() -> list[ToolsetSpec]:
    """Provide the `mcp` toolset."""
    return [
        ToolsetSpec(
            name="mcp",
            target="jackfield_mcp.toolset:MCPServers",
            summary="The tools of MCP servers (Model Context Protocol): stdio, SSE and streamable HTTP.",
            config="jackfield_mcp.toolset:MCPConfig",
            effects=frozenset({"files", "network", "processes"}),
            keys=("mcpServers",),
        )
    ]
