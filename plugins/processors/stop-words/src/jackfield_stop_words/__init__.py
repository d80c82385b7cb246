"""Ends an answer at the first stop word in its text, whether or not the server knows stop words."""
