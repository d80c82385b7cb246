"""This distribution keeps Jackfield's contracts."""

from __future__ import annotations

import json
import uuid
from typing import Any
from urllib.parse import quote, unquote

from ag_ui.core import RunErrorEvent

from jackfield_testkit.faces import HttpReply, HttpRequest
from jackfield_testkit.suites import PluginSuite, ServerSuite


def events_in(reply: HttpReply) -> list[dict[str, Any]]:
    return [json.loads(line[6:]) for line in reply.text.splitlines() if line.startswith("data: ")]


class TestPlugin(PluginSuite):
    dist = "jackfield-ag-ui"


class TestAGUI(ServerSuite):
    component = "jackfield-ag-ui/ag-ui"

    def question(self, agent: str, text: str) -> HttpRequest:
        message = {"id": "m1", "role": "user", "content": text}
        return self._request(f"/{quote(agent, safe='')}", uuid.uuid4().hex, [message])

    def streamed_question(self, agent: str, text: str) -> HttpRequest:
        return self.question(agent, text)

    def text_in(self, reply: HttpReply) -> str:
        return "".join(event["delta"] for event in events_in(reply) if event["type"] == "TEXT_MESSAGE_CONTENT")

    def run_id_in(self, reply: HttpReply) -> str:
        return str(events_in(reply)[0]["threadId"])

    def requests_of_run(self, run_id: str) -> list[HttpRequest]:
        thread = unquote(run_id)
        stop = json.dumps({"threadId": thread}).encode()
        answers = [{"interruptId": f"call_0_0.{thread}", "status": "resolved", "payload": {"approved": True}}]
        return [
            self._request("/echo/connect", thread, []),
            HttpRequest(path="/ag-ui/echo/stop", body=stop),
            self._request("/echo", thread, [], resume=answers),
        ]

    def is_error(self, reply: HttpReply) -> bool:
        event = events_in(reply)[-1] if events_in(reply) else json.loads(reply.body)
        return bool(RunErrorEvent.model_validate(event).message)

    def _request(self, path: str, thread: str, messages: list[Any], **more: Any) -> HttpRequest:
        body = {"threadId": thread, "runId": "r1", "messages": messages, **more}
        return HttpRequest(path=f"/ag-ui{path}", body=json.dumps(body).encode())
