"""Parser for PDF files."""
