"""Serve agents to people on a web page."""
