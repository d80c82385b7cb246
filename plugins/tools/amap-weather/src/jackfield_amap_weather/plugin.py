"""Plugin hooks for the `amap_weather` tool."""

from __future__ import annotations

from jackfield.plugins import ToolSpec, hook


@hook.tools
def tools() -> list[ToolSpec]:
    """Provide the `amap_weather` tool."""
    return [
        ToolSpec(
            name="amap_weather",
            target="jackfield_amap_weather.tool:AmapWeather",
            summary="Returns the weather in a Chinese city, from Amap.",
            description={
                "en": "Get the current weather in a city or district of China.",
                "zh": "查询中国某个城市或区县当前的天气。",
            },
            parameters={
                "type": "object",
                "properties": {
                    "location": {
                        "type": "string",
                        "maxLength": 100,
                        "description": "Chinese name, such as 北京市 or 海淀区, or adcode, such as 110000",
                    },
                },
                "required": ["location"],
                "additionalProperties": False,
            },
            config="jackfield_amap_weather.tool:AmapWeatherConfig",
            secrets=("AMAP_TOKEN",),
            effects=frozenset({"network"}),
            network=("restapi.amap.com",),
            read_only=True,
            raw_argument="location",
        )
    ]
