"""The assistant: an agent that knows documents."""
