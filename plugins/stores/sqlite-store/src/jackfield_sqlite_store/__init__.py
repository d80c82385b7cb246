"""Keeps the runs of agents in an SQLite file."""
