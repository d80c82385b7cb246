"""The tool `image_gen`."""
