"""What a model gets of each provider, asked in the provider's own format on loopback."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest

from jackfield import FnCallAgent
from jackfield.errors import ConfigError, MissingSecretError, ToolArgumentError, ToolServiceError
from jackfield.testing import ScriptedModel, answer, calls
from jackfield_testkit.web import WebAnswer, WebServer
from jackfield_web_search.plugin import tools
from jackfield_web_search.tool import WebSearch

KEY = "sk-1234567890abcdef"
KEY_OF = {"serper": KEY, "searxng": None}
HIT = {"title": "Tides", "link": "https://tides.example/", "snippet": "High water\ncomes twice.", "position": 1}


@pytest.fixture
def web() -> Iterator[WebServer]:
    with WebServer() as server:
        server.put("/search", WebAnswer.json({"searchParameters": {"q": "x"}, "organic": [HIT] * 30}))
        yield server


def search(web: WebServer, query: str = "tides", **settings: Any) -> Any:
    tool = WebSearch({"url": f"{web.url}/search", "api_key": KEY, "max_retries": 0, "request_timeout": 60, **settings})

    async def once() -> Any:
        try:
            return await tool.call(json.dumps({"query": query}))
        finally:
            await tool.aclose()

    return asyncio.run(once())


def test_serper_is_asked_as_it_documents(web: WebServer) -> None:
    found = search(web, "  tides 潮汐 ", max_results=2)
    assert found.content == (
        "[1] Tides\nhttps://tides.example/\nHigh water comes twice.\n\n"
        "[2] Tides\nhttps://tides.example/\nHigh water comes twice."
    )
    assert found.metadata == {"provider": "serper", "sources": ["https://tides.example/"] * 2}
    (request,) = web.requests
    assert (request.method, request.json) == ("POST", {"q": "tides 潮汐", "num": 2})
    assert (request.headers["x-api-key"], request.headers["content-type"]) == (KEY, "application/json")


def test_searxng_is_asked_as_it_documents_and_without_a_key(web: WebServer) -> None:
    entry = {"title": "Tides", "url": "https://t.example/", "content": "Twice.", "publishedDate": None, "engine": "x"}
    dated = {**entry, "title": None, "publishedDate": "2026-01-02T00:00:00"}
    web.put("/search", WebAnswer.json({"query": "tides", "results": [entry, dated], "answers": []}))
    found = search(web, "a&b", provider="searxng", api_key=None)
    assert found.content == (
        "[1] Tides\nhttps://t.example/\nTwice.\n\n[2] https://t.example/\nTwice. (2026-01-02T00:00:00)"
    )
    (request,) = web.requests
    assert (request.method, request.query) == ("GET", {"q": "a&b", "format": "json"})
    assert "x-api-key" not in request.headers


def test_a_searxng_server_that_gives_no_json_is_named_with_its_setting(web: WebServer) -> None:
    web.put("/search", WebAnswer(b"<!doctype html>", status=403))
    with pytest.raises(ToolServiceError, match=r"searxng\): HTTP 403: .*enable 'json' under 'search"):
        search(web, provider="searxng", api_key=None)


@pytest.mark.parametrize("provider", ["serper", "searxng"])
def test_nothing_found_is_a_result(web: WebServer, provider: str) -> None:
    empty = {"searchParameters": {"q": "x"}} if provider == "serper" else {"results": []}
    web.put("/search", WebAnswer.json(empty))
    assert search(web, provider=provider, api_key=KEY_OF[provider]).content == "Nothing was found: try different words."


@pytest.mark.parametrize("provider", ["serper", "searxng"])
@pytest.mark.parametrize("wire", [{}, [], {"organic": 7, "results": "x"}, {"organic": [7], "results": [None]}, None])
def test_an_answer_of_another_form_is_an_error(web: WebServer, provider: str, wire: object) -> None:
    web.put("/search", WebAnswer.json(wire))
    with pytest.raises(ToolServiceError, match="not this service's JSON: check the setting url"):
        search(web, provider=provider, api_key=KEY_OF[provider])


def test_what_a_provider_gives_is_bounded(web: WebServer) -> None:
    huge = {
        "title": "t" * 100_000,
        "link": "https://x/" + "u" * 100_000,
        "snippet": "s" * 100_000,
        "date": "d" * 10_000,
    }
    web.put("/search", WebAnswer.json({"organic": [huge] * 10}))
    assert len(search(web, max_results=10).content) < 50_000


@pytest.mark.parametrize("query", ["", " \n"])
def test_an_empty_query_asks_nobody(web: WebServer, query: str) -> None:
    with pytest.raises(ToolArgumentError, match="the query is empty: pass a question or keywords"):
        search(web, query)
    assert web.requests == []


def test_ten_megabytes_are_refused_before_anybody_is_asked(web: WebServer) -> None:
    with pytest.raises(ToolArgumentError, match="query") as caught:
        search(web, "x" * 10_000_000)
    assert web.requests == []
    assert len(str(caught.value)) < 2000


def test_a_key_is_needed_is_read_late_and_never_shown(monkeypatch: pytest.MonkeyPatch, web: WebServer) -> None:
    monkeypatch.delenv("SERPER_API_KEY", raising=False)
    tool = WebSearch()
    with pytest.raises(MissingSecretError, match=r"web_search \(serper\) needs an API key.* SERPER_API_KEY"):
        asyncio.run(tool.call({"query": "x"}))
    monkeypatch.setenv("SERPER_API_KEY", KEY)
    with pytest.raises(ConfigError, match=r"SERPER_API_KEY is not sent to other\.example"):
        asyncio.run(WebSearch({"url": "https://other.example/"}).call({"query": "x"}))
    monkeypatch.setenv("SERPER_URL", f"{web.url}/search")
    assert asyncio.run(tool.call({"query": "x"})).content.startswith("[1] Tides")
    assert KEY not in repr(WebSearch({"api_key": KEY}).cfg) + repr(WebSearch({"api_key": KEY}).config)


def test_an_agent_gets_the_failure_as_a_result(web: WebServer) -> None:
    web.put("/search", WebAnswer.json({"message": f"Too many requests by {KEY}"}, status=429))
    model = ScriptedModel([calls(("web_search", {"query": "x"})), answer("I could not search.")])
    tool = {"name": "web_search", "url": f"{web.url}/search", "api_key": KEY, "max_retries": 0}
    list(FnCallAgent([tool], model).run([{"role": "user", "content": "?"}]))
    said = model.requests[-1].messages[-1].get_text_content()
    assert said == "web_search (serper): HTTP 429: Too many requests by [key] (wait, or send fewer requests at once)"


def test_ten_pages_are_read_unless_the_settings_say_otherwise(web: WebServer) -> None:
    assert len(search(web).metadata["sources"]) == 10
    assert len(search(web, max_results=100).metadata["sources"]) == 30
    for number in (0, 101):
        with pytest.raises(ConfigError, match="max_results"):
            search(web, max_results=number)


def test_each_part_of_a_page_has_its_limit(web: WebServer) -> None:
    parts = {"title": ("t", 300), "link": ("u", 2000), "snippet": ("s", 2000), "date": ("d", 100)}
    for more in (0, 1):
        page = {name: letter * (most + more) for name, (letter, most) in parts.items()}
        web.put("/search", WebAnswer.json({"organic": [page]}))
        assert search(web).content == f"[1] {'t' * 300}\n{'u' * 2000}\n{'s' * 2000} ({'d' * 100})"


def test_the_settings_have_the_defaults_of_the_readme() -> None:
    config = WebSearch().config
    assert (config.provider, config.max_results, config.request_timeout, config.max_retries) == ("serper", 10, 20, 2)
    (spec,) = tools()
    assert spec.secrets == ("SERPER_API_KEY",)
