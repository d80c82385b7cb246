"""The tool `image_search`."""
