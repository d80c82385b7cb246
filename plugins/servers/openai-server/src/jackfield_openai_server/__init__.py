"""Serve agents to clients of OpenAI's APIs: the face `openai`."""
