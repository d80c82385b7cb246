"""The face `mcp`: agents as tools of an MCP server."""
