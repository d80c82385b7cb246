"""Reads attached files, and names media that the model does not take."""
