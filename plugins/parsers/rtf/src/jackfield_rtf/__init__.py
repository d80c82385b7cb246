"""Parser for the Rich Text Format (RTF)."""
