"""Reads HTML files for Jackfield."""
