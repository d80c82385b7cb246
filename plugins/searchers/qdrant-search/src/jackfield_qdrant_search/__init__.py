"""Semantic search in a Qdrant server."""
