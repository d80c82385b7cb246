"""OpenAI's Responses API: the second backend of this package."""
