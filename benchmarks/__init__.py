"""Jackfield beside its peers."""
