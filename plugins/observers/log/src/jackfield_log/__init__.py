"""Logs the steps of runs."""
