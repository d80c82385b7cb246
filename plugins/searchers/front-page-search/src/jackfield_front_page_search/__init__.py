"""Find the front pages of documents, whatever the query."""
