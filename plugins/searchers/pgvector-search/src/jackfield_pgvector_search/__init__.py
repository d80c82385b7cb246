"""Search in PostgreSQL by vectors, by words, or by both."""
