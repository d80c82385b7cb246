"""Keyword search over millions of chunks, with an index on disk, for Jackfield."""
