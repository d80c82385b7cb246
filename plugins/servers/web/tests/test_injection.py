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
    person.page.evaluate("for (const box of document.querySelectorAll('details')) box.open = true")
    for _ in range(2):  # live, and then from the record
        assert wrong_links(person, "#log a") == []
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


def wrong_links(person: Any, selector: str) -> list[str]:
    """Return the links that lead neither to a page nor to a letter."""
    wrong = "one => !['https:', 'http:', 'mailto:'].includes(one.protocol)"
    found: list[str] = person.page.evaluate(
        f"(selector) => [...document.querySelectorAll(selector)].filter({wrong}).map(one => one.outerHTML)", selector
    )
    return found


def check(person: Any, home: str, asked: list[str]) -> None:
    """Check that nothing on the page runs, loads something or leaves its place."""
    assert person.page.evaluate("window.hit ?? 0") == 0
    forbidden = (
        ":is(#log, #conversations, #source) :is(script, iframe, object, embed, base, meta, style, svg, template)"
    )
    assert person.page.query_selector(forbidden) is None
    assert person.page.query_selector("main > h1, body > h1, aside > h1") is None
    assert not person.page.evaluate(
        "[...document.querySelectorAll('body *')].some(one => [...one.attributes].some(a => /^on/i.test(a.name)))"
    )
    assert wrong_links(person, ":is(#log, #source) a") == []
    assert all(url.startswith((home, "data:")) for url in asked), [url for url in asked if not url.startswith(home)]


def test_imported_conversations_titles_and_search_hits_do_nothing(
    serve: Callable[..., str], tab: Callable[..., Any], pilot: Callable[..., Any]
) -> None:
    async def write(request: ChatRequest) -> AsyncIterator[ModelEvent]:
        yield TextDelta("done")
        yield ModelFinished("stop")

    url = serve(pilot(write))
    person = tab(url)
    asked: list[str] = []
    person.page.on("request", lambda request: asked.append(request.url))
    ids = []
    for start in range(0, len(MARKDOWN), 40):
        runs = []
        for number, text in enumerate(MARKDOWN[start : start + 40]):
            call = {"id": "c", "name": text[:200] or "x", "arguments": json.dumps({"url": text, "code": text})}
            source = json.dumps([{"url": f"/x/{text}", "text": [text]}])
            messages = [
                {"role": "user", "content": text, "name": text[:200]},
                {"role": "assistant", "reasoning": text, "call": call},
                {"role": "function", "name": text[:200], "call_id": "c", "content": source, "error": text[:200]},
                {"role": "assistant", "content": [{"text": text}, {"file": f"data:text/html;name={text},x"}]},
            ]
            runs.append({"id": f"r{number}", "agent": text[:200], "messages": messages})
        file = {"format": "jackfield-conversation", "version": 1, "title": MARKDOWN[start], "runs": runs}
        reply = person.page.request.post(f"{url}/api/conversations", data=file)
        assert reply.status == 201, reply.text()
        ids.append(reply.json()["id"])
    for one in ids:
        person.page.goto(f"{url}/#c={one}")
        person.page.reload()
        person.wait_for(".run .tool")
        check(person, url, asked)
    titles = iter((*HTML, "\u202egnp.exe", "x" * 200))
    while batch := list(zip(ids, titles, strict=False)):
        for one, title in batch:
            path = f"{url}/api/conversations/{one}"
            assert person.page.request.fetch(path, method="PATCH", data={"title": title}).status == 204
        person.page.reload()
        person.wait_for("#conversations .title")
        check(person, url, asked)
    for text in ("evil", "<img", "javascript:", "\\href", ".*", "(["):
        person.page.fill("#find", text)
        person.page.wait_for_timeout(600)  # the search
        check(person, url, asked)


def test_what_pending_calls_and_questions_say_does_nothing(
    serve: Callable[..., str], tab: Callable[..., Any], pilot: Callable[..., Any]
) -> None:
    async def write(request: ChatRequest) -> AsyncIterator[ModelEvent]:
        for number, text in enumerate([*HTML, *LINKS]):
            edits = [{"old_text": text, "new_text": text}]
            arguments = {"path": text, "content": text, "edits": edits, "url": text, "code": text, "command": text}
            del arguments["edits" if number % 2 else "content"]
            yield FunctionCallDelta(number, f"c{number}", "act", json.dumps(arguments))
        yield ModelFinished("tool_calls")

    @tool(needs_approval=True)
    def act(path: str, url: str, code: str, command: str, content: str = "", edits: Any = None) -> str:
        """Act."""
        return path

    url = serve(pilot(write, act))
    person = tab(url)
    asked: list[str] = []
    person.page.on("request", lambda request: asked.append(request.url))
    person.ask("Go")
    person.wait_for(f".approval >> nth={len(HTML) + len(LINKS) - 1}")
    person.wait_for(".approval .hljs-string")
    check(person, url, asked)
    assert "\\u0001javascript" in person.page.inner_text("#log"), "hidden characters are written out"
