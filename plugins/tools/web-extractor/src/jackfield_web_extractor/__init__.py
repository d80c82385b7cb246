"""The `web_extractor` tool."""
