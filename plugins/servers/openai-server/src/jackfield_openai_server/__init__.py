"""Serve agents to clients of OpenAI's APIs."""
