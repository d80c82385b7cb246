"""Web search services: their requests and responses."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from jackfield_http.keys import KeyRule
from jackfield_http.service import JSONService, Place

ProviderName = Literal["serper", "searxng"]


@dataclass(frozen=True, slots=True)
class Page:
    """A page in the search results. Fields missing from the response are ''."""

    title: str
    url: str
    excerpt: str
    date: str


@dataclass(frozen=True, slots=True)
class Provider:
    """A web search service.

    Attributes:
        service: The address and the API key rule of the service.
        ask: Requests a number of pages for a query, best first. The service may return more or fewer.
    """

    service: Place
    ask: Callable[[JSONService, str, int], Awaitable[Sequence[Page]]]


async def _ask_serper(service: JSONService, query: str, count: int) -> Sequence[Page]:
    return await service.ask(_read_serper, body={"q": query, "num": count})


def _read_serper(wire: Any) -> Sequence[Page]:
    # Without a hit, the answer has no list and only repeats the query.
    results = wire.get("organic", ()) if "searchParameters" in wire else wire["organic"]
    return [_page(entry, "link", "snippet", "date") for entry in results]


async def _ask_searxng(service: JSONService, query: str, count: int) -> Sequence[Page]:  # noqa: ARG001 - it takes none
    return await service.ask(_read_searxng, query={"q": query, "format": "json"})


def _read_searxng(wire: Any) -> Sequence[Page]:
    return [_page(entry, "url", "content", "publishedDate") for entry in wire["results"]]


def _page(entry: Mapping[str, Any], url: str, excerpt: str, date: str) -> Page:
    return Page(*(str(entry.get(name) or "") for name in ("title", url, excerpt, date)))


PROVIDERS: Mapping[ProviderName, Provider] = {
    "serper": Provider(
        Place(
            "https://google.serper.dev/search",
            KeyRule("SERPER_API_KEY", ("google.serper.dev",), "SERPER_URL"),
            header="x-api-key",
        ),
        _ask_serper,
    ),
    "searxng": Provider(
        Place(open=True, refusing="enable 'json' under 'search.formats' in the server's settings"), _ask_searxng
    ),
}
"""By name in the settings. Sources: https://serper.dev/playground, https://docs.searxng.org/dev/search_api.html"""
