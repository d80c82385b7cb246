"""Parsers for text, Markdown, JSON, notebooks and manual pages."""
