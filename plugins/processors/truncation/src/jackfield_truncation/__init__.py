"""Shortens old results, and drops or summarises old turns, when a request exceeds the model's context."""
