"""Keeps calls within requests and tokens per minute, for a process or for all of a machine."""
