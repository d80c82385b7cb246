"""Backend for OpenAI's models on Azure."""
