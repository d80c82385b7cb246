"""Serve agents inside editors: the face `acp`."""
