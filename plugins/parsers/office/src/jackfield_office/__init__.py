"""Reads office files, spreadsheets and CSV for Jackfield."""
