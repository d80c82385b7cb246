"""Caches model answers in a file and replays them for identical requests."""
