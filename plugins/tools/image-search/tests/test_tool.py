"""What a model gets of each provider, asked in the provider's own format on loopback."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from jackfield.errors import ConfigError, ToolArgumentError, ToolServiceError
from jackfield.messages import ContentItem, Message
from jackfield.tools import ToolContext
from jackfield_image_search.plugin import tools
from jackfield_image_search.tool import ImageSearch
from jackfield_testkit.web import WebAnswer, WebServer

KEY = "key-1234567890abcdef"
PNG = b"\x89PNG\r\n\x1a\n and more"
IMAGE = "https://photos.example/1.jpg?sig=a&b"
ALLOWED = {"allow": ["127.0.0.1"], "max_bytes": 1000, "timeout_s": 60}


@pytest.fixture
def web() -> Iterator[WebServer]:
    with WebServer() as server:
        server.put("/thumb.png", WebAnswer(PNG))
        server.put("/page.png", WebAnswer(b"<html>gone", {"content-type": "image/png"}))
        yield server


def search(
    web: WebServer,
    *images: str,
    index: int = 0,
    wire: object = None,
    provider: str = "serpapi",
    files: tuple[str, ...] = (),
    **settings: Any,
) -> Any:
    if wire is not None:
        web.put("/search", WebAnswer.json(wire))
    given = {
        "url": f"{web.url}/search",
        "api_key": KEY,
        "max_retries": 0,
        "request_timeout": 60,
        "fetch_cfg": ALLOWED,
        **settings,
    }
    tool = ImageSearch({"provider": provider, **given})
    messages = tuple(Message("user", [ContentItem(image=image)]) for image in images)
    context = ToolContext(messages=messages, files=files)

    async def once() -> Any:
        try:
            return await tool.call({"img_idx": index}, context=context)
        finally:
            await tool.aclose()

    return asyncio.run(once())


def serpapi(*matches: object) -> dict[str, object]:
    return {"search_metadata": {"status": "Success"}, "image_results": list(matches)}


def test_serpapi_is_asked_as_it_documents(web: WebServer) -> None:
    match = {"title": "A\nlighthouse", "link": "https://c.example/", "source": "C", "thumbnail": f"{web.url}/thumb.png"}
    found = search(web, IMAGE, wire=serpapi(match))
    assert [item.text for item in found.content if item.text] == ["[1] A lighthouse\nhttps://c.example/\nC"]
    assert found.content[1].image == "data:image/png;base64,iVBORw0KGgogYW5kIG1vcmU="
    assert found.metadata == {"provider": "serpapi", "sources": ["https://c.example/"], "images_missing": 0}
    assert web.requests[0].method == "GET"
    assert web.requests[0].query == {"engine": "google_reverse_image", "image_url": IMAGE, "api_key": KEY}


def test_what_a_match_lacks_is_left_out(web: WebServer) -> None:
    match = {"title": None, "link": "https://c.example/", "source": None, "thumbnail": None}
    assert [item.text for item in search(web, IMAGE, wire=serpapi(match)).content] == ["[1] https://c.example/"]


def test_serper_is_asked_as_it_documents(web: WebServer) -> None:
    match = {"title": "T", "link": "https://c.example/", "source": "C", "imageUrl": f"{web.url}/thumb.png"}
    wire = {"searchParameters": {"type": "lens"}, "organic": [match], "credits": 3}
    assert len(search(web, IMAGE, wire=wire, provider="serper").content) == 2
    assert (web.requests[0].method, web.requests[0].json) == ("POST", {"url": IMAGE})
    assert web.requests[0].headers["x-api-key"] == KEY


def test_an_index_beyond_the_images_means_the_nearest_one(web: WebServer) -> None:
    images = [f"https://photos.example/{number}.jpg" for number in range(3)]
    for index in (-5, 1, 99):
        search(web, *images, index=index, wire=serpapi())
    assert [request.query["image_url"][-5] for request in web.requests] == ["0", "1", "2"]


@pytest.mark.parametrize(
    "there",
    ["/page.png", "/none.png", "http://10.0.0.1/x.png", "file:///etc/passwd", "data:image/png;base64,xx", "/flood", 7],
)
def test_a_page_whose_image_cannot_be_had_is_given_without_it(web: WebServer, there: object) -> None:
    web.put("/flood", WebAnswer(PNG, ending="never"))
    where = f"{web.url}{there}" if isinstance(there, str) and there.startswith("/") else there
    match = {"title": "T", "link": "https://c.example/", "thumbnail": where}
    found = search(web, IMAGE, wire=serpapi(match))
    assert [item.text for item in found.content] == ["[1] T\nhttps://c.example/"]
    assert found.metadata["images_missing"] == 1
    larger = search(web, IMAGE, wire=serpapi({**match, "original": f"{web.url}/thumb.png"}))
    assert larger.content[1].image


@pytest.mark.parametrize(
    ("provider", "small", "large"), [("serpapi", "thumbnail", "original"), ("serper", "thumbnailUrl", "imageUrl")]
)
def test_the_smallest_image_of_each_page_is_shown_behind_its_text(
    web: WebServer, provider: str, small: str, large: str
) -> None:
    for name in "abc":
        web.put(f"/{name}", WebAnswer(PNG + name.encode()))
    pages = [
        {"title": "1", small: f"{web.url}/a", large: f"{web.url}/b"},
        {"title": "2", small: f"{web.url}/none"},
        {"title": "3", large: f"{web.url}/c"},
    ]
    wire = {"serpapi": serpapi(*pages), "serper": {"searchParameters": {}, "organic": pages}}[provider]
    found = search(web, IMAGE, wire=wire, provider=provider)
    shown = [item.text or base64.b64decode(item.image.partition(",")[2])[-1:] for item in found.content]
    assert shown == ["[1] 1", b"a", "[2] 2", "[3] 3", b"c"]
    assert found.metadata["images_missing"] == 1


def test_an_image_among_the_files_of_the_conversation_is_searched_for(web: WebServer) -> None:
    search(
        web, IMAGE, index=1, wire=serpapi(), files=("https://photos.example/notes.txt", "https://photos.example/2.jpg")
    )
    assert web.requests[0].query["image_url"] == "https://photos.example/2.jpg"


def test_a_result_that_names_an_image_of_this_machine_shows_none(web: WebServer, tmp_path: Path) -> None:
    image = tmp_path / "a.png"
    image.write_bytes(PNG)
    for there in (str(image), image.as_uri()):
        match = {"title": "T", "link": "https://c.example/", "thumbnail": there}
        assert search(web, IMAGE, wire=serpapi(match)).metadata["images_missing"] == 1


@pytest.mark.parametrize("more", [0, 1])
def test_an_image_has_the_bytes_that_the_settings_allow(web: WebServer, more: int) -> None:
    match = {"title": "T", "link": "https://c.example/", "thumbnail": f"{web.url}/thumb.png"}
    allowed = {**ALLOWED, "max_bytes": len(PNG) - more}
    assert search(web, IMAGE, wire=serpapi(match), fetch_cfg=allowed).metadata["images_missing"] == more


def test_an_image_that_was_found_is_not_fetched_from_a_private_network(web: WebServer) -> None:
    match = {"title": "T", "link": "https://c.example/", "thumbnail": f"{web.url}/thumb.png"}
    search(web, IMAGE, wire=serpapi(match), fetch_cfg={})
    assert [request.path for request in web.requests] == ["/search"]


@pytest.mark.parametrize("provider", ["serpapi", "serper"])
def test_nothing_found_is_a_result(web: WebServer, provider: str) -> None:
    wire = {
        "serpapi": {"search_metadata": {"status": "Success"}, "error": "Google hasn't returned any results."},
        "serper": {"searchParameters": {}},
    }[provider]
    assert search(web, IMAGE, wire=wire, provider=provider).content == "Nothing similar was found."


@pytest.mark.parametrize("provider", ["serpapi", "serper"])
@pytest.mark.parametrize("wire", [{}, [], {"image_results": 7, "organic": 7}, {"image_results": [7], "organic": [7]}])
def test_an_answer_of_another_form_is_an_error(web: WebServer, provider: str, wire: object) -> None:
    with pytest.raises(ToolServiceError, match="not this service's JSON"):
        search(web, IMAGE, wire=wire, provider=provider)


def test_a_refusal_never_shows_the_key(web: WebServer) -> None:
    web.put("/search", WebAnswer.json({"error": f"Invalid API key {KEY}."}, status=401))
    with pytest.raises(ToolServiceError, match=r"Invalid API key \[key\].*SERPAPI_IMAGE_SEARCH_KEY") as caught:
        search(web, IMAGE)
    assert KEY not in str(caught.value)
    wire = {"search_metadata": {"status": "Error"}, "error": f"Your account {KEY} has run out of searches."}
    with pytest.raises(ToolServiceError, match=r"Your account \[key\] has run out of searches"):
        search(web, IMAGE, wire=wire)


@pytest.mark.parametrize(
    ("images", "said"),
    [
        ((), "this conversation contains no image"),
        (("/a.png",), "requires an image with an https:// or http:// URL"),
        (("data:,x",), "requires an image with an https:// or http:// URL"),
    ],
)
def test_an_image_without_an_address_is_not_searched_for(web: WebServer, images: tuple[str, ...], said: str) -> None:
    with pytest.raises(ToolArgumentError, match=said):
        search(web, *images)
    assert web.requests == []


@pytest.mark.parametrize("image", ["http://c.example/a.png", "HTTPS://C.EXAMPLE/a.png"])
def test_an_image_at_any_address_of_the_web_is_searched_for(web: WebServer, image: str) -> None:
    search(web, image, wire=serpapi())
    assert web.requests[0].query["image_url"] == image


@pytest.mark.parametrize(("number", "fits"), [(0, False), (1, True), (20, True), (21, False)])
def test_a_result_has_one_to_twenty_pages(number: int, fits: bool) -> None:
    with nullcontext() if fits else pytest.raises(ConfigError, match="max_results"):
        assert ImageSearch(max_results=number).config.max_results == number


def test_each_part_of_a_page_has_its_limit(web: WebServer) -> None:
    parts = ("title", "link", "source")
    found = search(web, IMAGE, wire=serpapi({name: name[0] * 2001 for name in parts}))
    assert found.content[0].text == f"[1] {'t' * 2000}\n{'l' * 2000}\n{'s' * 2000}"
    shorter = search(web, IMAGE, wire=serpapi({name: name[0] * 2000 for name in parts}))
    assert shorter.content[0].text == found.content[0].text


def test_the_settings_have_the_defaults_of_the_readme() -> None:
    config, fetching = ImageSearch().config, ImageSearch()._fetcher.config
    assert (config.provider, config.max_results, config.request_timeout, config.max_retries) == ("serpapi", 5, 20, 2)
    assert (fetching.timeout_s, fetching.max_bytes, fetching.allow) == (10, 2 * 2**20, ())
    assert ImageSearch(fetch_cfg={"max_bytes": 9})._fetcher.config.timeout_s == 10
    (spec,) = tools()
    assert {*spec.secrets} == {"SERPAPI_IMAGE_SEARCH_KEY", "SERPER_API_KEY"}


def test_so_many_pages_are_shown_as_the_settings_say(web: WebServer) -> None:
    wire = serpapi(*({"title": str(number), "link": f"https://c.example/{number}"} for number in range(9)))
    assert len(search(web, IMAGE, wire=wire).content) == 5
    assert len(search(web, IMAGE, wire=wire, max_results=2).metadata["sources"]) == 2


@pytest.mark.parametrize("image", ["httpx://c.example/a.png", "https:/c.example/a.png", "ftp://c.example/a.png"])
def test_an_image_at_another_kind_of_address_is_not_searched_for(web: WebServer, image: str) -> None:
    with pytest.raises(ToolArgumentError, match="requires an image with an https:// or http:// URL"):
        search(web, image)
    assert web.requests == []
