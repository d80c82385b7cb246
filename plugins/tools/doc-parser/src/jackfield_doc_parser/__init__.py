"""Tools that give documents to a model: whole, cut into chunks, or as their vocabulary."""
