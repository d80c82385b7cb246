"""Backends for OpenAI and compatible servers."""
