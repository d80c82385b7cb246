"""Use the tools of MCP (Model Context Protocol) servers in agents."""
