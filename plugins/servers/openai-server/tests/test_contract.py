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


class TestResponses(ServerSuite):
    component = "jackfield-openai-server/openai"

    def question(self, agent: str, text: str) -> HttpRequest:
        return self._request(agent, text)

    def streamed_question(self, agent: str, text: str) -> HttpRequest:
        return self._request(agent, text, stream=True)

    def text_in(self, reply: HttpReply) -> str:
        return str(json.loads(reply.body)["output"][-1]["content"][0]["text"])

    def run_id_in(self, reply: HttpReply) -> str:
        return str(json.loads(reply.body)["id"])

    def requests_of_run(self, run_id: str) -> list[HttpRequest]:
        path = f"/v1/responses/{run_id}"
        answers = [
            {"type": "function_call_output", "call_id": f"call_1.{run_id.removeprefix('resp_')}", "output": "x"},
        ]
        return [
            HttpRequest(method="GET", path=path),
            HttpRequest(method="GET", path=f"{path}?stream=true&starting_after=0"),
            HttpRequest(method="GET", path=f"{path}_16777216"),
            HttpRequest(method="GET", path=f"{path}/input_items"),
            HttpRequest(method="POST", path=f"{path}/cancel"),
            HttpRequest(method="DELETE", path=path),
            self._request("echo", "Hi", previous_response_id=run_id),
            self._request("echo", answers, previous_response_id=run_id),
        ]

    def next_question(self, agent: str, text: str, reply: HttpReply) -> HttpRequest:
        return self._request(agent, text, previous_response_id=self.run_id_in(reply))

    def is_error(self, reply: HttpReply) -> bool:
        if reply.status != 200:
            return is_error(reply)
        # A run that failed is a response with an error.
        last = [line for line in reply.text.splitlines() if line.startswith(("{", "data: {"))][-1].removeprefix(
            "data: "
        )
        table = json.loads(last)
        return table.get("type") == "error" or table.get("response", table).get("error") is not None

    def _request(self, agent: str, text: Any, **more: Any) -> HttpRequest:
        return HttpRequest(path="/v1/responses", body=json.dumps({"model": agent, "input": text, **more}).encode())
