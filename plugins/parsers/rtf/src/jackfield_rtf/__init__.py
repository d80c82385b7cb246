"""Reads Rich Text Format for Jackfield."""
