"""PDF files, for Jackfield."""
