"""What a model gets of Amap, asked in its own format on loopback."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from jackfield.errors import MissingSecretError, ToolArgumentError, ToolServiceError
from jackfield_amap_weather import tool
from jackfield_amap_weather.tool import AmapWeather
from jackfield_testkit.web import WebAnswer, WebServer

KEY = "0123456789abcdef0123456789abcdef"
LIVE = {
    "province": "北京",
    "city": "海淀区",
    "adcode": "110108",
    "weather": "多云",
    "temperature": "-3",
    "winddirection": "北",
    "windpower": "≤3",
    "humidity": "40",
    "reporttime": "2026-01-10 10:00:00",
}


def said(**facts: object) -> WebAnswer:
    return WebAnswer.json({"status": "1", "count": "1", "info": "OK", "infocode": "10000", **facts})


@pytest.fixture
def amap() -> Iterator[WebServer]:
    with WebServer() as server:
        server.put("/v3/config/district", said(districts=[{"name": "海淀区", "adcode": "110108", "level": "district"}]))
        server.put("/v3/weather/weatherInfo", said(lives=[LIVE]))
        yield server


def weather(amap: WebServer, *locations: str, **settings: Any) -> Any:
    tool = AmapWeather({"url": amap.url, "api_key": KEY, "max_retries": 0, "request_timeout": 60, **settings})

    async def ask() -> Any:
        try:
            return [await tool.call({"location": location}) for location in locations][-1]
        finally:
            await tool.aclose()

    return asyncio.run(ask())


def test_amap_is_asked_as_it_documents(amap: WebServer) -> None:
    found = weather(amap, " 海淀区 ")
    assert found.content == "海淀区的天气是多云温度是-3度。"
    assert found.metadata == {"adcode": "110108", "weather": LIVE}
    first, second = amap.requests
    base = {"extensions": "base", "output": "JSON", "key": KEY}
    assert (first.path, first.query) == ("/v3/config/district", {"keywords": "海淀区", "subdistrict": "0", **base})
    assert (second.path, second.query) == ("/v3/weather/weatherInfo", {"city": "110108", **base})


def test_nothing_is_asked_before_a_call_and_a_code_only_once(amap: WebServer) -> None:
    AmapWeather({"url": amap.url, "api_key": KEY})
    assert amap.requests == []
    weather(amap, "海淀区", "海淀区", "110108")
    assert [request.path for request in amap.requests] == ["/v3/config/district", *["/v3/weather/weatherInfo"] * 3]


def test_of_places_whose_names_begin_alike_the_one_of_the_name_is_meant(amap: WebServer) -> None:
    found = [{"name": "海淀区街道", "adcode": "110109"}, {"name": "海淀区", "adcode": "110108"}]
    amap.put("/v3/config/district", said(districts=found))
    assert weather(amap, "海淀区").metadata["adcode"] == "110108"


def test_of_several_places_of_one_name_the_model_chooses(amap: WebServer) -> None:
    found = [{"name": "朝阳区", "adcode": "110105"}, {"name": "朝阳区", "adcode": "220104"}]
    amap.put("/v3/config/district", said(districts=found))
    with pytest.raises(
        ToolArgumentError, match=r"several places match 朝阳区; .*adcodes: 朝阳区 110105, 朝阳区 220104"
    ):
        weather(amap, "朝阳区")


@pytest.mark.parametrize("districts", [[], [{"name": "中国", "adcode": []}]])
def test_a_place_that_nobody_knows_is_named(amap: WebServer, districts: object) -> None:
    amap.put("/v3/config/district", said(districts=districts))
    with pytest.raises(ToolArgumentError, match="no place named Atlantis"):
        weather(amap, "Atlantis")


@pytest.mark.parametrize("lives", [[], [[]], [{}]])
def test_a_place_without_weather_is_named(amap: WebServer, lives: object) -> None:
    amap.put("/v3/weather/weatherInfo", said(lives=lives))
    with pytest.raises(ToolArgumentError, match="Amap has no weather data for 999999"):
        weather(amap, "999999")


def test_a_refusal_says_why_and_never_the_key(amap: WebServer) -> None:
    refused = {"status": "0", "info": f"INVALID_USER_KEY {KEY}", "infocode": "10001"}
    amap.put("/v3/weather/weatherInfo", WebAnswer.json(refused))
    with pytest.raises(ToolServiceError, match=r"INVALID_USER_KEY \[key\] \(10001\)") as caught:
        weather(amap, "110108")
    assert KEY not in str(caught.value)
    amap.put("/v3/config/district", WebAnswer.json({"status": "0", "info": "USER_DAILY_QUERY_OVER_LIMIT"}))
    with pytest.raises(ToolServiceError, match="USER_DAILY_QUERY_OVER_LIMIT"):
        weather(amap, "海淀区")


@pytest.mark.parametrize(
    "wire", [{}, [], {"status": "1"}, {"status": "1", "lives": 7}, {"status": "1", "lives": ["x"]}]
)
def test_an_answer_of_another_form_is_an_error(amap: WebServer, wire: object) -> None:
    amap.put("/v3/weather/weatherInfo", WebAnswer.json(wire))
    with pytest.raises(ToolServiceError, match="not this service's JSON"):
        weather(amap, "110108")


def test_a_key_is_needed_and_read_late(amap: WebServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AMAP_TOKEN", raising=False)
    with pytest.raises(MissingSecretError, match=r"amap_weather needs an API key: .*AMAP_TOKEN"):
        weather(amap, "110108", api_key=None)
    monkeypatch.setenv("AMAP_TOKEN", KEY)
    assert weather(amap, "110108", api_key=None).content.startswith("110108的天气")


def test_ten_megabytes_are_refused_before_anybody_is_asked(amap: WebServer) -> None:
    with pytest.raises(ToolArgumentError):
        weather(amap, "x" * 10_000_000)
    assert amap.requests == []


def test_the_code_of_a_place_is_remembered_for_so_many_places(amap: WebServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tool, "_MOST_KNOWN", 2)
    weather(amap, "a", "b", "a", "c", "b", "a")
    asked = [request.query["keywords"] for request in amap.requests if request.path.endswith("district")]
    assert asked == ["a", "b", "c", "a"], "the place that was asked for first is forgotten first"


def test_what_amap_says_is_bounded(amap: WebServer) -> None:
    amap.put("/v3/weather/weatherInfo", said(lives=[{**LIVE, "weather": "云" * 101, "city": "市" * 100}]))
    live = weather(amap, "110108").metadata["weather"]
    assert (live["weather"], live["city"]) == ("云" * 100, "市" * 100)
    many = [{"name": "区" * 101, "adcode": f"{number}"} for number in range(110100, 110111)]
    amap.put("/v3/config/district", said(districts=many))
    with pytest.raises(ToolArgumentError, match="several places") as caught:
        weather(amap, "区")
    shown = str(caught.value).partition("adcodes: ")[2].split(", ")
    assert shown == [f"{'区' * 100} {number}" for number in range(110100, 110110)]


@pytest.mark.parametrize("code", ["11010", "1101088", "11010x", "\uff11\uff11\uff10\uff11\uff10\uff18"])
def test_only_six_digits_are_a_code(amap: WebServer, code: str) -> None:
    weather(amap, code)
    assert [request.path.rpartition("/")[2] for request in amap.requests] == ["district", "weatherInfo"]


def test_a_code_of_another_form_is_no_place(amap: WebServer) -> None:
    amap.put(
        "/v3/config/district", said(districts=[{"name": "a", "adcode": "11010"}, {"name": "b", "adcode": "110108"}])
    )
    assert weather(amap, "x").metadata["adcode"] == "110108"


def test_an_empty_place_asks_nobody(amap: WebServer) -> None:
    with pytest.raises(ToolArgumentError, match="the location is empty"):
        weather(amap, " ")
    assert amap.requests == []
