"""The `image_gen` tool."""
