"""Backend that generates nothing: it quotes the given documents and calls the tools that the user names."""
