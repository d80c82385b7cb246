"""Parsers for OpenDocument files."""
