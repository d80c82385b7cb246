"""The tokens of OpenAI's models, counted and cut with tiktoken."""
