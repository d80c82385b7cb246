"""The web page in Chromium: its size, the time until it is usable, 10,000 chunks, and 1,000 messages.

The longest tasks and the page's time are CPU times, which do not increase on a busy machine.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import socket
import subprocess
import time
import urllib.request
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from benchmarks.measure import Row
from jackfield import FnCallAgent
from jackfield.config import LLMConfig
from jackfield.events import ModelEvent, ModelFinished, TextDelta
from jackfield.models import BaseChatModel
from jackfield.request import ChatRequest, ModelFacts
from jackfield_serve import serving_app
from jackfield_testkit.faces import HttpRequest, ServedFace

CHUNKS = 10_000
CHUNKS_PER_S = 250  # a fast model
MESSAGES = 1_000
# Every kind of Markdown that models write.
PASSAGE = """## Low water, day {n}

The tide is **low** at six, see [the tables](https://example.org/{n}). Formula: $$h = \\frac{{a}}{{b}}$$ and `code`.

| port | low |
|:-----|----:|
| Dover | 06:02 |

```python
def low(port: str) -> str:
    return TABLES[port]
```

- one
- two

"""
LINE = "def low_{n}(port: str) -> str:\n    return TABLES[port][{n}]\n\n"
CODE = "code"  # the question for one block of code
# Qwen-Agent's page, which uses Gradio.
QWEN_PAGE = """
import sys
from qwen_agent.agents import Assistant
from qwen_agent.gui import WebUI
llm = {"model": "test-model", "model_server": "http://127.0.0.1:9/v1", "api_key": "x"}
WebUI(Assistant(llm=llm, name="a", description="b")).run(server_name="127.0.0.1", server_port=int(sys.argv[1]))
"""
TRACED = ["devtools.timeline", "disabled-by-default-devtools.timeline"]
WATCH = """
window.longTasks = [];
new PerformanceObserver((list) => { for (const one of list.getEntries()) longTasks.push(one.duration); })
  .observe({ type: "longtask", buffered: true });
new MutationObserver((_, observer) => {
  if (!document.querySelector("#log .empty, .gradio-container textarea")) return;
  window.readyAt = performance.now() - performance.getEntriesByType("navigation")[0].responseStart;
  observer.disconnect();
}).observe(document, { childList: true, subtree: true });
"""


class Writer(BaseChatModel):
    """A model that writes Markdown, in the number of chunks given in the question."""

    backend = "bench"
    facts = ModelFacts()

    def __init__(self) -> None:
        super().__init__(LLMConfig(model="bench"))

    async def stream(self, request: ChatRequest) -> AsyncIterator[ModelEvent]:
        """Yield the chunks of an answer at the speed of a fast model."""
        question = request.messages[-1].get_text_content()
        chunks = CHUNKS if question == CODE else int(question)
        began = time.monotonic()
        if chunks < CHUNKS:
            yield TextDelta(PASSAGE.format(n=chunks))
        else:
            text = "".join(PASSAGE.format(n=n) for n in range(chunks // 40))
            if question == CODE:
                text = "```python\n" + "".join(LINE.format(n=n) for n in range(chunks // 4)) + "```\n"
            size = len(text) // chunks
            for number in range(chunks):
                yield TextDelta(text[number * size : (number + 1) * size])
                if number % 5 == 0:
                    await asyncio.sleep(max(0.0, began + number / CHUNKS_PER_S - time.monotonic()))
        yield ModelFinished("stop")


def page(qwen_python: str | None) -> list[Row]:
    """Measure opening the page, 10,000 chunks, and a long conversation."""
    agent = FnCallAgent(llm=Writer(), name="writer")
    with ServedFace(serving_app({"writer": agent}, faces=["web"])) as face, _browser() as browser:
        return [
            *_opening(browser, face.url, qwen_python),
            *_streaming(browser, face.url, str(CHUNKS), "10,000 chunks"),
            *_streaming(browser, face.url, CODE, "10,000 chunks of code"),
            *_long_conversation(browser, face),
        ]


@contextmanager
def _browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        path = shutil.which("chromium") or shutil.which("chromium-browser")
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@contextmanager
def _tab(browser: Any) -> Iterator[tuple[Any, Any]]:
    context = browser.new_context(viewport={"width": 1280, "height": 860}, locale="en")
    tab = context.new_page()
    tab.add_init_script(WATCH)
    session = context.new_cdp_session(tab)
    session.send("Network.enable")
    yield tab, session
    context.close()


@dataclass(frozen=True)
class Visit:
    """The cost of visiting a page."""

    ready_ms: float
    kilobytes: float
    requests: int


def _visit(browser: Any, url: str) -> tuple[Visit, Visit]:
    """Return the cost of a first and a second visit to a page."""
    with _tab(browser) as (tab, session):
        sizes: list[int] = []
        session.on("Network.loadingFinished", lambda event: sizes.append(event["encodedDataLength"]))
        visits = []
        for _ in range(2):
            sizes.clear()
            tab.goto(url, wait_until="commit")
            tab.wait_for_selector("#log .empty, .gradio-container textarea", timeout=120_000)
            tab.wait_for_timeout(2000)  # for what comes later
            visits.append(Visit(tab.evaluate("readyAt"), sum(sizes) / 1000, len(sizes)))
        return visits[0], visits[1]


def _opening(browser: Any, url: str, qwen_python: str | None) -> list[Row]:
    first, second = _visit(browser, url)
    rows = [
        Row("the page can be used after", f"{first.ready_ms:.0f} ms", "", first.ready_ms / 500, "1 (500 ms)"),
        Row(
            "its first visit transfers",
            f"{first.kilobytes:.0f} KB",
            f"{first.requests} requests",
            first.kilobytes / 200,
            "1 (200 KB)",
        ),
        Row("a later visit transfers", f"{second.kilobytes:.0f} KB", f"{second.requests} requests"),
    ]
    if qwen_python is None:
        return rows
    with _qwen_page(qwen_python) as other:
        _visit(browser, other)  # the server prepares the page on the first visit
        theirs, _ = _visit(browser, other)
    ours, _ = _visit(browser, url)
    time_text, size_text = f"Qwen-Agent {theirs.ready_ms:.0f} ms", f"Qwen-Agent {theirs.kilobytes:.0f} KB"
    return [
        *rows,
        Row("usable, beside", f"{ours.ready_ms:.0f} ms", time_text, ours.ready_ms / theirs.ready_ms),
        Row("transferred, beside", f"{ours.kilobytes:.0f} KB", size_text, ours.kilobytes / theirs.kilobytes),
    ]


@contextmanager
def _qwen_page(python: str) -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}/"
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen([python, "-c", QWEN_PAGE, str(port)], **quiet) as process:
        try:
            for _ in range(240):
                with suppress(OSError), urllib.request.urlopen(url, timeout=10):
                    break
                time.sleep(0.5)
            yield url
        finally:
            process.kill()


def _streaming(browser: Any, url: str, question: str, name: str) -> list[Row]:
    with _tab(browser) as (tab, _):
        tab.goto(url)
        tab.wait_for_selector("#log .empty")
        browser.start_tracing(page=tab, categories=TRACED)
        before = _cpu_s(browser)
        began = time.monotonic()
        tab.fill("#question", question)
        tab.press("#question", "Enter")
        tab.wait_for_selector("#stop:visible")
        tab.wait_for_selector("#send:visible", timeout=600_000)
        seconds = time.monotonic() - began
        busy = (_cpu_s(browser) - before) / seconds
        longest = max(_tasks_ms(json.loads(browser.stop_tracing())))
        return [
            Row(
                f"{name}: share of a core",
                f"{busy:.0%}",
                f"{CHUNKS / seconds:.0f} chunks/s",
                busy / 0.2,
                "1 (20 %)",
            ),
            Row(f"{name}: longest task", f"{longest:.0f} ms", "", longest / 100, "1 (100 ms)"),
        ]


def _tasks_ms(trace: dict[str, Any]) -> list[float]:
    """Return the CPU times of a page's tasks."""
    tasks = [one for one in trace["traceEvents"] if one["name"] == "RunTask" and one.get("ph") == "X"]
    names = [one for one in trace["traceEvents"] if one["name"] == "thread_name"]
    main = {(one["pid"], one["tid"]) for one in names if one["args"]["name"] == "CrRendererMain"}
    return [one.get("tdur", 0) / 1000 for one in tasks if (one["pid"], one["tid"]) in main]


def _cpu_s(browser: Any) -> float:
    """Return the CPU time of the browser's page processes."""
    processes = browser.new_browser_cdp_session().send("SystemInfo.getProcessInfo")["processInfo"]
    return sum(float(one["cpuTime"]) for one in processes if one["type"] == "renderer")


def _long_conversation(browser: Any, face: ServedFace) -> list[Row]:
    conversation, run = uuid.uuid4().hex, ""
    for number in range(MESSAGES // 2):
        body = {"agent": "writer", "text": str(number), "conversation": conversation, "continues": run}
        reply = face.ask(HttpRequest(path="/api/runs?follow", body=json.dumps(body).encode()))
        run = json.loads(reply.text.split("\n")[0][6:])["run"]
    with _tab(browser) as (tab, _):
        browser.start_tracing(page=tab, categories=TRACED)
        began = time.monotonic()
        tab.goto(f"{face.url}/#c={conversation}")
        tab.wait_for_selector(f"[data-run='{run}'] .answer table")
        opened = time.monotonic() - began
        tasks = _tasks_ms(json.loads(browser.stop_tracing()))
        tab.wait_for_timeout(2000)
        tab.evaluate("longTasks.length = 0")
        tab.mouse.move(700, 400)
        for _ in range(30):
            tab.mouse.wheel(0, -1500)
            tab.wait_for_timeout(50)
        scrolling = max(tab.evaluate("longTasks"), default=0)
        return [
            Row(
                "1,000 messages are open after",
                f"{opened * 1000:.0f} ms",
                f"the page works {sum(tasks):.0f} ms of them",
                opened,
                "1 (1 s)",
            ),
            Row("1,000 messages: longest task of opening", f"{max(tasks):.0f} ms", "", max(tasks) / 100, "1 (100 ms)"),
            Row("1,000 messages: longest task of scrolling", f"{scrolling:.0f} ms", "", scrolling / 100, "1 (100 ms)"),
        ]
