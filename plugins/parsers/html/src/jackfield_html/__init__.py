"""Parser for HTML files."""
