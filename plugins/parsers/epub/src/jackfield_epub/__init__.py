"""Reads e-books for Jackfield."""
