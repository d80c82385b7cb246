"""Services that answer tools with nonsense: wrong shapes, wrong types, half an answer, or invalid JSON."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from attacks.kind import Attempt, Kind, law
from jackfield import sync
from jackfield.errors import ToolServiceError
from jackfield.tools import BaseTool, ToolContext
from jackfield_amap_weather.tool import AmapWeather
from jackfield_image_search.tool import ImageSearch
from jackfield_testkit.web import WebAnswer, WebServer
from jackfield_web_search.tool import WebSearch

KEY = "sk-0123456789abcdef"
TRIES = 30
MOST_CHARS = 100_000
ODD: tuple[Any, ...] = (
    None,
    0,
    -1,
    1e308,
    True,
    "",
    "x" * 200_000,
    "\0\ud83d",
    KEY,
    [],
    [[]],
    {},
    {"a": {}},
    [None, 7],
)
STATUSES = (200, 200, 200, 200, 201, 204, 302, 401, 403, 404, 429, 500)

PAGE = {"title": "T", "link": "https://x.example/", "snippet": "S", "source": "C", "thumbnail": "http://10.0.0.1/x.png"}
ANSWERS: Mapping[str, tuple[Callable[[Mapping[str, Any]], BaseTool], Mapping[str, Any], Any]] = {
    "serper": (WebSearch, {"query": "x"}, {"searchParameters": {"q": "x"}, "organic": [PAGE, PAGE]}),
    "serpapi": (ImageSearch, {"img_idx": 0}, {"search_metadata": {"status": "Success"}, "image_results": [PAGE]}),
    "amap": (
        AmapWeather,
        {"location": "110000"},
        {"status": "1", "info": "OK", "lives": [{"weather": "晴", "temperature": "21"}]},
    ),
}


def attempts(dice: random.Random) -> Iterator[Attempt]:
    """Yield answers of each service that differ in a few places from a correct one, without end."""
    while True:
        for name in ANSWERS:
            seed = dice.randrange(2**32)
            yield Attempt(f"{name} (seed {seed})", partial(_nonsense, name, seed), counts=TRIES, timeout_s=60.0)


def _nonsense(name: str, seed: int) -> None:
    dice = random.Random(seed)
    make, arguments, right = ANSWERS[name]
    with WebServer() as web:
        path = "/v3/weather/weatherInfo" if name == "amap" else "/service"
        url = web.url if name == "amap" else f"{web.url}{path}"
        tool = make({"url": url, "api_key": KEY, "max_retries": 0, "request_timeout": 15})
        for _ in range(TRIES):
            web.put(path, _answer(right, dice))
            said = sync.run(_said(tool, arguments))
            law(said.strip() and len(said) < MOST_CHARS, f"a model reads {len(said)} characters")
        sync.run(tool.aclose())  # type: ignore[attr-defined]


async def _said(tool: BaseTool, arguments: Mapping[str, Any]) -> str:
    context = ToolContext(files=("https://photos.example/1.jpg",))
    try:
        content = (await tool.call(dict(arguments), context=context)).content  # type: ignore[misc]
    except ToolServiceError as error:
        law(KEY not in str(error), f"an error shows the key: {error}")
        return str(error)
    if isinstance(content, str):
        return content
    return "\n".join(str(item.value) for item in content)


def _answer(right: Any, dice: random.Random) -> WebAnswer:
    value = copy.deepcopy(right)
    for _ in range(dice.randrange(3)):
        value = _changed(value, dice)
    body = json.dumps(value).encode()
    if dice.random() < 0.2:
        body = body[: dice.randrange(len(body) + 1)] + dice.randbytes(dice.randrange(9))
    kind = dice.choice(("application/json", "text/html", "image/png", ""))
    encoding = {"content-encoding": "gzip"} if dice.random() < 0.05 else {}
    return WebAnswer(body, {"content-type": kind, "location": "http://10.0.0.1/", **encoding}, dice.choice(STATUSES))


def _changed(value: Any, dice: random.Random) -> Any:
    """Return the value with something odd inserted somewhere, or in its place."""
    places = list(value) if isinstance(value, dict) else list(range(len(value))) if isinstance(value, list) else []
    if not places or dice.random() < 0.2:
        return copy.deepcopy(dice.choice(ODD))
    place = dice.choice(places)
    if isinstance(value, dict) and dice.random() < 0.2:
        del value[place]
    else:
        value[place] = _changed(value[place], dice)
    return value


KIND = Kind("Whatever a service answers, the model gets text of limited length, and no error contains a key.", attempts)
