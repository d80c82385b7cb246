"""The tool `web_extractor`."""
