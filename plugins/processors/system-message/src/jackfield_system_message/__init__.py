"""Adds a system message, and detects the language of a conversation."""
