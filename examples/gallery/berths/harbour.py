"""An MCP server with one tool."""

from mcp.server.mcpserver import MCPServer

server = MCPServer("harbour")


@server.tool()
def free_berths(metres: int) -> list[int]:
    """List the free berths for a boat of some length."""
    return [4, 7] if metres <= 12 else []


server.run()
