"""Parsers for office files, spreadsheets and CSV."""
