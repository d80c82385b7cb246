"""Serve agents inside code editors over the Agent Client Protocol."""
