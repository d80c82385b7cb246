"""What the system says before a conversation, and in which language the conversation is held."""
