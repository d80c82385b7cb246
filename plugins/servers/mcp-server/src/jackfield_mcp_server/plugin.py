"""The components of this package."""

from __future__ import annotations

from jackfield.plugins import ServerSpec, hook


@hook.servers
def servers() -> list[ServerSpec]:
    """Return the face `mcp`."""
    return [
        ServerSpec(
            name="mcp",
            target="jackfield_mcp_server.face:McpServer",
            config="jackfield_mcp_server.face:McpServerConfig",
            summary="Serves agents as tools of an MCP server, over streamable HTTP and standard input.",
            stdio=True,
        )
    ]
