"""The `web_search` tool."""
