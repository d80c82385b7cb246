"""Replaces personal data and keys before a model is asked, and puts them back into its answer."""
