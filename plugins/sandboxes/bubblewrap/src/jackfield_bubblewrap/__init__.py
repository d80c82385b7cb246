"""Sandboxes for programs on Linux: bubblewrap, and Landlock where that is missing. No daemon, no root."""
