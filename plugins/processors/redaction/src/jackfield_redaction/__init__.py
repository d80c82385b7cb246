"""Replaces personal data and API keys before a model is asked, and restores them in its answer."""
