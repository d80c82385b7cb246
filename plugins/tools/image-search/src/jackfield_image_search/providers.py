"""Reverse image search services: their requests and responses."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from jackfield_http.keys import KeyRule
from jackfield_http.service import JSONService, Place, RefusalInAnswerError

ProviderName = Literal["serpapi", "serper"]


@dataclass(frozen=True, slots=True)
class Match:
    """A page with a similar image. Fields missing from the response are ''.

    Attributes:
        title: The page title.
        url: The page URL.
        source: The name of the site.
        images: URLs of the image, smallest first.
    """

    title: str
    url: str
    source: str
    images: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Provider:
    """A reverse image search service.

    Attributes:
        service: The address and the API key rule of the service.
        ask: Returns pages with images similar to the one at a URL, most similar first.
    """

    service: Place
    ask: Callable[[JSONService, str], Awaitable[Sequence[Match]]]


async def _ask_serpapi(service: JSONService, url: str) -> Sequence[Match]:
    return await service.ask(_read_serpapi, query={"engine": "google_reverse_image", "image_url": url})


def _read_serpapi(wire: Any) -> Sequence[Match]:
    results = wire.get("image_results")
    if results is None:
        # "No results" comes as an error text with a success status.
        if wire["search_metadata"]["status"] != "Success":
            raise RefusalInAnswerError(str(wire["error"]))
        results = ()
    return [_match(entry, ("thumbnail", "original")) for entry in results]


async def _ask_serper(service: JSONService, url: str) -> Sequence[Match]:
    return await service.ask(_read_serper, body={"url": url})


def _read_serper(wire: Any) -> Sequence[Match]:
    results = wire.get("organic", ()) if "searchParameters" in wire else wire["organic"]
    return [_match(entry, ("thumbnailUrl", "imageUrl")) for entry in results]


def _match(entry: Mapping[str, Any], images: Sequence[str]) -> Match:
    title, url, source = (str(entry.get(name) or "") for name in ("title", "link", "source"))
    return Match(title, url, source, tuple(str(entry[name]) for name in images if entry.get(name)))


PROVIDERS: Mapping[ProviderName, Provider] = {
    "serpapi": Provider(
        Place(
            "https://serpapi.com/search.json",
            KeyRule("SERPAPI_IMAGE_SEARCH_KEY", ("serpapi.com",)),
            parameter="api_key",
        ),
        _ask_serpapi,
    ),
    "serper": Provider(
        Place("https://google.serper.dev/lens", KeyRule("SERPER_API_KEY", ("google.serper.dev",)), header="x-api-key"),
        _ask_serper,
    ),
}
"""By name in the settings. Sources: https://serpapi.com/google-reverse-image, https://serper.dev/playground"""
