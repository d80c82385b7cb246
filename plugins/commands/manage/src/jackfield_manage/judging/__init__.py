"""Examine installed plugins: their faults, their effects, and why they act."""
