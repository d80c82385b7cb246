"""Limits requests and tokens per minute, for one process or all processes on a machine."""
