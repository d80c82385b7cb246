"""Serves agents of Jackfield to front ends that speak AG-UI."""
