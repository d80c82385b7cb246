"""Anthropic's models for Jackfield, by the Messages protocol."""
