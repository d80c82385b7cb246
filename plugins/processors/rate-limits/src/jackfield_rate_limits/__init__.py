"""Limits requests and tokens per minute, for one process or for all processes of a machine."""
