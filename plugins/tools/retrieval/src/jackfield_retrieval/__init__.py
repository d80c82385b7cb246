"""The retrieval tool: finds passages that fit a question in the documents of a conversation."""
