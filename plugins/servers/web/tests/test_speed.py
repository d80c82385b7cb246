"""The page sends, loads and draws no more than it must. Times are measured in `benchmarks/web_page.py`."""

from __future__ import annotations

import json
import re
import urllib.request
from collections.abc import AsyncIterator, Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from jackfield.events import ModelEvent, ModelFinished, TextDelta
from jackfield.request import ChatRequest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
STATIC = files("jackfield_web") / "static"
RUNS = 45


async def echo(request: ChatRequest) -> AsyncIterator[ModelEvent]:
    yield TextDelta(f"You said: {request.messages[-1].get_text_content()}")
    yield ModelFinished("stop")


def fetch(url: str, **headers: str) -> Any:
    return urllib.request.urlopen(
        urllib.request.Request(url, headers={k.replace("_", "-"): v for k, v in headers.items()})
    )


def test_a_first_visit_transfers_at_most_200_kb_and_a_later_one_next_to_nothing(
    serve: Callable[..., str], tab: Callable[..., Any], pilot: Callable[..., Any]
) -> None:
    sizes: list[int] = []

    def count(page: Any) -> None:
        session = page.context.new_cdp_session(page)
        session.send("Network.enable")
        session.on("Network.loadingFinished", lambda event: sizes.append(event["encodedDataLength"]))

    person = tab(serve(pilot(echo)), prepare=count)
    person.wait_for("#log .empty")
    assert 20_000 < sum(sizes) <= 200_000
    sizes.clear()
    person.page.reload()
    person.wait_for("#log .empty")
    assert sum(sizes) < 5_000


def test_grammars_and_formulas_are_loaded_only_when_an_answer_has_them(
    serve: Callable[..., str], tab: Callable[..., Any], pilot: Callable[..., Any]
) -> None:
    async def write(request: ChatRequest) -> AsyncIterator[ModelEvent]:
        yield TextDelta("```python\nx = 1\n```\n\nEnd.")
        yield ModelFinished("stop")

    loaded: list[str] = []
    person = tab(serve(pilot(write)), prepare=lambda page: page.on("request", lambda one: loaded.append(one.url)))
    person.wait_for("#log .empty")
    assert not [url for url in loaded if "hljs" in url or "temml" in url]
    person.ask("Go")
    person.wait_for(".hljs-number")
    assert sorted(url.rpartition("/")[2] for url in loaded if "hljs" in url or "temml" in url) == [
        "core.js",
        "python.js",
    ]


def test_all_modules_of_the_page_are_requested_at_once() -> None:
    page = STATIC.joinpath("index.html").read_text(encoding="utf-8")
    modules = {entry.name for entry in STATIC.iterdir() if entry.name.endswith(".js")}
    imported = {
        name
        for module in modules
        for name in re.findall(r'^import .* from "\./(.+)";', (STATIC / module).read_text(), re.M)
    }
    preloaded = set(re.findall(r'<link rel="modulepreload" href="static/(.+)">', page))
    assert preloaded == imported, "index.html names each module that another one imports"


def test_files_with_the_version_in_their_address_are_kept_and_others_are_asked_for(
    serve: Callable[..., str], pilot: Callable[..., Any]
) -> None:
    url = serve(pilot(echo))
    page = fetch(url).read().decode()
    address = re.search(r'src="(static/v-[0-9a-f]{16}/app.js)"', page)
    assert address
    with fetch(f"{url}/{address[1]}", accept_encoding="gzip") as reply:
        assert "immutable" in reply.headers["cache-control"]
        assert reply.headers["content-encoding"] == "gzip"
        assert reply.headers["vary"] == "accept-encoding"
    with fetch(f"{url}/static/v-0123456789abcdef/app.js") as reply:
        assert reply.headers["cache-control"] == "no-store"
    with fetch(f"{url}/static/app.js") as reply:
        assert reply.headers["cache-control"] == "no-cache"
        etag = reply.headers["etag"]
    with pytest.raises(urllib.error.HTTPError) as caught:
        fetch(f"{url}/static/app.js", if_none_match=etag)
    with caught.value as unchanged:
        assert (unchanged.code, unchanged.read()) == (304, b"")


def test_a_long_conversation_is_loaded_from_its_end_and_the_rest_on_demand(
    serve: Callable[..., str], tab: Callable[..., Any], pilot: Callable[..., Any]
) -> None:
    url = serve(pilot(echo))
    run = ""
    for number in range(RUNS):
        body = {"agent": "pilot", "text": f"question {number}.", "conversation": "long", "continues": run}
        with urllib.request.urlopen(f"{url}/api/runs?follow", json.dumps(body).encode(), timeout=60) as reply:
            run = json.loads(reply.read().split(b"\n")[0][6:])["run"]
    with fetch(f"{url}/api/conversations/long?limit=10", accept_encoding="gzip") as reply:
        assert reply.headers["content-encoding"] == "gzip"

    asked: list[str] = []
    person = tab(
        f"{url}/#c=long",
        prepare=lambda page: page.on("request", lambda one: asked.append(one.url) if "/long?" in one.url else None),
        viewport={"width": 1280, "height": 500},
    )
    person.wait_for(f"text=You said: question {RUNS - 1}.")
    assert "limit=4" in asked[0]
    assert "before" not in asked[0]
    first = person.page.evaluate("document.querySelectorAll('.run').length")
    assert first < RUNS
    person.page.click("#export summary")
    with person.page.expect_download() as download:
        person.press("As Markdown")
    text = Path(download.value.path()).read_text(encoding="utf-8")
    assert re.findall(r"You said: question (\d+)", text) == [str(number) for number in range(RUNS)]
    person.page.evaluate("document.getElementById('log').scrollTop = 0")
    person.wait_for("text=You said: question 0.")
    assert person.page.evaluate("document.querySelectorAll('.run').length") == RUNS
    assert person.texts(".earlier") == []


@pytest.mark.parametrize("query", ["limit=0", "limit=x", "limit=-1", "limit=1001"])
def test_a_limit_that_is_no_number_of_runs_is_refused(
    query: str, serve: Callable[..., str], pilot: Callable[..., Any]
) -> None:
    with pytest.raises(urllib.error.HTTPError) as caught:
        fetch(f"{serve(pilot(echo))}/api/conversations/c?{query}")
    with caught.value as refused:
        assert refused.code == 400
        assert "`limit` must be a number from 1 to 1000" in refused.read().decode()
