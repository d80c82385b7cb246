"""Keeps a model's answers in a file, and returns them when the same request is made again."""
