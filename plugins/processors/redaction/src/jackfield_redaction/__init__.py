"""Redacts personal data and API keys in requests to a model, and restores them in its answer."""
