"""Text, Markdown and JSON files, for Jackfield."""
