"""What parsers, embedders and searchers are, and the values they exchange. This is a library, not a plugin."""
