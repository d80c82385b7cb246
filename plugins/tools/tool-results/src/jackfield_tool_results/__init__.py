"""Sets of tools around other tools: a model sees the same tools, and more happens to their calls and results."""
