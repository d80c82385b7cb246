"""Search by meaning in a Qdrant server, for Jackfield."""
