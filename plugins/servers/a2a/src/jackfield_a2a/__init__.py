"""Serve agents to agents of other frameworks over A2A."""
