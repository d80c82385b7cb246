"""Adds a system message, and finds the language of a conversation."""
