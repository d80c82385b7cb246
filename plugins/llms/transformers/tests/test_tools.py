"""Tools: a model that has learned by heart to call one, asked through everything that stands around it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from jackfield import sync
from jackfield.errors import ModelRequestError
from jackfield.events import FunctionCallDelta, ReasoningDelta, TextDelta
from jackfield.messages import ASSISTANT, FUNCTION, USER, Message
from jackfield.models import BaseChatModel, fold
from jackfield_call_formats.nous import NousFormat
from jackfield_transformers.prompt import template_messages, template_tools

Make = Callable[..., BaseChatModel]
QUESTION = Message(USER, "The lamp on the desk is on, and the cable is in: what is the weather? 天气? 北京 🙂")
TOOL = {
    "name": "weather",
    "description": "The weather",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
CALL = '<tool_call>\n{"name": "weather", "arguments": {"city": "北京"}}\n</tool_call>'
THOUGHT = "Look it up: 北京."
RESULT = "sunny, not a cloud over the forty eight sockets of the desk, and 三百 lamps"
FINAL = "Sunny 🙂, 三百 lamps."
AFTERWARDS = [
    QUESTION,
    Message(ASSISTANT, "", reasoning_content=THOUGHT),
    Message(
        ASSISTANT, "", function_call={"name": "weather", "arguments": '{"city": "北京"}'}, extra={"function_id": "1"}
    ),
    Message(FUNCTION, RESULT, name="weather", extra={"function_id": "1"}),
]


@pytest.fixture(scope="session")
def caller(taught: Callable[[Sequence[tuple[Sequence[int], str]]], Path], tokenizer: Any, make_request: Any) -> Path:
    """A model that calls the tool when it is asked of the weather, and answers when the result is there: told of it by
    the call format `nous`, or by its own template."""

    def prompt(messages: Sequence[Message], *, tools: Any = None) -> list[int]:
        return list(
            tokenizer.apply_chat_template(
                template_messages(messages), tools=tools, add_generation_prompt=True, return_dict=True
            )["input_ids"]
        )

    call = f"<think>\n{THOUGHT}\n</think>\n\n{CALL}"
    lessons = []
    for history, answer in (([QUESTION], call), (AFTERWARDS, FINAL)):
        rendered = NousFormat(code_mode=False).render(make_request(history))
        lessons.append((prompt(rendered.messages), answer))
        lessons.append((prompt(history, tools=template_tools([TOOL])), answer))
    return taught(lessons)


@pytest.fixture(scope="session")
def make_request() -> Callable[[Sequence[Message]], Any]:
    from jackfield.request import ChatRequest

    return lambda history: ChatRequest("m", tuple(history), functions=(TOOL,), lang="zh")


GREEDY = {"temperature": 0, "max_tokens": 120}
NATIVE = {"native_tools": True}


@pytest.mark.parametrize("settings", [{}, NATIVE], ids=["call format", "template"])
def test_a_call_is_read_out_of_the_text(settings: dict[str, Any], caller: Path, make: Make) -> None:
    events = list(sync.iterate(make(caller, **settings).astream([QUESTION], [TOOL], config=GREEDY)))
    answer = fold(events)
    assert [(call.name, json.loads(call.arguments)) for call in answer.get_function_calls()] == [
        ("weather", {"city": "北京"})
    ]
    assert answer.messages[0].reasoning_content == THOUGHT
    assert answer.get_content() == ""
    assert sum(isinstance(event, ReasoningDelta) for event in events) > 3
    assert sum(isinstance(event, FunctionCallDelta) for event in events) >= 1
    assert not any("\ufffd" in event.text for event in events if isinstance(event, TextDelta | ReasoningDelta))


@pytest.mark.parametrize("settings", [{}, NATIVE], ids=["call format", "template"])
def test_its_result_is_told_and_answered(settings: dict[str, Any], caller: Path, make: Make) -> None:
    answer = sync.run(make(caller, **settings).acomplete(AFTERWARDS, [TOOL], config=GREEDY))
    assert answer.get_content() == FINAL
    assert (answer.get_function_calls(), answer.finish_reason) == ([], "stop")


@pytest.mark.parametrize("settings", [{}, NATIVE], ids=["call format", "template"])
def test_an_agent_uses_it(settings: dict[str, Any], caller: Path, make: Make) -> None:
    from jackfield import FnCallAgent, tool

    asked = []

    @tool
    def weather(city: str) -> str:
        """The weather"""
        asked.append(city)
        return RESULT

    agent = FnCallAgent(llm=make(caller, generate_cfg=GREEDY, **settings), function_list=[weather])
    last = agent.run_nonstream([QUESTION])[-1]
    assert asked == ["北京"]
    assert last.content == FINAL


def test_reasoning_can_be_left_in_the_text(caller: Path, make: Make) -> None:
    model = make(caller, reasoning=False, **NATIVE)
    answer = sync.run(model.acomplete([QUESTION], [TOOL], config=GREEDY))
    assert answer.get_content() == f"<think>\n{THOUGHT}\n</think>"
    assert [call.name for call in answer.get_function_calls()] == ["weather"]


def test_a_template_cannot_demand_a_call(caller: Path, make: Make) -> None:
    with pytest.raises(ModelRequestError, match="cannot force a call"):
        sync.run(make(caller, **NATIVE).acomplete([QUESTION], [TOOL], config={"function_choice": "weather"}))


def test_a_template_is_not_told_of_tools_that_may_not_be_called(caller: Path, make: Make) -> None:
    model = make(caller, **NATIVE)

    def prompt_tokens(functions: Any, **config: Any) -> int:
        asked = model.acomplete([QUESTION], functions, config={**GREEDY, "max_tokens": 1, **config})
        return sync.run(asked).usage.prompt_tokens

    assert prompt_tokens([TOOL], function_choice="none") == prompt_tokens([]) < prompt_tokens([TOOL])
