"""Use the page as people do, in a real browser."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from jackfield import tool
from jackfield.events import (
    FunctionCallDelta,
    ModelEvent,
    ModelFinished,
    ReasoningDelta,
    StreamReset,
    TextDelta,
    UsageReported,
)
from jackfield.messages import Usage
from jackfield.request import ChatRequest
from jackfield.tools import ToolContext
from jackfield_serve import Tokens

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

TEXT = """# Tides

Low at **six**. [Tables](https://example.org/tides)

| port | low |
|:-----|----:|
| Dover | 06:02 |

```python
def low() -> str:
    return "06:02"
```

It is $$h = \\frac{a}{b}$$ high.
"""


async def plain(request: ChatRequest) -> AsyncIterator[ModelEvent]:
    yield ReasoningDelta("Think first.")
    for start in range(0, len(TEXT), 9):
        yield TextDelta(TEXT[start : start + 9])
        await asyncio.sleep(0)
    yield UsageReported(Usage(prompt_tokens=30, completion_tokens=12))
    yield ModelFinished("stop")


async def echo(request: ChatRequest) -> AsyncIterator[ModelEvent]:
    yield TextDelta(f"You said: {request.messages[-1].get_text_content()}")
    yield ModelFinished("stop")


def test_an_answer_appears_as_what_it_is(
    serve: Callable[..., str], tab: Callable[..., Any], pilot: Callable[..., Any]
) -> None:
    person = tab(serve(pilot(plain)))
    person.ask("When is the tide low?")
    person.wait_until_answered()
    person.wait_for(".answer math")
    person.take_picture("answer")
    assert person.texts(".answer h1") == ["Tides"]
    assert person.texts(".answer strong") == ["six"]
    assert person.texts(".answer td") == ["Dover", "06:02"]
    assert person.page.query_selector(".answer pre .hljs-keyword").inner_text() == "def"
    assert person.page.query_selector(".answer a").get_attribute("rel") == "noopener noreferrer"
    reasoning = person.page.query_selector(".reasoning")
    assert reasoning.get_attribute("open") is None
    assert "Think first." in reasoning.text_content()
    assert person.texts("#usage") == ["42 tokens"]
    assert person.texts("#conversations a") == ["When is the tide low?"]


def test_a_pending_call_is_shown_and_made_only_if_it_is_allowed(
    serve: Callable[..., str], tab: Callable[..., Any], pilot: Callable[..., Any]
) -> None:
    made: list[str] = []

    @tool(needs_approval=True)
    def book(port: str) -> str:
        """Book a berth."""
        made.append(port)
        return f"berth at {port}"

    async def write(request: ChatRequest) -> AsyncIterator[ModelEvent]:
        last = request.messages[-1]
        if last.role == "function":
            yield TextDelta(f"Result: {last.get_text_content()}")
            yield ModelFinished("stop")
            return
        yield FunctionCallDelta(0, "c1", "book", '{"port": ')
        yield FunctionCallDelta(0, "", "", '"Do\u202ever"}')
        yield ModelFinished("tool_calls")

    person = tab(serve(pilot(write, book)))
    person.ask("Book it")
    person.wait_for(".approval")
    assert "\\u202e" in person.page.inner_text(".approval pre"), "characters that hide the call are written out"
    assert made == []
    person.page.keyboard.press("Enter")  # of somebody who was typing
    assert made == []
    person.press("Deny")
    person.wait_until_answered()
    person.wait_for(".answer")
    assert made == []

    person.ask("Book it again")
    person.wait_for(".approval")
    person.page.reload()  # nothing is lost
    person.wait_for(".approval")
    person.page.check(".approval input[type=checkbox]")
    person.press("Allow")
    person.wait_for("text=Result: berth")
    assert len(made) == 1
    person.ask("And once more")  # always allowed in this conversation
    person.wait_for(".run:nth-child(3) >> text=Result: berth")
    assert len(made) == 2


def test_a_run_goes_on_while_nobody_looks_and_two_tabs_agree(
    serve: Callable[..., str], tab: Callable[..., Any], pilot: Callable[..., Any]
) -> None:
    go_on = threading.Event()

    async def write(request: ChatRequest) -> AsyncIterator[ModelEvent]:
        yield TextDelta("The first half ")
        while not go_on.is_set():
            await asyncio.sleep(0.01)
        yield TextDelta("and the second.")
        yield ModelFinished("stop")

    person = tab(serve(pilot(write)))
    person.ask("Tell me")
    person.wait_for("text=The first half")
    address = person.page.url
    context = person.page.context
    person.page.close()
    first, second = tab(address, context=context), tab(address, context=context)
    for each in (first, second):
        each.wait_for("text=The first half")
    go_on.set()
    for each in (first, second):
        each.wait_for("text=The first half and the second.")
        each.wait_until_answered()


def test_an_attempt_that_failed_leaves_no_text(
    serve: Callable[..., str], tab: Callable[..., Any], pilot: Callable[..., Any]
) -> None:
    go_on = threading.Event()

    async def write(request: ChatRequest) -> AsyncIterator[ModelEvent]:
        yield TextDelta("half of a")
        while not go_on.is_set():
            await asyncio.sleep(0.01)
        yield StreamReset("cut off")
        yield TextDelta("whole answer")
        yield ModelFinished("stop")

    person = tab(serve(pilot(write)))
    person.ask("Tell me")
    person.wait_for("text=half of a")
    go_on.set()
    person.wait_for("text=whole answer")
    person.wait_until_answered()
    assert person.texts(".answer") == ["whole answer"]


def test_a_run_is_stopped(serve: Callable[..., str], tab: Callable[..., Any], pilot: Callable[..., Any]) -> None:
    async def write(request: ChatRequest) -> AsyncIterator[ModelEvent]:
        yield TextDelta("I go on and on")
        await asyncio.Event().wait()

    person = tab(serve(pilot(write)))
    person.ask("Tell me")
    person.wait_for("text=on and on")
    person.page.click("#stop")
    person.wait_for("text=you stopped it")
    person.wait_until_answered()


def test_a_question_is_edited_and_both_versions_are_kept(
    serve: Callable[..., str], tab: Callable[..., Any], pilot: Callable[..., Any]
) -> None:
    person = tab(serve(pilot(echo)))
    person.ask("one")
    person.wait_for("text=You said: one")
    person.wait_until_answered()
    person.ask("two")
    person.wait_for("text=You said: two")
    person.wait_until_answered()
    person.page.query_selector_all(".question >> text=Edit")[1].click()
    person.ask("three")
    person.wait_for("text=You said: three")
    person.wait_until_answered()
    assert person.texts(".answer") == ["You said: one", "You said: three"]
    person.press("Previous version")
    # Not the visible text: browsers lay out what comes into view a moment later.
    answers = [one.text_content().strip() for one in person.page.query_selector_all(".answer")]
    assert answers == ["You said: one", "You said: two"]
    person.page.reload()
    person.wait_for("text=You said: three")
    assert "2/2" in person.texts(".branches")[1]


def test_progress_results_and_nested_agents_are_seen(
    serve: Callable[..., str], tab: Callable[..., Any], pilot: Callable[..., Any]
) -> None:
    @tool
    async def look(port: str, context: ToolContext) -> str:
        """Look up the tides."""
        context.report("asking the harbour")
        return f"low at 06:02 at {port}"

    async def clerk(request: ChatRequest) -> AsyncIterator[ModelEvent]:
        if request.messages[-1].role == "function":
            yield TextDelta("It is low at 06:02.")
            yield ModelFinished("stop")
        else:
            yield FunctionCallDelta(0, "n1", "look", '{"port": "Dover"}')
            yield ModelFinished("tool_calls")

    async def boss(request: ChatRequest) -> AsyncIterator[ModelEvent]:
        if request.messages[-1].role == "function":
            yield TextDelta("The clerk says: low at 06:02.")
            yield ModelFinished("stop")
        else:
            yield FunctionCallDelta(0, "b1", "clerk", '{"request": "When?"}')
            yield ModelFinished("tool_calls")

    helper = pilot(clerk, look, name="clerk")
    url = serve(pilot(boss, helper.as_tool(), name="boss"))
    person = tab(url)
    person.ask("When?")
    person.wait_for("text=The clerk says")
    person.wait_until_answered()
    for _ in range(2):  # live, and then from the record
        assert person.texts(".nested > summary") == ["clerk"]
        names = [text.split()[0] for text in person.texts(".tool > summary")]
        assert sorted(names) == ["clerk", "look"]
        assert "low at 06:02 at Dover" in person.page.text_content(".nested .tool .result")
        person.page.reload()
        person.wait_for("text=The clerk says")


def test_files_are_attached_and_read(
    serve: Callable[..., str], tab: Callable[..., Any], pilot: Callable[..., Any], tmp_path: Path
) -> None:
    file = tmp_path / "tides, 2026.txt"
    file.write_text("Low at six.")
    person = tab(serve(pilot(echo)))
    person.page.set_input_files("#pick", str(file))
    person.wait_for("#files li")
    person.ask("Read it")
    person.wait_for("text=Low at six.")
    person.wait_until_answered()
    assert "tides, 2026.txt" in person.page.inner_text(".question .chip")


def test_conversations_are_found_deleted_and_kept_from_deletion(
    serve: Callable[..., str], tab: Callable[..., Any], pilot: Callable[..., Any]
) -> None:
    person = tab(serve(pilot(echo)))
    for text in ("about tides", "about winds"):
        person.page.click("#new")
        person.ask(text)
        person.wait_for(f"text=You said: {text}")
        person.wait_until_answered()
        person.wait_for(f"#conversations >> text={text}")
    person.page.fill("#find", "WIND")
    assert person.texts("#conversations a") == ["about winds"]
    person.page.fill("#find", "")
    person.press("Delete: about tides")
    assert person.texts("#conversations a") == ["about winds"]
    person.press("Undo")
    assert sorted(person.texts("#conversations a")) == ["about tides", "about winds"]
    person.page.click("#conversations >> text=about tides")
    person.wait_for("text=You said: about tides")


def test_a_question_that_is_sent_while_the_page_opens_is_answered(
    serve: Callable[..., str], tab: Callable[..., Any], pilot: Callable[..., Any]
) -> None:
    go_on = threading.Event()

    async def write(request: ChatRequest) -> AsyncIterator[ModelEvent]:
        while not go_on.is_set():
            await asyncio.sleep(0.01)
        yield TextDelta("Here I am.")
        yield ModelFinished("stop")

    slow: list[Any] = []

    def hold(route: Any) -> None:
        if go_on.is_set():
            route.continue_()
        else:
            slow.append(route)

    def release() -> None:
        for route in [slow.pop() for _ in slow[:]]:
            route.continue_()

    person = tab(serve(pilot(write)), prepare=lambda page: page.route("**/api/conversations**", hold))
    person.page.wait_for_selector("#agent option", state="attached")
    person.ask("at once")
    person.page.wait_for_timeout(300)  # the run would begin now
    release()  # the list of conversations: the page is open
    person.page.wait_for_timeout(300)
    go_on.set()
    person.page.wait_for_timeout(300)
    release()  # a conversation that the page may have asked for
    person.wait_for("text=Here I am.")
    person.wait_until_answered()


def test_another_conversation_is_used_while_a_run_goes_on(
    serve: Callable[..., str], tab: Callable[..., Any], pilot: Callable[..., Any]
) -> None:
    async def write(request: ChatRequest) -> AsyncIterator[ModelEvent]:
        if request.messages[-1].get_text_content() == "slow":
            yield TextDelta("I take my time")
            await asyncio.Event().wait()
        async for event in echo(request):
            yield event

    person = tab(serve(pilot(write)))
    person.ask("slow")
    person.wait_for("text=I take my time")
    person.page.click("#new")
    person.wait_until_answered()
    person.ask("quick")
    person.wait_for("text=You said: quick")
    person.wait_until_answered()


def test_each_token_opens_the_conversations_of_its_owner_only(
    serve: Callable[..., str], tab: Callable[..., Any], pilot: Callable[..., Any]
) -> None:
    ada, bob = "ada-token-of-32-characters-000000", "bob-token-of-32-characters-000000"
    url = serve(pilot(echo), tokens=Tokens([("ada", ada), ("bob", bob)]))

    def enter(person: Any, token: str) -> None:
        person.wait_for("#token")
        person.page.fill("#token", token)
        person.press("Open")

    first = tab(url, refused=True)
    enter(first, "wrong-token-of-32-characters-00000")
    first.wait_for("text=This token is not valid.")
    enter(first, ada)
    first.wait_for("#log .empty")
    first.ask("mine")
    first.wait_for("text=You said: mine")
    address = first.page.url
    second = tab(address, refused=True)
    enter(second, bob)
    second.wait_for("#log .empty")
    assert second.texts("#conversations a") == []
    assert "mine" not in second.page.inner_text("#log")


def test_a_call_waits_while_the_server_restarts(
    serve: Callable[..., str], tab: Callable[..., Any], pilot: Callable[..., Any], tmp_path: Path
) -> None:
    @tool(needs_approval=True)
    def book(port: str) -> str:
        """Book a berth."""
        return f"berth at {port}"

    async def write(request: ChatRequest) -> AsyncIterator[ModelEvent]:
        last = request.messages[-1]
        if last.role == "function":
            yield TextDelta(f"Result: {last.get_text_content()}")
            yield ModelFinished("stop")
        else:
            yield FunctionCallDelta(0, "c1", "book", '{"port": "Dover"}')
            yield ModelFinished("tool_calls")

    store = {"name": "sqlite", "path": str(tmp_path / "runs.db")}
    person = tab(serve(pilot(write, book), store=store), refused=True)  # it asks a server that has gone
    person.ask("Book it")
    person.wait_for(".approval")
    conversation = person.page.url.partition("#")[2]
    serve.stop()
    again = tab(f"{serve(pilot(write, book), store=store)}/#{conversation}")
    again.wait_for(".approval")
    again.press("Allow")
    again.wait_for("text=Result: berth at Dover")
    again.wait_until_answered()


def test_a_conversation_is_exported_as_markdown(
    serve: Callable[..., str], tab: Callable[..., Any], pilot: Callable[..., Any]
) -> None:
    person = tab(serve(pilot(echo)))
    person.ask("the tide")
    person.wait_for("text=You said: the tide")
    person.wait_until_answered()
    person.page.click("#export summary")
    with person.page.expect_download() as download:
        person.press("As Markdown")
    text = Path(download.value.path()).read_text(encoding="utf-8")
    assert text == "## You\n\nthe tide\n\n## pilot\n\nYou said: the tide"


def test_the_page_works_over_plain_http(
    serve: Callable[..., str], tab: Callable[..., Any], pilot: Callable[..., Any]
) -> None:
    missing = "delete Crypto.prototype.randomUUID; delete Navigator.prototype.clipboard"  # as on http://192.168.1.2
    person = tab(serve(pilot(plain)), prepare=lambda page: page.add_init_script(missing))
    person.ask("When?")
    person.wait_for(".answer pre")
    person.wait_until_answered()
    assert person.texts(".copy") == []


def test_a_draft_survives_a_reload(
    serve: Callable[..., str], tab: Callable[..., Any], pilot: Callable[..., Any]
) -> None:
    person = tab(serve(pilot(echo)))
    person.page.fill("#question", "half a thought")
    held: list[Any] = []

    def hold(route: Any) -> None:
        held.append(route)

    person.page.route("**/api/conversations", hold)
    person.page.reload()
    person.page.wait_for_selector("#agent option", state="attached")
    assert not person.texts("#log .empty"), "it would invite to type before the draft is there"
    held[0].continue_()
    person.wait_for("#log .empty")
    assert person.page.input_value("#question") == "half a thought"


def test_a_failure_is_shown(serve: Callable[..., str], tab: Callable[..., Any], pilot: Callable[..., Any]) -> None:
    async def write(request: ChatRequest) -> AsyncIterator[ModelEvent]:
        yield TextDelta("so far ")
        raise ZeroDivisionError("inner-secret")

    person = tab(serve(pilot(write)))
    person.ask("Go")
    person.wait_for(".error")
    person.wait_until_answered()
    assert "inner-secret" not in person.page.content()


def test_the_page_fits_a_phone_in_chinese_and_in_the_dark(
    serve: Callable[..., str], tab: Callable[..., Any], pilot: Callable[..., Any]
) -> None:
    person = tab(
        serve(pilot(plain)), viewport={"width": 390, "height": 800}, locale="zh-CN", color_scheme="dark", has_touch=True
    )
    person.ask("几点退潮？")
    person.wait_until_answered()
    person.take_picture("phone")
    assert person.page.inner_text("#send") == "发送"
    assert person.page.evaluate("document.documentElement.scrollWidth") <= 390
    person.page.click("#menu")
    person.wait_for("#side.open")
    assert person.page.get_attribute("#menu", "aria-expanded") == "true"


def test_ten_thousand_pieces_appear_without_blocking_the_page(
    serve: Callable[..., str], tab: Callable[..., Any], pilot: Callable[..., Any]
) -> None:
    async def write(request: ChatRequest) -> AsyncIterator[ModelEvent]:
        for number in range(10_000):
            yield TextDelta(f"piece {number} " + ("\n\n" if number % 40 == 39 else ""))
            if number % 100 == 0:
                await asyncio.sleep(0)
        yield ModelFinished("stop")

    person = tab(serve(pilot(write)))
    person.ask("Tell me")
    person.wait_for("text=piece 9999")
    person.wait_until_answered()
    assert len(person.texts(".answer p")) == 250
