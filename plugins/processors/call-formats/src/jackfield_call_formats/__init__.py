"""Tool calls in plain text, for models without native tool calling."""
