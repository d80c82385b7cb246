"""Keyword search with BM25."""
