"""Embedder for sixteen languages whose model is installed as a dependency."""
