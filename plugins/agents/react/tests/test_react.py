"""What the model is shown, and what becomes of what it writes."""

from __future__ import annotations

from typing import Any

import pytest

from jackfield import Message, create_agent
from jackfield.messages import FUNCTION, ContentItem
from jackfield.request import ModelFacts
from jackfield.testing import ScriptedModel, answer
from jackfield_react import ReActChat

CALL = 'Thought: I need it.\nAction: double\nAction Input: {"number": 21}\n'
ANSWER = "Thought: Now I know.\nFinal Answer: It is 42."


def double(number: int) -> int:
    """Double a number."""
    return 2 * number


def agent(*texts: str, **options: Any) -> tuple[ReActChat, ScriptedModel]:
    model = ScriptedModel([answer(text) for text in texts], facts=ModelFacts(native_tools=True, images=True))
    return ReActChat([double], model, **options), model


def test_the_model_is_shown_the_pattern_and_its_calls_are_made() -> None:
    chat, model = agent(CALL, ANSWER)
    result = chat.ask("Double 21.")
    assert result.text == "It is 42."
    assert [message.get_text_content() for message in result.messages if message.role == FUNCTION] == ["42"]
    assert [message.reasoning_content for message in result.messages if message.reasoning_content] == [
        "I need it.",
        "Now I know.",
    ]
    assert "Action Input: the arguments of the tool" in model.requests[0].messages[0].get_text_content()
    assert "Observation: 42" in model.requests[1].messages[-1].get_text_content()
    assert not model.requests[0].functions, "a model with native tools is offered them all the same"


def test_thinking_in_tags_is_reasoning_and_holds_no_calls() -> None:
    chat, _ = agent(f"<think>Maybe\n{CALL}</think>\n{CALL}", f"<think>Hm.</think>{ANSWER}")
    result = chat.ask("Double 21.")
    assert result.text == "It is 42."
    assert sum(message.role == FUNCTION for message in result.messages) == 1


@pytest.mark.parametrize("text", ["", "<think>only this</think>"])
def test_an_answer_without_a_word_ends_the_run_and_raises_nothing(text: str) -> None:
    chat, model = agent(text)
    assert chat.ask("Double 21.").stop_reason in ("empty_reply", "finished")
    assert len(model.requests) == 1


def test_pictures_reach_the_model_and_the_history_only_grows() -> None:
    chat, model = agent(CALL, CALL, ANSWER)
    question = Message(
        "user", [ContentItem(text="Double what you see."), ContentItem(image="data:image/png;base64,AA==")]
    )
    chat.ask([question])
    first, second, third = (request.messages for request in model.requests)
    assert first[-1].items[-1].image == "data:image/png;base64,AA=="
    assert second[: len(first)] == first
    assert third[: len(second)] == second


def test_in_chinese_the_pattern_is_explained_in_chinese() -> None:
    chat, model = agent(ANSWER)
    chat.ask("21的两倍是多少?")
    assert "你可以使用这些工具" in model.requests[0].messages[0].get_text_content()


def test_without_tools_it_is_a_plain_chat() -> None:
    model = ScriptedModel([answer("Hello.")])
    assert create_agent("react", llm=model).ask("Hi").text == "Hello."
    assert [message.role for message in model.requests[0].messages] == ["user"]


def test_another_format_can_be_asked_for() -> None:
    chat, model = agent("Hello.", extra_generate_cfg={"fncall_prompt_type": "nous"})
    chat.ask("Hi")
    assert "<tool_call>" in model.requests[0].messages[0].get_text_content()


def test_other_options_leave_the_format_as_it_is() -> None:
    chat, model = agent(CALL, ANSWER, extra_generate_cfg={"temperature": 0.25}, name="twice", description="Doubles.")
    assert chat.ask("Double 21.").text == "It is 42."
    assert [request.config.temperature for request in model.requests] == [0.25, 0.25]
    assert (chat.name, chat.description) == ("twice", "Doubles.")


def test_a_model_that_was_set_to_its_own_calls_is_shown_the_pattern_all_the_same() -> None:
    chat, model = agent(CALL, ANSWER)
    model.config = model.config.model_copy(
        update={"generate_cfg": model.config.generate_cfg.merged({"use_raw_api": True})}
    )
    assert chat.ask("Double 21.").text == "It is 42."
    assert "Action Input: the arguments of the tool" in model.requests[0].messages[0].get_text_content()
