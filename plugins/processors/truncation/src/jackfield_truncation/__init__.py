"""Shortens old results and leaves out or summarises old turns where a request is longer than a model takes."""
