"""Serve agents as tools of an MCP server: the face `mcp`."""
