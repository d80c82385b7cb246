"""A question reaches the agent that a person means, as they wrote it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from jackfield.agents import create_agent
from jackfield.errors import ConfigError
from jackfield.events import ModelEvent, ModelFinished, TextDelta
from jackfield.request import ChatRequest
from jackfield_agent_files.files import load_agent_config

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

AGENT = """
name: harbour
description: Knows the harbour <b>of Dover</b>.
suggestions:
  - When is low water?
  - <img src=x onerror=alert(1)>
adjustable: [temperature, max_tokens]
extra_generate_cfg: {temperature: 0.2}
"""


def saying(name: str) -> Callable[[ChatRequest], AsyncIterator[ModelEvent]]:
    async def write(request: ChatRequest) -> AsyncIterator[ModelEvent]:
        config = request.config
        text = request.messages[-1].get_text_content()
        yield TextDelta(f"{name} at {config.temperature}, {config.max_tokens} heard: {text}")
        yield ModelFinished("stop")

    return write


@pytest.fixture
def harbour(pilot: Callable[..., Any], tmp_path: Path) -> Any:
    file = tmp_path / "harbour.yaml"
    file.write_text(AGENT)
    return create_agent(load_agent_config(file), llm=pilot(saying("harbour")).llm)


def test_an_agent_file_suggests_questions_and_lets_people_change_settings(
    serve: Callable[..., str], tab: Callable[..., Any], harbour: Any
) -> None:
    url = serve(harbour)
    person = tab(url)
    person.wait_for(".suggestions")
    assert person.texts(".suggestions button") == ["When is low water?", "<img src=x onerror=alert(1)>"]
    assert person.texts(".empty p") == ["Knows the harbour <b>of Dover</b>."]
    person.page.click("text=When is low water?")
    person.wait_for("text=harbour at 0.2, None heard: When is low water?")
    person.wait_until_answered()
    person.page.click("#settings summary")
    assert person.page.get_by_label("Temperature").get_attribute("placeholder") == "0.2"
    person.page.get_by_label("Temperature").fill("0.9")
    person.page.get_by_label("Maximum tokens").fill("50")
    person.page.get_by_label("Maximum tokens").press("Tab")
    person.page.reload()
    person.wait_for("text=heard: When is low water?")
    person.ask("And now?")
    person.wait_for("text=harbour at 0.9, 50 heard: And now?")
    person.wait_until_answered()
    settings = {"seed": 1}
    reply = person.page.request.post(
        f"{url}/api/runs", data={"agent": "harbour", "text": "x", "conversation": "c", "settings": settings}
    )
    assert (reply.status, "seed" in reply.json()["error"]["message"]) == (400, True)
    reply = person.page.request.post(
        f"{url}/api/runs", data={"agent": "harbour", "text": "x", "conversation": "c", "settings": {"temperature": -1}}
    )
    assert reply.status == 400


def test_models_name_their_backend(pilot: Callable[..., Any]) -> None:
    with pytest.raises(ConfigError, match="models: 'gpt-5' has no backend; add one"):
        create_agent("fncall", llm=pilot(saying("harbour")).llm, models=["gpt-5"])
    with pytest.raises(ConfigError, match="set `llm` as well, or omit `models`"):
        create_agent("fncall", models=["offline:extractive"])


def test_people_choose_among_the_models_of_an_agent(
    serve: Callable[..., str], tab: Callable[..., Any], pilot: Callable[..., Any]
) -> None:
    agent = create_agent("fncall", llm=pilot(saying("harbour")).llm, name="harbour", models=["offline:extractive"])
    url = serve(agent)
    person = tab(url)
    person.wait_for("#log .empty")
    person.page.click("#settings summary")
    assert person.page.locator("#settings option").all_inner_texts() == ["written:written", "offline:extractive"]
    person.page.get_by_label("Model").select_option("offline:extractive")
    person.page.reload()
    person.wait_for("#log .empty")
    person.ask("Who are you?")
    person.wait_until_answered()
    assert "harbour" not in person.page.inner_text(".answer")
    person.page.click("#settings summary")
    person.page.get_by_label("Model").select_option("written:written")
    person.ask("And now?")
    person.wait_for("text=heard: And now?")
    reply = person.page.request.post(
        f"{url}/api/runs", data={"agent": "harbour", "text": "x", "conversation": "c", "model": "openai:expensive"}
    )
    assert (reply.status, "does not offer" in reply.json()["error"]["message"]) == (400, True)


@pytest.mark.parametrize("line", ["adjustable: [api_key]", "adjustable: [extra_body]", "suggestions: 5"])
def test_an_agent_file_can_leave_only_harmless_settings_to_people(tmp_path: Path, line: str) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(f"agent: fncall\n{line}\n")
    with pytest.raises(ConfigError, match=line.partition(":")[0]):
        load_agent_config(file)


def test_a_name_at_the_beginning_chooses_the_agent(
    serve: Callable[..., str], tab: Callable[..., Any], pilot: Callable[..., Any]
) -> None:
    names = ("harbour", "harbour master", "pilot")
    person = tab(serve(*(pilot(saying(name), name=name) for name in names)))
    person.wait_for("#log .empty")
    person.page.type("#question", "@")
    assert person.texts("#names strong") == ["@harbour", "@harbour master", "@pilot"]
    person.page.keyboard.press("ArrowUp")
    assert person.texts("#names [aria-selected=true] strong") == ["@pilot"]
    person.page.keyboard.press("Enter")  # chooses, and sends nothing
    assert person.page.input_value("#question") == "@pilot "
    person.page.type("#question", "Where?")
    person.page.keyboard.press("Enter")
    person.wait_for("text=pilot at None, None heard: Where?")
    person.wait_until_answered()
    person.ask("@harbour master When?")
    person.wait_for("text=harbour master at None, None heard: When?")
    person.wait_until_answered()
    person.ask("@harbourside is no agent, and a@pilot.example is none")
    person.wait_for("text=harbour at None, None heard: @harbourside is no agent, and a@pilot.example is none")
    person.wait_until_answered()
    person.page.query_selector_all(".question >> text=Retry")[1].click()
    person.wait_for(".run:nth-child(2) >> text=harbour master at None, None heard: When?")


def test_enter_during_composition_sends_nothing(
    serve: Callable[..., str], tab: Callable[..., Any], pilot: Callable[..., Any]
) -> None:
    person = tab(serve(pilot(saying("pilot"))))
    person.wait_for("#log .empty")
    person.page.click("#question")
    ime = person.page.context.new_cdp_session(person.page)
    ime.send("Input.imeSetComposition", {"text": "chaoxi", "selectionStart": 6, "selectionEnd": 6})
    enter = {"type": "rawKeyDown", "key": "Process", "code": "Enter", "windowsVirtualKeyCode": 229}
    ime.send("Input.dispatchKeyEvent", enter)  # as Chrome on Windows and Linux sends it
    # Safari ends the composition before it sends Enter, whose code is still that of an input method.
    person.page.evaluate("""() => {
        const box = document.getElementById("question");
        for (const init of [{ key: "Enter", isComposing: true }, { key: "Enter", keyCode: 229 }])
          box.dispatchEvent(new KeyboardEvent("keydown", { bubbles: true, cancelable: true, ...init }));
    }""")
    ime.send("Input.insertText", {"text": "潮汐"})
    assert person.page.input_value("#question") == "潮汐"
    assert person.page.query_selector(".run") is None
    person.page.keyboard.press("Enter")
    person.wait_for("text=heard: 潮汐")


def test_enter_with_shift_is_a_new_line(
    serve: Callable[..., str], tab: Callable[..., Any], pilot: Callable[..., Any]
) -> None:
    person = tab(serve(pilot(saying("pilot"))))
    person.wait_for("#log .empty")
    person.page.type("#question", "one")
    person.page.keyboard.press("Shift+Enter")
    person.page.keyboard.type("two")
    assert person.page.input_value("#question") == "one\ntwo"
    assert person.page.query_selector(".run") is None


@pytest.mark.parametrize("way", ["paste", "drop"])
def test_files_are_pasted_and_dropped(
    serve: Callable[..., str], tab: Callable[..., Any], pilot: Callable[..., Any], way: str
) -> None:
    person = tab(serve(pilot(saying("pilot"))))
    person.wait_for("#log .empty")
    person.page.evaluate(
        """(way) => {
            const data = new DataTransfer();
            data.items.add(new File(["Low at six."], "a <b>tide</b>.txt", { type: "text/plain" }));
            data.items.add(new File(["x"], "b.png", { type: "image/png" }));
            const event = way === "paste"
              ? new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true })
              : new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true });
            document.getElementById(way === "paste" ? "question" : "log").dispatchEvent(event);
            if (!event.defaultPrevented) throw new Error("the browser would open the file");
        }""",
        way,
    )
    person.wait_for("#files li >> nth=1")
    assert [text.removesuffix("×") for text in person.texts("#files li")] == ["a <b>tide</b>.txt", "b.png"]
    person.page.press("#files li button >> nth=1", "Enter")
    focused = "document.activeElement.getAttribute('aria-label')"
    assert person.page.evaluate(focused) == "Delete: a <b>tide</b>.txt", "the next one that can be removed"
    person.ask("Read it")
    person.wait_for("text=Low at six.")
    assert person.texts(".question .chip") == ["a <b>tide</b>.txt"]


def test_a_text_that_is_typed_while_a_question_is_sent_stays(
    serve: Callable[..., str], tab: Callable[..., Any], pilot: Callable[..., Any]
) -> None:
    person, held = tab(serve(pilot(saying("pilot")))), list[Any]()
    person.page.route("**/api/runs", lambda route: held.append(route))  # noqa: PLW0108 - it must take attributes
    person.ask("one")
    while not held:
        person.page.wait_for_timeout(20)
    person.page.fill("#question", "typed meanwhile")
    held[0].continue_()
    person.wait_for("text=heard: one")
    person.wait_until_answered()
    assert person.page.input_value("#question") == "typed meanwhile"
    person.page.click("#new")
    person.wait_for("#log .empty")
    assert person.page.input_value("#question") == ""
    person.page.click("#conversations a")
    person.wait_for("text=heard: one")
    assert person.page.input_value("#question") == "typed meanwhile"


def test_each_conversation_keeps_its_draft(
    serve: Callable[..., str], tab: Callable[..., Any], pilot: Callable[..., Any]
) -> None:
    person = tab(serve(pilot(saying("pilot"))))
    person.ask("one")
    person.wait_for("text=heard: one")
    person.wait_until_answered()
    person.page.fill("#question", "for the first")
    person.page.click("#new")
    person.wait_for("#log .empty")
    assert person.page.input_value("#question") == ""
    person.page.fill("#question", "for the second")
    person.page.reload()
    # The page shows that it is empty before it has the list of conversations, and the draft once it has.
    draft = person.page.locator("#question")
    while draft.input_value() != "for the second":
        person.page.wait_for_timeout(20)
    person.page.click("#conversations a")
    person.wait_for("text=heard: one")
    assert person.page.input_value("#question") == "for the first"
    person.page.press("#question", "Enter")
    person.wait_for("text=heard: for the first")
    person.wait_until_answered()
    person.page.reload()
    person.wait_for("text=heard: for the first")
    assert person.page.input_value("#question") == "", "a draft that was sent is gone"
