"""Serve agents as tools of an MCP server."""
