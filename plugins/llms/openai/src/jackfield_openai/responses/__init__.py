"""The backend for OpenAI's Responses API."""
