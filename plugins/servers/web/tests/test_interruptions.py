"""Networks, tokens, tabs and people that come and go in the middle of something."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from jackfield.events import ModelEvent, ModelFinished, TextDelta
from jackfield.request import ChatRequest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


async def echo(request: ChatRequest) -> AsyncIterator[ModelEvent]:
    yield TextDelta(f"You said: {request.messages[-1].get_text_content()}")
    yield ModelFinished("stop")


def ask(url: str, text: str, conversation: str, continues: str) -> str:
    """Ask on another device, and return the run."""
    body = {"agent": "pilot", "text": text, "conversation": conversation, "continues": continues}
    with urllib.request.urlopen(f"{url}/api/runs?follow", json.dumps(body).encode(), timeout=60) as reply:
        return str(json.loads(reply.read().split(b"\n")[0][6:])["run"])


def test_a_page_shows_all_that_was_asked_elsewhere_meanwhile(
    serve: Callable[..., str], tab: Callable[..., Any], pilot: Callable[..., Any]
) -> None:
    url = serve(pilot(echo))
    run = ask(url, "question 0.", "c", "")
    person = tab(f"{url}/#c=c")
    person.wait_for("text=You said: question 0.")
    for number in range(1, 8):  # more than the page loads at first
        run = ask(url, f"question {number}.", "c", run)
    person.page.evaluate("window.dispatchEvent(new Event('focus'))")
    person.wait_for("text=You said: question 7.")
    person.page.evaluate("document.getElementById('log').scrollTop = 0")
    person.wait_for("text=You said: question 0.")
    answers = [one.text_content() for one in person.page.query_selector_all(".run .answer")]
    assert [text.strip() for text in answers] == [f"You said: question {number}." for number in range(8)]
    assert person.page.query_selector(".branches button") is None


def test_two_tabs_of_a_browser_show_the_same_without_a_reload(
    serve: Callable[..., str], tab: Callable[..., Any], pilot: Callable[..., Any]
) -> None:
    url = serve(pilot(echo))
    first = tab(url)
    first.ask("one")
    first.wait_for("text=You said: one")
    first.wait_until_answered()
    second = tab(first.page.url, context=first.page.context)
    second.wait_for("text=You said: one")
    first.page.bring_to_front()
    first.ask("two")
    second.wait_for("text=You said: two")


def test_an_edit_belongs_to_its_conversation_and_can_be_cancelled(
    serve: Callable[..., str], tab: Callable[..., Any], pilot: Callable[..., Any]
) -> None:
    person = tab(serve(pilot(echo)))
    person.ask("first")
    person.wait_for("text=You said: first")
    person.wait_until_answered()
    person.press("Edit")
    person.wait_for("text=You are editing an earlier question.")
    person.press("New")
    person.ask("second")
    person.wait_for("text=You said: second")
    person.wait_until_answered()
    assert person.texts(".run .question .plain") == ["second"]
    person.press("Edit")
    person.press("Cancel")
    assert person.page.input_value("#question") == ""
    person.ask("third")
    person.wait_for("text=You said: third")
    assert person.texts(".run .question .plain") == ["second", "third"]


def test_a_page_that_opens_while_the_server_is_away_waits_for_it(
    serve: Callable[..., str], tab: Callable[..., Any], pilot: Callable[..., Any]
) -> None:
    refusals: list[str] = []

    def route(page: Any) -> None:
        def answer(one: Any) -> None:
            if len(refusals) < 2:
                refusals.append(one.request.url)
                one.abort()
            else:
                one.continue_()

        page.route("**/api/agents", answer)

    person = tab(serve(pilot(echo)), prepare=route, refused=True)
    person.wait_for("text=Connection lost. Reconnecting…")
    person.wait_for("#log .empty")
    person.ask("Hello")
    person.wait_for("text=You said: Hello")
    assert len(refusals) == 2


def test_a_token_that_expires_during_a_run_is_asked_for_again(
    serve: Callable[..., str], tab: Callable[..., Any], pilot: Callable[..., Any]
) -> None:
    expired = {"error": {"message": "The token has expired."}}
    person = tab(serve(pilot(echo)), refused=True)
    person.wait_for("#log .empty")
    person.page.route("**/events?*", lambda one: one.fulfill(status=401, json=expired))
    person.ask("Hello")
    person.wait_for("#login[open]")
    person.page.unroute("**/events?*")
    person.page.fill("#token", "a new token")
    person.press("Open")
    person.wait_for("text=You said: Hello")


def test_the_files_of_a_dropped_folder_are_attached(
    serve: Callable[..., str], tab: Callable[..., Any], pilot: Callable[..., Any], tmp_path: Path
) -> None:
    for name in ("a.txt", "deep/b.txt", ".hidden/c.txt"):
        (tmp_path / "docs" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "docs" / name).write_text(name)
    person = tab(serve(pilot(echo)))
    person.wait_for("#log .empty")
    session = person.page.context.new_cdp_session(person.page)
    dropped = {"items": [], "files": [str(tmp_path / "docs")], "dragOperationsMask": 1}
    for kind in ("dragEnter", "dragOver", "drop"):
        session.send("Input.dispatchDragEvent", {"type": kind, "x": 600, "y": 300, "data": dropped})
    person.wait_for("#files li >> nth=1")
    assert sorted(text.split("\n")[0].removesuffix("×") for text in person.texts("#files li")) == ["a.txt", "b.txt"]


def test_texts_from_right_to_left_begin_at_the_right(
    serve: Callable[..., str], tab: Callable[..., Any], pilot: Callable[..., Any]
) -> None:
    async def write(request: ChatRequest) -> AsyncIterator[ModelEvent]:
        yield TextDelta("שפל המים בשש.\n\n- הביאו מגפיים\n\nLow water is at six.\n\n```\nx = 1\n```\n\nEnd.")
        yield ModelFinished("stop")

    person = tab(serve(pilot(write)))
    person.ask("מתי השפל?")
    person.wait_for("text=End.")
    person.wait_until_answered()
    direction = "selector => getComputedStyle(document.querySelector(selector)).direction"
    found = [
        person.page.evaluate(direction, one) for one in (".question .plain", ".answer p", ".answer li", ".answer pre")
    ]
    assert found == ["rtl", "rtl", "rtl", "ltr"]
    assert person.page.evaluate("getComputedStyle([...document.querySelectorAll('.answer p')][1]).direction") == "ltr"
