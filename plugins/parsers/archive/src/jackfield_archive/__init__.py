"""Parsers for archives and compressed files."""
