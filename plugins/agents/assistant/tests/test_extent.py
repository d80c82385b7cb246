"""The model knows how much of the documents it sees, and what was not found is no find."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jackfield.events import PluginEvent
from jackfield.request import ChatRequest
from jackfield.testing import ScriptedModel, answer
from jackfield_assistant import Assistant
from jackfield_assistant.memory import RETRIEVED
from jackfield_counting.estimating import estimate_tokens

RAG: dict[str, Any] = {"max_ref_token": 600, "chunk_size": 60}


@pytest.fixture
def manual(tmp_path: Path) -> str:
    path = tmp_path / "manual.md"
    parts = [f"# Part {n}\n\n" + f"Valve {n} opens at {n} bar. " * 10 for n in range(60)]
    path.write_text("\n\n".join(parts))
    return str(path)


def ask(
    files: list[str], question: str, script: Callable[[ChatRequest], Any] = lambda _: [*answer("Aha.")], **rag: Any
) -> tuple[str, Any, ScriptedModel]:
    model = ScriptedModel(script)
    agent = Assistant(llm=model, files=files, rag_cfg={**RAG, **rag})
    events = list(agent.stream(question))
    (data,) = [event.data for event in events if isinstance(event, PluginEvent) and event.name == RETRIEVED]
    return model.requests[-1].messages[0].get_text_content(), data, model


def test_the_model_is_told_that_it_sees_a_part(manual: str) -> None:
    prompt, data, _ = ask([manual], "What is the sum of all pressures at which a valve opens?")
    (shown,) = data["shown"]
    assert 0 < shown["count"] < shown["total"]
    assert f"Only a part of the documents is shown: {shown['count']} of {shown['total']} parts of manual.md." in prompt
    assert "say that you have seen a part only" in prompt


def test_a_document_that_is_shown_whole_needs_no_note(manual: str) -> None:
    prompt, data, _ = ask([manual], "When does valve 7 open?", max_ref_token=100_000)
    assert "Only a part" not in prompt
    assert (data["shown"], data["matched"]) == ([], True)


def test_documents_of_which_nothing_is_shown_are_counted(manual: str, tmp_path: Path) -> None:
    (tmp_path / "ships.txt").write_text("The schooner has two masts.\n\n" * 200)
    prompt, _, _ = ask([manual, str(tmp_path / "ships.txt")], "At how many bar does valve 33 open?")
    assert "Nothing of 1 other documents is shown." in prompt


def test_a_question_about_the_whole_gets_the_beginning_the_headings_and_the_end(manual: str) -> None:
    prompt, data, _ = ask([manual], "Summarise the whole document", max_ref_token=3000)
    assert "Valve 0 opens" in prompt
    assert "Valve 59 opens" in prompt
    assert "headings of manual.md" in prompt
    assert "- Part 31" in prompt
    assert "Only a part of the documents is shown" in prompt
    assert data["sources"] == ["manual.md"]


def test_headings_take_at_most_a_quarter_and_leave_the_rest_of_it_to_passages(tmp_path: Path) -> None:
    deep, flat = tmp_path / "deep.md", tmp_path / "flat.md"
    text = "The lock opens slowly. " * 20
    deep.write_text("".join(f"# Part {number}\n\n## Lock {number}\n\n{text}\n\n" for number in range(60)))
    flat.write_text("# Locks\n\n" + f"{text}\n\n" * 60)
    outlined, _, _ = ask([str(deep)], "Summarise the whole document", max_ref_token=2000)
    assert "- Part 59" in outlined
    assert "- Lock 59" not in outlined
    plain, _, _ = ask([str(flat)], "Summarise the whole document", max_ref_token=2000)
    assert estimate_tokens(plain) > 1800


def test_what_does_not_match_is_given_as_a_beginning_and_not_as_a_find(manual: str) -> None:
    prompt, data, model = ask([manual], "阀门什么时候打开？")
    assert "没有与问题用词相符的内容" in prompt
    assert data["matched"] is False
    assert data["sources"] == []
    assert len(model.requests) == 1


def test_a_question_in_another_language_is_translated_where_a_call_is_allowed(manual: str) -> None:
    def script(request: ChatRequest) -> Any:
        prompt = request.messages[-1].get_text_content()
        translated = '{"question": "At how many bar does valve 33 open?"}'
        return [*answer(translated if "Valve 0 opens" in prompt else "33 bar.")]

    prompt, data, model = ask([manual], "三十三号阀门什么时候打开？", script, question_rewriting="model")
    assert "Valve 33 opens at 33 bar" in prompt
    assert data["query"] == "三十三号阀门什么时候打开？\nAt how many bar does valve 33 open?"
    assert model.requests[0].messages[-1].get_text_content().count("opens") < 25, "a sample of what was found is enough"
    assert data["matched"] is True
    assert len(model.requests) == 2


def test_a_question_in_the_language_of_the_documents_costs_no_translation(manual: str) -> None:
    _, _, model = ask([manual], "At how many bar does valve 33 open?", question_rewriting="model")
    assert len(model.requests) == 1
