"""Count and cut tokens of OpenAI models with tiktoken."""
