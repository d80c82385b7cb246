"""Search by meaning, with the vectors of any embedder."""
