"""The tool `amap_weather`."""
