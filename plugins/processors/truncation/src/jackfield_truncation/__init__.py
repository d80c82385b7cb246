"""Shortens old results, and drops or summarises old turns, if a request is longer than a model takes."""
