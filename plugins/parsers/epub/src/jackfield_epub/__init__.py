"""Parser for e-books in the EPUB format."""
