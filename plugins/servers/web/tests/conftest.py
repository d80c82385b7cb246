"""A served page, and a real browser that looks at it."""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from jackfield.agents import Agent, FnCallAgent
from jackfield.config import LLMConfig
from jackfield.events import ModelEvent
from jackfield.models import BaseChatModel
from jackfield.request import ChatRequest, ModelFacts
from jackfield_serve import serving_app
from jackfield_testkit.faces import ServedFace

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
# The same browser without windows, which takes half as long for each page.
HEADLESS = shutil.which("chromium-headless-shell") or CHROMIUM
WAIT_MS = 60_000
PICTURES = Path(__file__).parents[4] / "docs" / "assets" / "web"
Answer = Callable[[ChatRequest], AsyncIterator[ModelEvent]]


class Written(BaseChatModel):
    """A model whose answers a test writes, event by event."""

    backend = "written"
    facts = ModelFacts(native_tools=True, reasoning=True, images=True)

    def __init__(self, write: Answer) -> None:
        super().__init__(LLMConfig(model="written"))
        self._write = write

    async def stream(self, request: ChatRequest) -> AsyncIterator[ModelEvent]:
        """Yield what the test writes."""
        async for event in self._write(request):
            yield event


def make_agent(write: Answer, *tools: Any, name: str = "pilot") -> FnCallAgent[Any]:
    """Return an agent whose model writes what a test says."""
    return FnCallAgent(list(tools), Written(write), name=name, description="Knows the tides.")


@pytest.fixture(scope="session")
def pilot() -> Callable[..., FnCallAgent[Any]]:
    """Return the function that makes agents."""
    return make_agent


class Person:
    """Looks at the page.

    Attributes:
        page: The page in the browser.
    """

    def __init__(self, page: Any) -> None:
        self.page = page

    def ask(self, text: str) -> None:
        """Type a question, and send it."""
        self.page.fill("#question", text)
        self.page.press("#question", "Enter")

    def wait_for(self, selector: str) -> Any:
        """Wait until an element is seen."""
        return self.page.wait_for_selector(selector)

    def wait_until_answered(self) -> None:
        """Wait until nothing runs any more."""
        self.page.wait_for_selector("#send:visible")

    def press(self, name: str) -> None:
        """Press a button."""
        self.page.get_by_role("button", name=name, exact=True).click()

    def take_picture(self, name: str) -> None:
        """Take a picture for the documentation, where `RECORD` is set."""
        if os.environ.get("RECORD"):
            PICTURES.mkdir(parents=True, exist_ok=True)
            self.page.wait_for_timeout(500)  # scrolling and colours
            self.page.screenshot(path=PICTURES / f"{name}.png", scale="css")

    def texts(self, selector: str) -> list[str]:
        """Return the texts of elements."""
        return [one.inner_text() for one in self.page.query_selector_all(selector)]


class Service:
    """Serves agents on the page."""

    def __init__(self) -> None:
        self._open = ExitStack()

    def __call__(self, *agents: Agent, **options: Any) -> str:
        """Serve agents, and return the address of the page."""
        app = serving_app({str(agent.name): agent for agent in agents}, faces=["web"], **options)
        return self._open.enter_context(ServedFace(app)).url

    def stop(self) -> None:
        """Stop all servers."""
        self._open.close()


@pytest.fixture
def serve() -> Iterator[Service]:
    """Yield what serves agents."""
    service = Service()
    yield service
    service.stop()


@pytest.fixture(scope="module")  # while it is open, an event loop runs in this thread: other tests could start none
def chromium() -> Iterator[Any]:
    """Yield a browser."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if HEADLESS is None:
        pytest.skip("Chromium is not installed")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=HEADLESS, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def tab(chromium: Any) -> Iterator[Callable[..., Person]]:
    """Yield a function that opens the page in a browser of its own; errors of its code fail the test."""
    faults: list[str] = []
    contexts: list[Any] = []

    def open_tab(
        url: str,
        *,
        context: Any = None,
        prepare: Callable[[Any], object] = id,
        refused: bool = False,
        **settings: Any,
    ) -> Person:
        if context is None:
            context = chromium.new_context(**{"viewport": {"width": 1280, "height": 860}, "locale": "en", **settings})
            contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(WAIT_MS)
        page.on("pageerror", lambda error: faults.append(str(error)))
        if not refused:  # a browser writes each refused request into its console
            page.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
        prepare(page)
        page.goto(url)
        return Person(page)

    yield open_tab
    for context in contexts:
        context.close()
    assert not faults, faults
