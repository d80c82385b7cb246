"""Tools that let a model read documents: in full, in chunks, as a vocabulary, as tables or in summary."""
