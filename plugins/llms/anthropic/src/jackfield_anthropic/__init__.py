"""Anthropic's models for Jackfield, over the Messages protocol."""
