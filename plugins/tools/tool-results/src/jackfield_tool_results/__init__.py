"""Toolsets that wrap other tools. A model sees the same tools, but calls and results get extra handling."""
