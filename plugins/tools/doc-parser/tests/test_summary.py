"""All of a document is read for a summary, however long it is."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from jackfield import FnCallAgent
from jackfield.agents import BasicAgent
from jackfield.errors import ConfigError, ModelRequestError, ToolArgumentError
from jackfield.request import ChatRequest
from jackfield.testing import ScriptedModel, answer, calls
from jackfield.tools import ToolContext
from jackfield_doc_parser.summary import SummarizeDocument

QUESTION = "Summarise it."


@pytest.fixture
def manual(tmp_path: Path) -> str:
    path = tmp_path / "manual.md"
    path.write_text("\n\n".join(f"# Part {n}\n\n" + f"Valve {n} opens at {n} bar. " * 12 for n in range(12)))
    return str(path)


class Reading:
    """A model that calls the tool, answers a part with the numbers in it, and keeps what it was asked about parts."""

    def __init__(self, *, fails_at: str = "no such valve") -> None:
        self.prompts: list[str] = []
        self._fails_at = fails_at
        self.model = ScriptedModel(self._step)

    def _step(self, request: ChatRequest) -> Any:
        prompt = request.messages[-1].get_text_content()
        if prompt.startswith(QUESTION):
            return calls(("summarize_document", {"url": "manual.md"}))
        if request.messages[-1].role == "function":
            return answer(prompt)
        self.prompts.append(prompt)
        if self._fails_at in prompt:
            return [ModelRequestError("no quota", backend="scripted")]
        return answer("valves " + " ".join(sorted({word for word in prompt.split() if word.isdigit()}, key=int)))


def test_every_part_is_read_by_the_model_of_the_agent_and_counts_in_its_run(manual: str) -> None:
    reading = Reading()
    agent = FnCallAgent([{"name": "summarize_document", "part_tokens": 150}], reading.model, files=[manual])
    result = agent.ask(QUESTION)
    text = "\n".join(reading.prompts)
    assert all(f"Valve {n} opens" in text for n in range(12))
    assert "Based on the whole document (" in result.text
    assert result.usage.prompt_tokens == len(reading.prompts) + 2  # a token for each request


def call_alone(path: str, reading: Reading, monkeypatch: pytest.MonkeyPatch, **settings: Any) -> str:
    tool = SummarizeDocument(part_tokens=150, **settings)
    monkeypatch.setattr(tool, "_agent", lambda _: BasicAgent(llm=reading.model, name="summarizer"))
    return str(asyncio.run(tool.call({"url": Path(path).name}, context=ToolContext(files=(path,)))).content)


def test_a_part_that_fails_is_reported_and_the_others_are_used(manual: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = call_alone(manual, Reading(fails_at="Valve 3 opens"), monkeypatch)
    assert "could not be read: " in text
    assert "no quota" in text
    assert "valves" in text


def test_a_model_that_always_fails_is_an_error(manual: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ModelRequestError):
        call_alone(manual, Reading(fails_at="e"), monkeypatch)


def test_a_document_that_is_too_long_is_refused_before_any_request(
    manual: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading = Reading()
    with pytest.raises(ToolArgumentError, match="but the limit is 2: "):
        call_alone(manual, reading, monkeypatch, max_parts=2)
    assert reading.prompts == []


def test_a_document_may_have_as_many_parts_as_allowed(manual: str, monkeypatch: pytest.MonkeyPatch) -> None:
    reading = Reading()
    call_alone(manual, reading, monkeypatch)
    count = sum(prompt.startswith("Below is part") for prompt in reading.prompts)
    assert f"({count} parts)" in call_alone(manual, Reading(), monkeypatch, max_parts=count)
    with pytest.raises(ToolArgumentError, match=f"has {count} parts .* but the limit is {count - 1}: "):
        call_alone(manual, Reading(), monkeypatch, max_parts=count - 1)


def test_notes_that_cannot_be_joined_are_given_as_they_are(manual: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for fails_at in ("Below are notes", "notes on the parts of a document, in order. Join them to one summary without"):
        text = call_alone(manual, Reading(fails_at=fails_at), monkeypatch)
        assert {f"{n}" for n in range(12)} <= set(text.split())
        assert "Based on the whole document (12 parts)" in text
        assert "combining them failed: " in text
        assert "no quota" in text


def test_where_one_group_of_notes_cannot_be_joined_it_is_kept(manual: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Joins(Reading):
        joins = 0

        def _step(self, request: ChatRequest) -> Any:
            prompt = request.messages[-1].get_text_content()
            if prompt.startswith("Below are notes"):
                self.joins += 1
                if self.joins == 1:
                    return [ModelRequestError("no quota", backend="scripted")]
                return super()._step(request)
            number = prompt.partition("Valve ")[2].partition(" ")[0]
            return answer(f"valve {number} " + "and " * 60)

    text = call_alone(manual, Joins(), monkeypatch)
    assert {f"{n}" for n in range(12)} <= set(text.split())
    assert "combining them failed: " in text


def test_without_a_model_it_says_what_to_set(manual: str) -> None:
    tool = SummarizeDocument()
    with pytest.raises(ConfigError, match="set llm"):
        asyncio.run(tool.call({"url": "manual.md"}, context=ToolContext(files=(manual,))))


@pytest.mark.parametrize("focus", [None, " ", "pressures"])
def test_each_request_says_which_part_of_how_many_it_has_and_what_to_do(
    manual: str, monkeypatch: pytest.MonkeyPatch, focus: str | None
) -> None:
    reading = Reading()
    tool = SummarizeDocument(part_tokens=150)
    monkeypatch.setattr(tool, "_agent", lambda _: BasicAgent(llm=reading.model, name="summarizer"))
    arguments = {"url": "manual.md", **({} if focus is None else {"focus": focus})}
    result: Any = asyncio.run(tool.call(arguments, context=ToolContext(files=(manual,))))
    parts = [prompt for prompt in reading.prompts if prompt.startswith("Below is part ")]
    count = result.metadata["parts"]
    numbers = [re.match(r"Below is part (\d+) of (\d+) of a document\.", prompt) for prompt in parts]
    assert sorted(found.groups() for found in numbers if found) == sorted(
        (str(number), str(count)) for number in range(1, count + 1)
    )
    task = "Write down all that it says about the following" if focus == "pressures" else "Summarize it."
    assert all(task in prompt for prompt in parts)
    assert all(("pressures." in prompt) is (focus == "pressures") for prompt in parts)


@pytest.mark.parametrize(
    ("note", "is_useful"),
    [("NOTHING", False), (" nothing. ", False), ("NOTHING。", False), ("", False), ("Not much.", True)],
)
def test_a_part_that_says_nothing_is_left_out(
    manual: str, monkeypatch: pytest.MonkeyPatch, note: str, is_useful: bool
) -> None:
    tool = SummarizeDocument(part_tokens=150)
    model = ScriptedModel(lambda _: answer(note))
    monkeypatch.setattr(tool, "_agent", lambda _: BasicAgent(llm=model, name="summarizer"))
    arguments = {"url": "manual.md", "focus": "whales"}
    result: Any = asyncio.run(tool.call(arguments, context=ToolContext(files=(manual,))))
    assert result.content.startswith("The document says nothing about this.") is not is_useful
