"""The commands: what they take, and what they print."""
