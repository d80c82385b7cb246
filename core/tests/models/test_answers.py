"""Answers of a model: stop texts, thoughts, costs, media, and the numbers of calls."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from jackfield.errors import ModelTimeoutError, UnsupportedInputError
from jackfield.events import FunctionCallDelta, ModelEvent, ModelFinished, TextDelta
from jackfield.messages import ContentItem, FunctionCall, Message, Usage
from jackfield.prices import PriceRow
from jackfield.request import ChatRequest, ModelFacts
from jackfield.testing import ScriptedModel, answer, calls

LOOK = {"name": "look", "description": "Looks.", "parameters": {"type": "object", "properties": {}}}
ASK = [Message("user", "Hi")]


def asked(*steps: Any, messages: Any = ASK, functions: Any = (), config: Any = None, **options: Any) -> Any:
    model = ScriptedModel(steps or [answer("Hello.")], **options)
    response = asyncio.run(model.acomplete(messages, functions, config=config))
    return response, model.requests[-1]


@pytest.mark.parametrize(
    ("config", "sent"),
    [({"stop": ["a", ""], "send_stop": True}, ("a", "")), ({"stop": ["a"], "send_stop": False}, ()), ({}, ())],
    ids=["sent", "kept", "none"],
)
def test_stop_texts_end_an_answer_whether_or_not_the_server_gets_them(config: Any, sent: Any) -> None:
    response, request = asked(answer("hello and bye"), config=config)
    assert tuple(request.config.stop) == sent
    assert response.messages[0].content == ("hello " if config else "hello and bye")


def test_thoughts_in_the_text_are_apart_unless_the_model_or_the_caller_says_otherwise() -> None:
    thought = [*answer("<think>Hm.</think>Yes.")]
    response, _ = asked(thought)
    assert [(one.reasoning_content, one.content) for one in response.messages] == [("Hm.", ""), (None, "Yes.")]
    whole = "<think>Hm.</think>Yes."
    assert asked(thought, facts=ModelFacts(thoughts_in_text=False))[0].messages[0].content == whole
    assert asked(thought, config={"thought_in_content": False})[0].messages[0].content == whole
    begun, _ = asked(answer("Hm.</think>Yes."), config={"thought_in_content": True})
    assert [one.content for one in begun.messages] == ["", "Yes."]


def test_prices_of_the_model_become_costs() -> None:
    row = PriceRow(
        models=("scripted",), currency="USD", valid_from=date(2000, 1, 1), input=Decimal(1), output=Decimal(2)
    )
    response, _ = asked(answer("a", usage=Usage(prompt_tokens=10**6)), facts=ModelFacts(prices=(row,)))
    assert (response.usage.cost, response.usage.currency) == (1, "USD")
    assert asked(answer("a", usage=Usage(prompt_tokens=10**6)))[0].usage.cost is None


def test_media_are_refused_from_a_user_and_noted_in_a_result() -> None:
    image = ContentItem(image="data:image/png;base64,aaaa")
    with pytest.raises(UnsupportedInputError, match="scripted:scripted does not support image input: use a model"):
        asked(messages=[Message("user", [image])])
    call = Message("assistant", "", function_call=FunctionCall("look", "{}"), extra={"function_id": "c"})
    result = Message("function", [image], name="look", extra={"function_id": "c"})
    _, request = asked(messages=[*ASK, call, result], functions=[LOOK])
    assert request.messages[-1].get_text_content() == "(image omitted: not supported by this model)"
    _, request = asked(messages=[Message("user", [image])], facts=ModelFacts(images=True))
    assert request.messages[0].content == [image]


def test_calls_of_an_answer_are_told_by_their_numbers() -> None:
    response, _ = asked(
        [FunctionCallDelta(1, name="g"), FunctionCallDelta(0, name="f", id="x"), ModelFinished("tool_calls")]
    )
    assert [(one.function_call.name, one.function_id) for one in response.messages] == [("f", "x"), ("g", "2")]
    assert calls(("f", {}))[0] == FunctionCallDelta(0, id="call_1", name="f", arguments="{}")


def test_a_deadline_ends_an_answer_that_is_never_repeated() -> None:
    class Silent(ScriptedModel):
        async def stream(self, request: ChatRequest) -> AsyncIterator[ModelEvent]:
            yield TextDelta("Hel")
            await asyncio.Event().wait()

    with pytest.raises(ModelTimeoutError, match=r"no complete response within 0\.05 s"):
        asyncio.run(Silent([]).acomplete(ASK, config={"max_retries": 0, "deadline": 0.05}))


def test_media_anywhere_in_a_conversation_are_checked() -> None:
    image = ContentItem(image="data:image/png;base64,aaaa")
    for last in (*ASK, Message("user", [ContentItem(text="Hi")])):
        with pytest.raises(UnsupportedInputError, match="does not support image input"):
            asked(messages=[Message("user", [image]), Message("assistant", "A cat."), last])
