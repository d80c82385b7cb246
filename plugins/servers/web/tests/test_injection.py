# ruff: noqa: E501 - attempts are long
"""Nothing that a model, a tool or a file says runs on the page, loads anything, or leaves its place."""

from __future__ import annotations

import itertools
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from jackfield import tool
from jackfield.events import FunctionCallDelta, ModelEvent, ModelFinished, ReasoningDelta, TextDelta
from jackfield.request import ChatRequest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

RUN = "window.hit=(window.hit||0)+1"
HTML = [
    f"<script>{RUN}</script>",
    f"<img src=x onerror={RUN}>",
    f"<svg onload={RUN}></svg>",
    f"<body onload={RUN}>",
    f"<iframe srcdoc='<script>parent.{RUN}</script>'></iframe>",
    f"<details open ontoggle={RUN}>x</details>",
    f"<input autofocus onfocus={RUN}>",
    f"<video><source onerror={RUN}></video>",
    f"<math><mi xlink:href='javascript:{RUN}'>x</mi></math>",
    "<form action='https://evil.example'><button>x</button></form>",
    "<base href='https://evil.example/'>",
    "<meta http-equiv=refresh content='0;url=https://evil.example'>",
    "<style>body{display:none}</style>",
    "<link rel=stylesheet href='https://evil.example/x.css'>",
    "<object data='https://evil.example'></object>",
    f"<svg><script>{RUN}</script></svg>",
    f"<svg><a xlink:href='javascript:{RUN}'><text>x</text></a></svg>",
    f"<noscript><p title='</noscript><img src=x onerror={RUN}>'>",
    f"<math><mtext><table><mglyph><style><img src=x onerror={RUN}>",
    f"<template><script>{RUN}</script></template>",
    "<img src='https://evil.example/p.png'>",
    f"<a href='javascript:{RUN}'>x</a>",
]
LINKS = [
    f"javascript:{RUN}",
    f"JaVaScRiPt:{RUN}",
    f"java\tscript:{RUN}",
    f"&#106;avascript:{RUN}",
    f"%6aavascript:{RUN}",
    f"data:text/html,<script>{RUN}</script>",
    "data:image/svg+xml;base64,PHN2Zy8+",
    f"vbscript:{RUN}",
    "file:///etc/passwd",
    "//evil.example/x",
    f"\x01javascript:{RUN}",
    "blob:https://evil.example/x",
]
MARKDOWN = [
    *HTML, *(f"[x]({link})" for link in LINKS), *(f"![x]({link})" for link in LINKS), *(f"<{link}>" for link in LINKS),
    *(f"[x]: {link}\n\n[x]" for link in LINKS), "![x](https://evil.example/p.png)", "[a](https://evil.example \"t' onmouseover=1 \")",
    *(f"> {html}" for html in HTML), *(f"| a |\n|--|\n| {html} |" for html in HTML),
    *(f"`{html}`" for html in HTML), *(f"```html\n{html}\n```" for html in HTML), *(f"```python\n{html}\n```" for html in HTML),
    *(f"$${html}$$" for html in HTML), f"$$\\href{{javascript:{RUN}}}{{x}}$$", f"$$\\url{{javascript:{RUN}}}$$",
    "$$\\includegraphics{https://evil.example/p.png}$$", f"$$\\class{{x\" onclick=\"{RUN}}}{{x}}$$", "| a |\n|--|\n| <img src=x onerror=alert(1)> |",
    "\x1b[31mred\x1b[0m \x1b]8;;https://evil.example\x07x\x1b]8;;\x07", "\u202etxt.exe\u202c", "</div></article><h1>outside</h1>",
]  # fmt: skip


@tool
def show(text: str) -> str:
    """Show a text."""
    return text


def test_no_text_from_outside_does_anything(
    serve: Callable[..., str], tab: Callable[..., Any], pilot: Callable[..., Any]
) -> None:
    attempts = iter(MARKDOWN)

    async def write(request: ChatRequest) -> AsyncIterator[ModelEvent]:
        if request.messages[-1].role == "function":
            yield TextDelta("done")
            yield ModelFinished("stop")
            return
        batch = list(itertools.islice(attempts, 25))
        for text in batch:
            yield ReasoningDelta(text)
        yield TextDelta("\n\n".join(batch))
        for number, text in enumerate(batch):
            yield FunctionCallDelta(number, f"c{number}", "show", json.dumps({"text": text}))
        yield ModelFinished("tool_calls")

    assert len(MARKDOWN) >= 200
    person = tab(serve(pilot(write, show)))
    asked: list[str] = []
    person.page.on("request", lambda request: asked.append(request.url))
    home = person.page.url.partition("#")[0]
    for number in range(len(MARKDOWN) // 25 + 1):
        person.ask(MARKDOWN[number])
        person.wait_for(f".run:nth-child({number + 1}) >> text=done")
        person.wait_until_answered()
    for box in person.page.query_selector_all("details"):
        box.evaluate("element => { element.open = true }")
    for _ in range(2):  # live, and then from the record
        for link in person.page.query_selector_all("#log a"):
            assert link.evaluate("element => element.protocol") in ("https:", "http:", "mailto:"), link.inner_text()
        forbidden = "#log :is(script, iframe, object, embed, form:not(.approval), base, meta, style, link, svg, template, input)"
        assert person.page.query_selector(forbidden) is None
        assert person.page.query_selector("main > h1, body > h1") is None
        assert person.page.evaluate("window.hit ?? 0") == 0
        assert not person.page.evaluate(
            "[...document.querySelectorAll('#log *')].some(one => [...one.attributes].some(a => /^on/i.test(a.name)))"
        )
        person.page.reload()
        person.wait_for("text=done")
    assert all(url.startswith((home, "data:")) for url in asked), [url for url in asked if not url.startswith(home)]
