"""Let Anthropic's own SDK judge our requests and the events that tests are answered with. Skipped without the SDK."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from jackfield.messages import ContentItem, FunctionCall, Message
from jackfield_anthropic.backend import AnthropicServer
from jackfield_testkit import replies
from jackfield_testkit.server import FakeOpenAI

anthropic: Any = pytest.importorskip("anthropic")

SCHEMA = {"type": "object", "properties": {"age": {"type": "integer", "minimum": 1}}, "required": ["age"]}
TIME = {"name": "get time", "description": "The time.", "parameters": {"type": "object", "properties": {}}}
PNG = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUg=="
HISTORY = [
    Message("system", "be brief"),
    Message("assistant", "Hi"),
    Message("user", [ContentItem(text="What is it?"), ContentItem(image=PNG), ContentItem(file="https://h/a.pdf")]),
    Message("assistant", "", function_call=FunctionCall("get time", '{"a": 1}'), extra={"function_id": "call.1"}),
    Message("function", [ContentItem(text="noon"), ContentItem(image=PNG)], name="get time"),
]


# In a process of its own: pydantic validates an Iterable only as it is consumed, so each must be a list before the SDK
# is imported. Unknown keys, which pydantic ignores in a TypedDict, are errors.
JUDGE = """
import json, sys, typing
typing.Iterable = typing.List
from anthropic.types.message_create_params import MessageCreateParamsStreaming
from pydantic import ConfigDict, TypeAdapter
from typing_extensions import is_typeddict
strict = ConfigDict(extra="forbid", arbitrary_types_allowed=True)
for name, module in list(sys.modules.items()):
    if name.startswith("anthropic.types"):
        for each in vars(module).values():
            if is_typeddict(each):
                each.__pydantic_config__ = strict
judge = TypeAdapter(MessageCreateParamsStreaming)
for body in json.load(sys.stdin):
    judge.validate_python(body)
"""
CASES: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {}),
    ({"model": "claude-opus-5-5"}, {"response_format": {"type": "json_schema", "json_schema": {"schema": SCHEMA}}}),
    ({"thinking_budget": 2000}, {"parallel_function_calls": False}),
    ({"thinking": "adaptive"}, {"reasoning_effort": "low", "stop": "END"}),
    ({"hosted_tools": ["web_search", "web_fetch", "code_execution"]}, {}),
    ({"cache_control": "history", "cache_ttl": "1h", "citations": True}, {"function_choice": "get time"}),
]


def judge(bodies: list[dict[str, Any]]) -> str:
    """Return the SDK's verdict on requests; '' if it accepts all."""
    text = json.dumps(bodies)
    ran = subprocess.run([sys.executable, "-c", JUDGE], input=text, capture_output=True, text=True, check=False)
    return ran.stderr


def test_the_sdks_types_accept_our_requests(make_model: Any) -> None:
    bodies = []
    for settings, options in CASES:
        model = make_model(**settings)
        bodies.append(
            json.loads(model.post(model.make_request(HISTORY, [TIME], config=options), AnthropicServer("")).body)
        )
    assert judge(bodies) == ""
    bodies[0]["messages"][-1]["content"][0]["nonsense"] = 1
    assert "nonsense" in judge(bodies)  # it looks into every block


@pytest.mark.parametrize("stream", [True, False])
def test_the_sdk_reads_the_answers_of_the_scripted_server(server: FakeOpenAI, stream: bool) -> None:
    server.reply(replies.tool_call("get_time", '{"a": 1}', content="look"))
    with anthropic.Anthropic(base_url=server.origin, api_key="k", max_retries=0) as client:
        asked: dict[str, Any] = {
            "model": "m",
            "max_tokens": 9,
            "messages": [{"role": "user", "content": "hello"}],
            "tools": [{"name": "get_time", "input_schema": {"type": "object"}}],
        }
        if stream:
            with client.messages.stream(**asked) as answer:
                message = answer.get_final_message()
        else:
            message = client.messages.create(**asked)
    told = [block.model_dump(include={"type", "text", "name", "input"}, exclude_none=True) for block in message.content]
    assert told == [
        {"type": "text", "text": "look"},
        {"type": "tool_use", "name": "get_time", "input": {"a": 1}},
    ]
    assert message.stop_reason == "tool_use"
