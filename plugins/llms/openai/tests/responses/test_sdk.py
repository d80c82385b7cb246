"""OpenAI's own SDK takes what is sent for valid, and reads the same answer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from jackfield import sync
from jackfield.messages import ContentItem, FunctionCall, Message
from jackfield_openai.responses.backend import OpenAIResponses
from jackfield_testkit import replies
from jackfield_testkit.replies import Reply, ToolCall
from jackfield_testkit.responses import FakeResponses, ResponsesRequest

MakeModel = Callable[..., OpenAIResponses]
Told = Any  # of conftest.py, which tests cannot import

ANSWERS: dict[str, Reply] = {
    "text": replies.text("naïve 你好 🙂", chars=2),
    "reasoning": replies.reasoning("a thought", then="an answer", chars=3),
    "reasoning in plain text": replies.reasoning("a thought", then="an answer", field="reasoning", chars=3),
    "calls": replies.tool_calls(
        [ToolCall("f", {"a": 1}, "x"), ToolCall("g", {"b": [2]}, "y")], content="look", chars=2, interleaved=True
    ),
    "incomplete": replies.text("half an", finish_reason="length"),
}


@pytest.mark.parametrize("answer", ANSWERS)
def test_the_sdk_reads_the_same_items(server: FakeResponses, make_model: MakeModel, answer: str) -> None:
    server.reply(ANSWERS[answer], ANSWERS[answer])
    import openai  # takes a second, which collecting all tests need not spend

    messages = sync.run(make_model(include=()).acomplete([Message("user", "hi")])).messages
    assert messages[0].origin is not None
    assert messages[0].origin.data is not None
    with openai.OpenAI(base_url=server.url, api_key="k", max_retries=0) as client:
        events = list(client.responses.create(model="m", input="hi", stream=True))
    deltas = [event.delta for event in events if event.type == "response.output_text.delta"]
    last = events[-1]
    assert last.type in ("response.completed", "response.incomplete")
    assert [item.to_dict(mode="json") for item in last.response.output] == messages[0].origin.data["output"]
    assert "".join(deltas) == "".join(message.get_text_content() for message in messages)


def test_the_sdk_takes_what_is_sent_for_valid(
    server: FakeResponses, make_model: MakeModel, told: Told, tmp_path: Path
) -> None:
    from openai.types.responses import ResponseInputItemParam, ToolParam

    server.reply(replies.chunks(told.all([told.reasoning("r"), told.call("f", call_id="c1")])), replies.text("ok"))
    paper = tmp_path / "a.pdf"
    paper.write_bytes(b"%PDF-1.7")
    question = Message(
        "user", [ContentItem(text="read"), ContentItem(file=str(paper)), ContentItem(image="http://h/a")]
    )
    model = make_model(files=True)
    answer = sync.run(model.acomplete([question])).messages
    history = [
        Message("system", "be brief"),
        question,
        *answer,
        Message("function", [ContentItem(image="http://h/b.png")], name="f", extra={"function_id": "c1"}),
        Message("assistant", "from elsewhere"),
        Message("assistant", function_call=FunctionCall("g", "{}")),
        Message("user", "and now?"),
    ]
    functions = [{"name": "f", "parameters": {"type": "object", "properties": {}}}]
    sync.run(model.acomplete(history, functions))

    request = server.requests[-1]
    assert isinstance(request, ResponsesRequest)
    item_of_the_sdk: TypeAdapter[Any] = TypeAdapter(ResponseInputItemParam)
    for item in request.native["input"]:
        item_of_the_sdk.validate_python(item)
    for tool in request.native["tools"]:
        TypeAdapter[Any](ToolParam).validate_python(tool)
    assert [item["type"] for item in request.native["input"]] == [
        "message",
        "reasoning",
        "function_call",
        "function_call_output",
        "message",
        "function_call",
        "function_call_output",
        "message",
    ]
