"""A model that does not generate: it quotes what it is given, and calls the tools it is told to."""
