"""Keyword search over millions of chunks with an on-disk index."""
