"""Semantic search with the vectors of any embedder."""
