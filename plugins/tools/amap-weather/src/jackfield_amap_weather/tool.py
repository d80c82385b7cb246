"""The `amap_weather` tool: current weather in China from the Amap web service."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jackfield.errors import ToolArgumentError
from jackfield.plugins import default_host
from jackfield.tools import BaseTool, ToolResult, says_if_not_awaited
from jackfield_amap_weather.plugin import tools
from jackfield_http.keys import KeyRule
from jackfield_http.service import JSONService, Place, RefusalInAnswerError, ServiceConfig

# Source: https://lbs.amap.com/api/webservice/guide/api/weatherinfo and …/district
_AMAP = Place("https://restapi.amap.com", KeyRule("AMAP_TOKEN", ("restapi.amap.com",)), parameter="key")
_WEATHER = "/v3/weather/weatherInfo"
_DISTRICTS = "/v3/config/district"
_ADCODE = re.compile(r"\d{6}", re.ASCII)
_MOST_KNOWN = 1000
_MOST_SHOWN = 10


class AmapWeatherConfig(ServiceConfig):
    """Settings for the Amap service. `url` is the base address, without a path."""


@dataclass(frozen=True, slots=True)
class _District:
    name: str
    adcode: str


class AmapWeather(BaseTool):
    """Returns the current weather of a Chinese city or district.

    A place name is resolved to its Amap code (adcode), which is cached.
    """

    name = "amap_weather"
    description = tools()[0].description
    parameters = tools()[0].parameters
    effects = tools()[0].effects
    read_only = True
    raw_argument = "location"

    config_class = AmapWeatherConfig
    config: AmapWeatherConfig

    def __init__(self, cfg: AmapWeatherConfig | Mapping[str, object] | None = None, **settings: Any) -> None:
        super().__init__(cfg, **settings)
        self._service = JSONService(
            self.name, _AMAP, self.config, settings=lambda: (self.host or default_host()).settings
        )
        self._known: dict[str, str] = {}

    @says_if_not_awaited
    async def call(self, params: str | Mapping[str, Any], **_: object) -> ToolResult:
        """Return the current weather for a location, as a Chinese sentence.

        Raises:
            ToolArgumentError: The location is empty, unknown or ambiguous.
            ToolServiceError: Amap failed or rejected the request.
            ConfigError: The API key is missing, or the address is not usable.
        """
        location = self.parse_arguments(params)["location"].strip()
        if not location:
            raise ToolArgumentError("the location is empty: pass the name of a city or district")
        adcode = location if _ADCODE.fullmatch(location) else await self._adcode(location)
        query = {"city": adcode, "extensions": "base", "output": "JSON"}
        answer = await self._service.ask(_read_weather, path=_WEATHER, query=query)
        if answer is None:
            raise ToolArgumentError(f"Amap has no weather data for {location}: pass a city or district in China")
        weather, temperature, live = answer
        return ToolResult(f"{location}的天气是{weather}温度是{temperature}度。", {"adcode": adcode, "weather": live})

    async def aclose(self) -> None:
        """Close the connections; the next call opens new ones."""
        await self._service.aclose()

    async def _adcode(self, location: str) -> str:
        adcode = self._known.get(location)
        if adcode is None:
            query = {"keywords": location, "subdistrict": "0", "extensions": "base", "output": "JSON"}
            adcode = _choose_adcode(location, await self._service.ask(_read_districts, path=_DISTRICTS, query=query))
            self._known[location] = adcode
            while len(self._known) > _MOST_KNOWN:
                del self._known[next(iter(self._known))]
        return adcode


def _read_weather(wire: Any) -> tuple[str, str, dict[str, str]] | None:
    """Return the conditions, the temperature and the full live report, or None if Amap has no report."""
    _check_status(wire)
    if not wire["lives"] or not wire["lives"][0]:
        return None
    live = {str(name): str(value)[:100] for name, value in wire["lives"][0].items()}
    return live["weather"], live["temperature"], live


def _read_districts(wire: Any) -> list[_District]:
    _check_status(wire)
    return [_District(str(entry["name"])[:100], str(entry["adcode"])[:6]) for entry in wire["districts"]]


def _check_status(wire: Any) -> None:
    # Amap refuses with HTTP 200, and a text for the status.
    if wire["status"] != "1":
        raise RefusalInAnswerError(f"{wire['info']} ({wire.get('infocode', '')})")


def _choose_adcode(location: str, districts: list[_District]) -> str:
    """Return the adcode of the one district that matches a location name.

    Raises:
        ToolArgumentError: No district matches, or several do.
    """
    matches = [one for one in districts if one.name == location] or districts
    codes = {one.adcode: one.name for one in matches if _ADCODE.fullmatch(one.adcode)}
    if not codes:
        raise ToolArgumentError(
            f"Amap found no place named {location}: pass the Chinese name of a city or district in China"
        )
    if len(codes) > 1:
        some = ", ".join(f"{name} {code}" for code, name in list(codes.items())[:_MOST_SHOWN])
        raise ToolArgumentError(f"several places match {location}; call again with one of these adcodes: {some}")
    return next(iter(codes))
