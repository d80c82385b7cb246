"""Reads OpenDocument files for Jackfield."""
