"""Tools of MCP servers (Model Context Protocol) for agents."""
