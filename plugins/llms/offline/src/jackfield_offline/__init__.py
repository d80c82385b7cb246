"""A model that does not generate: it quotes the documents it is given, and calls the tools you name."""
