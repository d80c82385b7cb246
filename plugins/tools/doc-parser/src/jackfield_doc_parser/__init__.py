"""Tools that give documents to a model: as a whole, in chunks, or as their vocabulary."""
