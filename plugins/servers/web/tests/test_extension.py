"""The browser extension, loaded into Chromium."""

from __future__ import annotations

import hashlib
import http.server
import json
import re
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from jackfield.events import ModelEvent, ModelFinished, TextDelta
from jackfield.request import ChatRequest
from jackfield_serve import Tokens

from .conftest import CHROMIUM, WAIT_MS

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
EXTENSION = Path(__file__).parent.parent / "extension"
# Browsers derive the id of an unpacked extension from its path, in letters from a to p.
LETTERS = str.maketrans("0123456789abcdef", "abcdefghijklmnop")
ID = hashlib.sha256(str(EXTENSION).encode()).hexdigest()[:32].translate(LETTERS)
OWN, PAGE = "extension-token-of-32-characters", "ada-token-of-32-characters-000000"
ARTICLE = """<!doctype html><title>Tides &amp; <b>winds</b></title><nav>Home Shop About</nav>
<article><h1>Tides</h1><p>Low water at Dover is at <i>six</i>. <span hidden>secret</span></p></article>
<script>var x = "code"</script><footer>Imprint</footer>"""
EMPTY = "<!doctype html><title>Nothing</title>"


class Site(http.server.BaseHTTPRequestHandler):
    """A website."""

    def do_GET(self) -> None:
        body = (EMPTY if self.path == "/empty" else ARTICLE).encode()
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    """Yield the address of a website."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Site)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def extended(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Yield a browser with the extension."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed")
    with sync_api.sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            str(tmp_path_factory.mktemp("profile")),
            executable_path=CHROMIUM,
            headless=False,
            locale="en",
            args=[
                "--headless=new",
                "--no-sandbox",
                f"--disable-extensions-except={EXTENSION}",
                f"--load-extension={EXTENSION}",
                "--disable-features=DisableLoadExtensionCommandLineSwitch",
            ],
        )
        context.set_default_timeout(WAIT_MS)
        yield context
        context.close()


@pytest.fixture
def browser(extended: Any) -> Any:
    """Return the browser, without what another test has set up."""
    for page in extended.pages[1:]:
        page.close()
    options = extended.new_page()
    options.goto(f"chrome-extension://{ID}/options.html")
    options.evaluate("chrome.storage.local.clear()")
    options.close()
    return extended


async def read(request: ChatRequest) -> AsyncIterator[ModelEvent]:
    """Answer with all that was sent."""
    yield TextDelta("```\n" + "\n".join(str(item.value) for item in request.messages[-1].items) + "\n```")
    yield ModelFinished("stop")


def open_popup(browser: Any, tab: Any) -> Any:
    """Return the window of the button, as a page: a test cannot press buttons of the browser itself."""
    popup = browser.new_page()
    popup.goto(f"chrome-extension://{ID}/options.html")
    number = popup.evaluate("async () => (await chrome.tabs.query({})).at(-2).id")
    popup.add_init_script(f"chrome.tabs.query = async () => [await chrome.tabs.get({number})]")
    popup.goto(f"chrome-extension://{ID}/popup.html")
    return popup


def set_up(browser: Any, url: str, token: str) -> str:
    """Fill in the settings, and return what they say then."""
    options = browser.new_page()
    options.goto(f"chrome-extension://{ID}/options.html")
    options.fill("#server", url)
    options.fill("#token", token)
    options.click("button")
    options.wait_for_selector("#result:not(:empty)")
    text = str(options.inner_text("#result"))
    options.close()
    return text


def test_nothing_is_read_or_sent_before_it_is_set_up(browser: Any, site: str) -> None:
    tab = browser.new_page()
    tab.goto(site)
    popup = open_popup(browser, tab)
    popup.wait_for_selector("text=Set the server URL and a token first.")
    assert popup.is_hidden("#ask")
    for page in (tab, popup):
        page.close()


def test_a_question_takes_the_readable_text_or_the_selection_along(
    browser: Any, site: str, serve: Callable[..., str], pilot: Callable[..., Any]
) -> None:
    url = serve(pilot(read), tokens=Tokens([("ada", OWN), ("ada", PAGE)]))
    assert set_up(browser, url, OWN) == "Saved. Agents on this server: pilot"
    enter = "() => question.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', bubbles: true }))"
    for number, (select, sent, unsent) in enumerate(
        (
            ("() => {}", ["Low water at Dover is at six."], ["Home Shop", "Imprint", "secret", "code"]),
            ("() => getSelection().selectAllChildren(document.querySelector('i'))", ["\nsix\n"], ["Low water"]),
        ),
        start=1,
    ):
        tab = browser.new_page()
        tab.goto(site)
        tab.evaluate(select)
        popup = open_popup(browser, tab)
        popup.fill("#question", "When is it low?")
        popup.wait_for_selector("#agent option", state="attached")
        with browser.expect_page() as opened:
            popup.evaluate(f"() => {{ const press = {enter}; press(); press(); }}")
        conversation = opened.value
        conversation.fill("#token", PAGE)
        conversation.click("#login button")
        conversation.wait_for_selector(".answer pre code")
        text = conversation.text_content(".answer pre code")
        assert all(part in text for part in ["When is it low?", "Tides & <b>winds</b>", site, *sent]), text
        assert not any(part in text for part in unsent), text
        assert conversation.locator("#conversations .title").count() == number, "pressing Enter twice asks once"
        for page in (tab, conversation):
            page.close()


def test_refusals_say_what_to_do(browser: Any, site: str, serve: Callable[..., str], pilot: Callable[..., Any]) -> None:
    with_tokens = serve(pilot(read), tokens=Tokens([("ada", OWN)]))
    assert "missing or invalid token" in set_up(browser, with_tokens, "wrong-token-of-32-characters-00000")
    set_up(browser, serve(pilot(read)), OWN)
    tab = browser.new_page()
    tab.goto(site)
    popup = open_popup(browser, tab)
    popup.fill("#question", "When is it low?")
    popup.click("button[type=submit]")
    popup.wait_for_selector("text=start the server with --token-file")
    for page in (tab, popup):
        page.close()
    assert "Is it running at http://127.0.0.1:9?" in set_up(browser, "http://127.0.0.1:9", OWN)
    assert "must start with https" in set_up(browser, "http://agents.example.org", OWN)
    assert "Saved" in set_up(browser, f"{with_tokens}/", OWN)
    for address, text in (
        (f"{site}/empty", "This page has no text."),
        ("chrome://version/", "does not let extensions read"),
    ):
        tab = browser.new_page()
        tab.goto(address)
        popup = open_popup(browser, tab)
        popup.wait_for_selector(f"text={text}")
        for page in (tab, popup):
            page.close()


def test_the_extension_may_do_no_more_than_it_must() -> None:
    manifest = json.loads((EXTENSION / "manifest.json").read_text())
    assert manifest["permissions"] == ["activeTab", "scripting", "storage"]
    assert manifest["host_permissions"] == ["http://127.0.0.1/*", "http://localhost/*"]
    assert not {"background", "content_scripts", "externally_connectable"} & manifest.keys(), "it acts on clicks only"
    assert not re.search(
        r"innerHTML|eval\(|https?://(?!127)", "".join(path.read_text() for path in EXTENSION.glob("*.js"))
    )


def test_both_languages_have_all_texts() -> None:
    english, chinese = (
        json.loads((EXTENSION / "_locales" / name / "messages.json").read_text()) for name in ("en", "zh_CN")
    )
    assert english.keys() == chinese.keys()
    used = set(re.findall(r't\(\s*"(\w+)"', "".join(path.read_text() for path in EXTENSION.glob("*.js"))))
    assert used <= english.keys()
