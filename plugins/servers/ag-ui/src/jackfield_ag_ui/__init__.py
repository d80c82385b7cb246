"""Serve agents to front ends over AG-UI."""
