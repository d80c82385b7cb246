"""Documents and search."""
