"""Reads archives of documents for Jackfield."""
