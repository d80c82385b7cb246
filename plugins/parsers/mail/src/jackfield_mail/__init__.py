"""Parsers for email files."""
