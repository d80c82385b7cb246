"""The `image_zoom_in_tool` tool."""
