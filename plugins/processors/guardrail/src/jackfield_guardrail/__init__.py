"""Checks a model's answer before the caller gets it."""
