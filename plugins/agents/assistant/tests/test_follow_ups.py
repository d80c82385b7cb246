"""A question of a conversation is searched for with what it refers to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from jackfield.agents import Event
from jackfield.errors import ConfigError, ModelRequestError
from jackfield.events import PluginEvent
from jackfield.messages import ASSISTANT, USER
from jackfield.request import ChatRequest
from jackfield.testing import ScriptedModel, answer
from jackfield_assistant import Assistant
from jackfield_assistant.keys import PLAIN_QUESTION
from jackfield_assistant.memory import RETRIEVED

CONVERSATION = [
    {"role": USER, "content": "Where is the Kestrel217 made?"},
    {"role": ASSISTANT, "content": "In Lyon."},
    {"role": USER, "content": "And its price?"},
]


@pytest.fixture
def catalogue(tmp_path: Path) -> str:
    path = tmp_path / "catalogue.txt"
    lines = [f"Kestrel{n} is made in Lyon. The price of Kestrel{n} is {1000 + n} crowns.\n" for n in range(300)]
    path.write_text("\n".join(lines))
    return str(path)


def ask(catalogue: str, script: Any, **rag_cfg: Any) -> tuple[ScriptedModel, list[Event]]:
    model = ScriptedModel(script)
    agent = Assistant(llm=model, files=[catalogue], rag_cfg={"max_ref_token": 500, "chunk_size": 60, **rag_cfg})
    return model, list(agent.stream(CONVERSATION))


def plain(request: ChatRequest) -> list[Any]:
    return [*answer("1217 crowns.")]


def retrieved(events: list[Event]) -> Any:
    (event,) = [one for one in events if isinstance(one, PluginEvent) and one.name == RETRIEVED]
    return event.data


def prompt_of(model: ScriptedModel) -> str:
    return model.requests[-1].messages[0].get_text_content()


def test_a_follow_up_finds_what_the_turn_before_was_about(catalogue: str) -> None:
    model, events = ask(catalogue, plain)
    assert "The price of Kestrel217 is 1217 crowns" in prompt_of(model)
    assert retrieved(events)["query"] == "Where is the Kestrel217 made?\nIn Lyon.\nAnd its price?"
    assert len(model.requests) == 1


def test_without_rewriting_only_the_question_itself_is_searched_for(catalogue: str) -> None:
    model, events = ask(catalogue, plain, question_rewriting="none")
    assert "Kestrel217" not in prompt_of(model)
    assert "query" not in retrieved(events)


def test_the_model_rewrites_a_follow_up_where_this_is_allowed(catalogue: str) -> None:
    def script(request: ChatRequest) -> list[Any]:
        prompt = request.messages[-1].get_text_content()
        rewritten = '{"question": "What is the price of Kestrel42?"}'
        return [*answer(rewritten if "In Lyon." in prompt and "And its price?" in prompt else "1042 crowns.")]

    model, events = ask(catalogue, script, question_rewriting="model")
    assert retrieved(events)["query"] == "What is the price of Kestrel42?"
    assert "The price of Kestrel42 is 1042 crowns" in prompt_of(model)
    assert len(model.requests) == 2


@pytest.mark.parametrize("failure", [[*answer("Certainly!")], [ModelRequestError("no quota", backend="scripted")]])
def test_a_model_that_cannot_rewrite_costs_only_the_rewriting(catalogue: str, failure: list[Any]) -> None:
    replies = iter([failure, [*answer("1217 crowns.")]])
    model, events = ask(catalogue, lambda _: next(replies), question_rewriting="model")
    assert "The price of Kestrel217 is 1217 crowns" in prompt_of(model)
    (event,) = [one for one in events if isinstance(one, PluginEvent) and one.name == PLAIN_QUESTION]
    assert "the question was not rewritten" in event.data["note"]


def test_a_first_question_costs_no_call_for_rewriting(catalogue: str) -> None:
    model = ScriptedModel(plain)
    agent = Assistant(llm=model, files=[catalogue], rag_cfg={"question_rewriting": "model", "max_ref_token": 500})
    agent.run_nonstream("What is the price of Kestrel7?")
    assert len(model.requests) == 1


def test_rewriting_by_the_model_needs_a_model(catalogue: str) -> None:
    with pytest.raises(ConfigError, match="question_rewriting 'model'"):
        Assistant(files=[catalogue], rag_cfg={"question_rewriting": "model"})
