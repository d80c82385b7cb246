"""The `storage` tool."""
