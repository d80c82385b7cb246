"""Benchmarks of Jackfield and its peers."""
