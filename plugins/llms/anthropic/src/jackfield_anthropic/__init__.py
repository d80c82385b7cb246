"""Backend for Anthropic's models, over the Messages protocol."""
