"""The tool `storage`."""
