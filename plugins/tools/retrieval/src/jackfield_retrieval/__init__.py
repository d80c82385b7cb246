"""The `retrieval` tool: find relevant passages in the documents of a conversation."""
