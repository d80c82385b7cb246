"""Shortens old results and leaves out old turns where a request is longer than a model takes."""
