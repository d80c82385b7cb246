"""The `image_search` tool."""
