"""Tracks the cost of answers using dated price tables, and stops at a limit."""
