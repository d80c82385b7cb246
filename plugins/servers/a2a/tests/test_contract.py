"""This distribution keeps Jackfield's contracts."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote, unquote

from jackfield_testkit.faces import HttpReply, HttpRequest
from jackfield_testkit.suites import PluginSuite, ServerSuite

HEADERS = {"content-type": "application/json", "a2a-version": "1.0"}


class TestPlugin(PluginSuite):
    dist = "jackfield-a2a"


class TestA2A(ServerSuite):
    component = "jackfield-a2a/a2a"
    is_rpc = True

    def question(self, agent: str, text: str) -> HttpRequest:
        return self._request(agent, "SendMessage", message=message_with(text))

    def streamed_question(self, agent: str, text: str) -> HttpRequest:
        return self._request(agent, "SendStreamingMessage", message=message_with(text))

    def text_in(self, reply: HttpReply) -> str:
        return str(json.loads(reply.body)["result"]["task"]["artifacts"][0]["parts"][0]["text"])

    def run_id_in(self, reply: HttpReply) -> str:
        return str(json.loads(reply.body)["result"]["task"]["id"])

    def requests_of_run(self, run_id: str) -> list[HttpRequest]:
        task = unquote(run_id)
        return [
            *(self._request("echo", method, id=task) for method in ("GetTask", "CancelTask", "SubscribeToTask")),
            self._request("echo", "SendMessage", message={**message_with("yes"), "taskId": task}),
        ]

    def next_question(self, agent: str, text: str, reply: HttpReply) -> HttpRequest:
        context = json.loads(reply.body)["result"]["task"]["contextId"]
        return self._request(agent, "SendMessage", message={**message_with(text), "contextId": context})

    def is_error(self, reply: HttpReply) -> bool:
        lines = [line.removeprefix("data: ") for line in reply.text.splitlines() if line.startswith("data: ")]
        table = json.loads(lines[-1] if lines else reply.body)
        if "error" in table:
            return bool({"code", "message", "data"} == table["error"].keys())
        result = table["result"]
        # A run that failed is a task that failed.
        status = result.get("task", result.get("statusUpdate", {})).get("status", {})
        return bool(status["state"] == "TASK_STATE_FAILED" and status["message"]["parts"])

    def _request(self, agent: str, method: str, **params: Any) -> HttpRequest:
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        path = f"/a2a/{quote(agent, safe='')}"
        return HttpRequest(path=path, body=json.dumps(body).encode(), headers=HEADERS)


def message_with(text: str) -> dict[str, Any]:
    return {"messageId": "m1", "role": "ROLE_USER", "parts": [{"text": text}]}
