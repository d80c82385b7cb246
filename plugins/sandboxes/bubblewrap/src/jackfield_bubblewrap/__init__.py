"""Sandboxes for programs on Linux: bubblewrap, or Landlock if that is missing. No daemon, no root."""
