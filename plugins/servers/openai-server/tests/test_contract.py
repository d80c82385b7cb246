"""This distribution keeps Jackfield's contracts."""

from __future__ import annotations

import json
from typing import Any

from jackfield_testkit.faces import HttpReply, HttpRequest
from jackfield_testkit.suites import PluginSuite, ServerSuite


class TestPlugin(PluginSuite):
    dist = "jackfield-openai-server"


def is_error(reply: HttpReply) -> bool:
    """True for OpenAI's form of an error: as a body, or as the last event of a stream."""
    text = reply.text
    if reply.header("content-type").startswith("text/event-stream"):
        events = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: ")]
        text = events[-1]
    error = json.loads(text).get("error")
    return isinstance(error, dict) and error.keys() == {"message", "type", "param", "code"}


class TestChatCompletions(ServerSuite):
    component = "jackfield-openai-server/openai"

    def question(self, agent: str, text: str) -> HttpRequest:
        return self._request(agent, text)

    def streamed_question(self, agent: str, text: str) -> HttpRequest:
        return self._request(agent, text, stream=True)

    def text_in(self, reply: HttpReply) -> str:
        return str(json.loads(reply.body)["choices"][0]["message"]["content"])

    def is_error(self, reply: HttpReply) -> bool:
        return is_error(reply)

    def _request(self, agent: str, text: str, **more: Any) -> HttpRequest:
        body = {"model": agent, "messages": [{"role": "user", "content": text}], **more}
        return HttpRequest(path="/v1/chat/completions", body=json.dumps(body).encode())
