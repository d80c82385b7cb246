"""Sets that wrap other tools: a model sees the same tools, but their calls and results get extra handling."""
