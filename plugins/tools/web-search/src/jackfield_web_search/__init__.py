"""The tool `web_search`."""
