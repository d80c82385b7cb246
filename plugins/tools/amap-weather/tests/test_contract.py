"""This distribution keeps Jackfield's contracts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import pytest

from jackfield_testkit.suites import PluginSuite, ToolSuite
from jackfield_testkit.web import WebAnswer, WebRequest, WebServer


class TestPlugin(PluginSuite):
    dist = "jackfield-amap-weather"


def _districts(request: WebRequest) -> WebAnswer:
    found = [{"name": "北京市", "adcode": "110000"}] if request.query["keywords"] == "北京市" else []
    return WebAnswer.json({"status": "1", "info": "OK", "infocode": "10000", "districts": found})


def _weather(request: WebRequest) -> WebAnswer:
    live = [{"weather": "晴", "temperature": "21"}] if request.query["city"] == "110000" else []
    return WebAnswer.json({"status": "1", "info": "OK", "infocode": "10000", "lives": live})


class TestTool(ToolSuite):
    component = "jackfield-amap-weather/amap_weather"
    examples: ClassVar = [
        ({"location": "北京市"}, "北京市的天气是晴温度是21度。"),
        ({"location": "110000"}, "110000的天气是晴温度是21度。"),
    ]
    failures: ClassVar = [{"location": "Atlantis"}, {"location": "999999"}, {"location": " "}]

    @pytest.fixture(scope="class", autouse=True)
    @classmethod
    def amap(cls) -> Iterator[None]:
        """A server that speaks as Amap does."""
        with WebServer() as web:
            web.put("/v3/config/district", _districts)
            web.put("/v3/weather/weatherInfo", _weather)
            cls.config = {"url": web.url, "api_key": "example-Zq83bXw4Rk2L", "request_timeout": 60}
            yield
