"""The retrieval tool: what fits a question, out of the documents of a conversation."""
