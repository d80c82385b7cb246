"""The tool `image_zoom_in_tool`."""
