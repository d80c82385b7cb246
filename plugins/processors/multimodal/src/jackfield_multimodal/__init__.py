"""Mentions files and media by name, and leaves out of a message what is only mentioned."""
