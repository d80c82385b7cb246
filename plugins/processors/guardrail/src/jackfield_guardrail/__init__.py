"""Checks model answers before they reach the caller."""
