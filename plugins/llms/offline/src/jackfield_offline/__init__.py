"""A model that generates nothing: it quotes the given documents, and calls the tools you name."""
