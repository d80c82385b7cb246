"""The `amap_weather` tool."""
