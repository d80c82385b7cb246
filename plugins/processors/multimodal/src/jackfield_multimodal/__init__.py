"""Reads attached files, and describes media that the model does not support."""
