"""An embedder for sixteen languages whose model is installed with it."""
