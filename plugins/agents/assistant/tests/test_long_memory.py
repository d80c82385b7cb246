"""Agents that remember: what they keep, and what was said long ago."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from jackfield import Message
from jackfield.errors import ToolArgumentError
from jackfield.messages import FunctionCall
from jackfield.testing import ScriptedModel, answer, calls
from jackfield_assistant import DialogueRetrievalAgent, MemoAssistant
from jackfield_assistant.memo import TURNS_SEEN, kept_in


def puts(key: str, value: str) -> tuple[str, dict[str, object]]:
    return "storage", {"operate": "put", "key": key, "value": value}


def system_of(model: ScriptedModel, number: int) -> str:
    return model.requests[number].messages[0].get_text_content()


def test_what_was_kept_is_in_the_system_message_of_the_next_question(tmp_path: Path) -> None:
    steps: list[Any] = [calls(puts("/name", "Ada"), puts("tea", "green")), answer("Noted."), answer("Ada.")]
    steps += [
        calls(puts("tea", "black"), ("storage", {"operate": "delete", "key": "name"})),
        answer("Done."),
        answer("?"),
    ]
    model = ScriptedModel(steps)
    agent = MemoAssistant(llm=model, storage_cfg={"storage_root_path": str(tmp_path)}, workspace=str(tmp_path))
    first = agent.ask("I am Ada, and like green tea.")
    assert "(nothing yet)" in system_of(model, 0)
    second = agent.ask("Who am I?", history=first.history)
    assert "- name: Ada\n- tea: green" in system_of(model, 2)
    third = agent.ask("Forget my name; black tea.", history=second.history)
    agent.ask("And now?", history=third.history)
    assert system_of(model, 5).endswith("- tea: black")


def test_calls_that_failed_or_cannot_be_read_kept_nothing() -> None:
    def call(arguments: str, result: str, number: str, error: str = "") -> list[Message]:
        extra = {"function_id": number, **({"error": error} if error else {})}
        return [
            Message("assistant", "", function_call=FunctionCall("storage", arguments), extra=extra),
            Message("function", result, name="storage", extra=extra),
        ]

    good = call('{"operate": "put", "key": "a", "value": "1"}', "Saved.", "1")
    bad = call(
        '{"operate": "put", "key": "b", "value": "2"}',
        "Successfully filled the disk: it is full",
        "2",
        "ToolServiceError",
    )
    broken = call("{{{", "the arguments must be a single JSON object", "3", "ToolArgumentError")
    assert kept_in([*good, *bad, *broken]) == {"a": "1"}
    looks = [call(f'{{"operate": "{one}", "key": "a"}}', "1", str(n)) for n, one in enumerate(("get", "scan"), start=4)]
    assert kept_in([*good, *looks[0], *looks[1]]) == {"a": "1"}, "only `delete` deletes"
    gone = call('{"operate": "delete", "key": "/a"}', "Deleted.", "6")
    assert kept_in([*good, *gone, *gone]) == {}


def test_a_long_conversation_is_cut_for_the_model_and_nothing_kept_is_lost(tmp_path: Path) -> None:
    model = ScriptedModel([calls(puts("name", "Ada")), answer("Noted."), answer("Ada.")])
    agent = MemoAssistant(llm=model, storage_cfg={"storage_root_path": str(tmp_path)})
    history = list(agent.ask([Message("system", "Be brief."), Message("user", "I am Ada.")]).history)
    for number in range(TURNS_SEEN):
        history += [Message("user", f"question {number}"), Message("assistant", "yes")]
    result = agent.ask("Who am I?", history=history)
    sent = model.requests[-1].messages
    assert sum(message.role == "user" for message in sent) == TURNS_SEEN
    assert sent[0].get_text_content().startswith("Be brief.")
    assert "- name: Ada" in sent[0].get_text_content()
    assert len(result.history) == len(history) + 2


def test_of_a_long_dialogue_the_model_sees_what_fits(tmp_path: Path) -> None:
    model = ScriptedModel([answer("Tea."), answer("Yes.")])
    agent = DialogueRetrievalAgent(
        llm=model, workspace=str(tmp_path), rag_cfg={"max_ref_token": 60, "parser_page_size": 20}
    )
    history: list[Message] = []
    for number in range(60):
        said = "I like tea from Assam." if number == 7 else f"Number {number} is nothing much to talk about."
        history += [Message("user", said), Message("assistant", f"I see, {number}.")]
    result = agent.run_nonstream([*history, Message("user", "Which tea from Assam?")], session_id="ada")  # type: ignore[call-arg]
    assert result[-1].content == "Tea."
    system, *recent = model.requests[0].messages
    assert "I like tea from Assam" in system.get_text_content()
    assert "Number 30" not in system.get_text_content()
    assert [message.content for message in recent] == [history[-2].content, "I see, 59.", "Which tea from Assam?"]
    assert "User: I like tea from Assam." in (tmp_path / "dialogues" / "ada.txt").read_text(encoding="utf-8")
    with pytest.raises(ToolArgumentError, match="outside the workspace"):
        agent.run_nonstream([*history, Message("user", "Which?")], session_id="../../ada")  # type: ignore[call-arg]


def test_a_long_question_is_searched_for_by_what_it_asks(tmp_path: Path) -> None:
    model = ScriptedModel([answer("Which tea?"), answer("Assam.")])
    agent = DialogueRetrievalAgent(llm=model, workspace=str(tmp_path))
    history = [Message("user", "I like tea from Assam."), Message("assistant", "I see.")] * 2
    result = agent.ask([*history, Message("user", "word " * 600 + "Which tea do I like?")])
    assert result.text == "Assam."
    prompt = model.requests[0].messages[-1].get_text_content()
    assert "Which tea do I like?" in prompt
    assert len(prompt) < 2500
    assert model.requests[1].messages[-1].get_text_content() == "Which tea?"
    assert result.history[-2].get_text_content().startswith("word word")
    assert result.usage_by_agent["reader"].total_tokens == 2
    (path,) = (tmp_path / "dialogues").iterdir()
    assert "word word" in path.read_text(encoding="utf-8")


def test_a_long_question_in_place_of_a_context_is_answered_from_what_fits(tmp_path: Path) -> None:
    model = ScriptedModel([answer("Which tea does Ada like?"), answer("Assam.")])
    agent = DialogueRetrievalAgent(
        llm=model, workspace=str(tmp_path), rag_cfg={"max_ref_token": 60, "parser_page_size": 20}
    )
    filler = "\n".join(f"Line {number} is about nothing." for number in range(200))
    assert agent.ask(f"{filler}\nAda likes tea from Assam.\n{filler}\nWhich tea does she like?").text == "Assam."
    system, question = model.requests[1].messages
    assert "Ada likes tea from Assam" in system.get_text_content()
    assert question.content == "Which tea does Ada like?"


def test_the_next_conversation_begins_with_what_was_kept(tmp_path: Path) -> None:
    cfg = {"storage_root_path": str(tmp_path)}
    model = ScriptedModel([calls(puts("name", "Ada\nLovelace: a countess")), answer("Noted.")])
    MemoAssistant(llm=model, storage_cfg=cfg).ask("I am Ada.")
    model = ScriptedModel([answer("Ada."), answer("You.")])
    agent = MemoAssistant(llm=model, storage_cfg=cfg)
    agent.ask("Who am I?")
    assert "- name: Ada\nLovelace: a countess" in system_of(model, 0)
    other = MemoAssistant(llm=model, storage_cfg={"storage_root_path": str(tmp_path / "other")})
    other.ask("Who am I?")
    assert "Ada" not in system_of(model, 1)


def test_the_first_question_has_nothing_before_it_and_writes_no_file(tmp_path: Path) -> None:
    model = ScriptedModel([answer("Hello.")])
    assert DialogueRetrievalAgent(llm=model, workspace=str(tmp_path)).ask("Hi").text == "Hello."
    assert list(tmp_path.iterdir()) == []
