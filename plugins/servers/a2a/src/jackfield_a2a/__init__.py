"""Serves agents of Jackfield to other agents, which speak A2A."""
