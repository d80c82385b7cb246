"""Mentions files and media by name, and removes what the model does not take."""
