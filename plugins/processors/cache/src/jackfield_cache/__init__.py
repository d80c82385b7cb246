"""Keeps the answers of a model in a file, and gives them again when the same is asked."""
