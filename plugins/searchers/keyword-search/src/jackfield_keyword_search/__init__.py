"""Keyword search with BM25, for Jackfield."""
