"""OCR for Jackfield."""
