"""OCR parser for scanned pages and pictures."""
