"""Keeps the runs of agents in PostgreSQL."""
