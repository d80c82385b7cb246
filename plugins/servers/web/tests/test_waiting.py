"""A pending call shows what would happen, and the answers of people reach the run."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from jackfield import FnCallAgent, tool
from jackfield.agents import create_agent
from jackfield.events import FunctionCallDelta, ModelEvent, ModelFinished, TextDelta
from jackfield.request import ChatRequest
from jackfield.tools import ToolContext

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

SERVER = Path(__file__).parent / "form_server.py"


def calling(*calls: tuple[str, dict[str, Any]]) -> Callable[[ChatRequest], AsyncIterator[ModelEvent]]:
    """Return a model that makes calls, and then repeats their results."""

    async def write(request: ChatRequest) -> AsyncIterator[ModelEvent]:
        results = []
        for message in reversed(request.messages):
            if message.role != "function":
                break
            results.insert(0, message.get_text_content())
        if results:
            yield TextDelta("Results: " + " | ".join(results))
            yield ModelFinished("stop")
            return
        for number, (name, arguments) in enumerate(calls):
            yield FunctionCallDelta(number, f"c{number}", name, json.dumps(arguments))
        yield ModelFinished("tool_calls")

    return write


@tool(needs_approval=True)
def run_code(code: str, seconds: int = 5) -> str:
    """Run code."""
    return f"ran {len(code)}"


@tool(needs_approval=True)
def fetch(url: str) -> str:
    """Fetch a page."""
    return f"fetched {url}"


def test_a_change_of_a_file_is_shown_as_a_diff_of_the_file_as_it_is(
    serve: Callable[..., str], tab: Callable[..., Any], pilot: Callable[..., Any], tmp_path: Path
) -> None:
    (tmp_path / "tides.md").write_text("# Tides\n\nHigh water comes\nonce a day.\n\nBring boots.\n")
    edit = {"path": "tides.md", "edits": [{"old_text": "once a day", "new_text": "twice a day\u202e"}]}
    agent = pilot(calling(("edit_file", edit)))
    agent = FnCallAgent(["edit_file"], agent.llm, name="pilot", workspace=str(tmp_path))
    person = tab(serve(agent))
    person.ask("Correct it")
    person.wait_for(".approval .diff")
    assert person.texts(".change figcaption") == ["Changes tides.md"]
    assert person.texts(".diff .removed") == ["-once a day."]
    assert person.texts(".diff .added") == ["+twice a day\\u202e."], "hidden characters are written out"
    assert "Bring boots." in person.page.inner_text(".diff"), "with the lines around it"
    person.take_picture("approval-diff")
    assert "once" in (tmp_path / "tides.md").read_text()
    person.press("Allow")
    person.wait_for("text=Results: Edited")
    assert "twice a day" in (tmp_path / "tides.md").read_text()


def test_a_call_that_does_not_fit_the_file_shows_its_own_texts(
    serve: Callable[..., str], tab: Callable[..., Any], pilot: Callable[..., Any], tmp_path: Path
) -> None:
    edit = {"path": "../outside.md", "edits": [{"old_text": "never\nthere", "new_text": "<b>new</b>"}]}
    agent = FnCallAgent(["edit_file"], pilot(calling(("edit_file", edit))).llm, name="pilot", workspace=str(tmp_path))
    person = tab(serve(agent))
    person.ask("Correct it")
    person.wait_for(".approval .diff")
    assert person.texts(".diff .removed") == ["-never", "-there"]
    assert person.texts(".diff .added") == ["+<b>new</b>"]
    assert json.loads(person.page.text_content(".exact")) == edit


def test_several_pending_calls_are_decided_together_and_a_reason_reaches_the_model(
    serve: Callable[..., str], tab: Callable[..., Any], pilot: Callable[..., Any]
) -> None:
    code = 'print("low")  # \u2066hidden\u2069\n' * 3
    address = "https://user@harbour.example:8443/a/very/long?path=" + "x" * 300 + "#end"
    write = calling(
        ("run_code", {"code": code, "seconds": 9}), ("fetch", {"url": address}), ("fetch", {"url": "http://a"})
    )
    person = tab(serve(pilot(write, run_code, fetch)))
    person.ask("Do it")
    person.wait_for(".approval .hljs-built_in")
    assert person.page.inner_text(".approval .change pre").count("\\u2066hidden\\u2069") == 3
    assert '"seconds": 9' in person.page.text_content(".exact"), "no argument is left out"
    assert person.texts(".address")[0] == address, "the address is shown to its end"
    assert person.texts(".address strong")[0] == "harbour.example:8443"
    assert person.texts(".state > .note") == ["3 decisions are pending. They will be sent together."]
    person.page.query_selector_all(".approval")[0].query_selector('text="Allow"').click()
    person.page.query_selector_all(".approval")[0].query_selector(".reason").fill("Not from\nthat host.")
    person.page.query_selector_all(".approval")[0].query_selector('text="Deny"').click()
    assert person.texts(".decided") == ["run_code: allowed Change", "fetch: denied Change"]
    person.page.query_selector_all(".decided button")[0].click()  # a second thought
    assert len(person.page.query_selector_all(".approval")) == 2
    person.page.query_selector_all(".approval")[0].query_selector('text="Deny"').click()
    person.page.query_selector_all(".approval")[0].query_selector('text="Allow"').click()
    person.wait_for("text=Results:")
    assert person.texts(".answer") == [
        "Results: The user did not allow this call. Continue without it, or explain why it is needed. | "
        "The user did not allow this call and said: Not from that host. | fetched http://a"
    ]


@pytest.mark.parametrize(("choice", "result"), [("Allow all 2", "fetched"), ("Deny all 2", "did not allow")])
def test_all_pending_calls_are_decided_at_once(
    serve: Callable[..., str], tab: Callable[..., Any], pilot: Callable[..., Any], choice: str, result: str
) -> None:
    write = calling(("fetch", {"url": "http://a"}), ("fetch", {"url": "http://b"}))
    person = tab(serve(pilot(write, fetch)))
    person.ask("Do it")
    person.wait_for(".approval")
    person.press(choice)
    person.wait_for("text=Results:")
    assert person.page.inner_text(".answer").count(result) == 2


def test_a_call_that_was_answered_in_another_tab_no_longer_waits(
    serve: Callable[..., str], tab: Callable[..., Any], pilot: Callable[..., Any]
) -> None:
    person = tab(serve(pilot(calling(("fetch", {"url": "http://a"})), fetch)))
    person.ask("Do it")
    person.wait_for(".approval")
    other = tab(person.page.url, context=person.page.context)
    other.wait_for(".approval")
    other.press("Allow")
    other.wait_for("text=Results: fetched")
    person.wait_for("text=Results: fetched")
    assert person.page.query_selector(".approval") is None


def test_a_form_of_an_mcp_server_is_filled(
    serve: Callable[..., str], tab: Callable[..., Any], pilot: Callable[..., Any]
) -> None:
    servers = {"mcpServers": {"harbour": {"command": sys.executable, "args": [str(SERVER)]}}}
    agent = create_agent(
        {"agent": "fncall", "name": "pilot"}, llm=pilot(calling(("harbour-book", {}))).llm, function_list=[servers]
    )
    person = tab(serve(agent))
    person.ask("Book it")
    person.wait_for(".approval .field")
    person.press("Send")  # two fields are missing, so nothing is sent
    person.page.reload()  # the question is still there
    person.wait_for(".approval .field")
    assert "<b>First</b>" in person.page.inner_text(".approval select"), "titles are texts"
    person.page.locator(".approval").get_by_label("Port").fill("Dover")
    person.page.locator(".approval").get_by_label("Berths").fill("2")
    person.page.locator(".approval").get_by_label("Class").select_option("a")
    person.page.locator(".approval").get_by_label("crane").check()
    person.page.locator(".approval").get_by_label("water").check()
    person.press("Send")
    person.wait_for("text=Results:")
    values = json.loads(person.page.inner_text(".answer").removeprefix("Results: "))
    assert values == {
        "action": "accept",
        "content": {"port": "Dover", "berths": 2, "class": "a", "extras": ["crane", "water"], "insured": True},
    }
    assert person.page.query_selector(".approval") is None


def test_a_question_of_a_running_call_is_declined(
    serve: Callable[..., str], tab: Callable[..., Any], pilot: Callable[..., Any]
) -> None:
    @tool
    async def order(context: ToolContext) -> str:
        """Order."""
        return f"agreed: {await context.ask({'server_asks': 'Really?', 'address': 'https://pay.example/x'})}"

    person = tab(serve(pilot(calling(("order", {})), order)))
    person.ask("Order")
    person.wait_for(".approval .address")
    person.press("Decline")
    person.wait_for("text=Results: agreed: False")


def test_a_person_takes_their_turn_in_a_group(
    serve: Callable[..., str], tab: Callable[..., Any], pilot: Callable[..., Any]
) -> None:
    async def talk(request: ChatRequest) -> AsyncIterator[ModelEvent]:
        yield TextDelta("Thanks." if "I do" in str(request.messages) else "Who pays?")
        yield ModelFinished("stop")

    members = [pilot(talk, name="Ann"), create_agent({"agent": "user", "name": "Cy", "description": "Pays."})]
    group = create_agent(
        {"agent": "group_chat", "name": "group", "agent_selection_method": "round_robin"}, agents=members
    )
    person = tab(serve(group))
    person.ask("Lunch!")
    person.wait_for(".approval textarea")
    assert person.texts(".approval h3") == ["It is your turn"]
    person.page.fill(".approval textarea", "I do.")
    person.page.press(".approval textarea", "Enter")
    person.wait_for("text=Thanks.")
