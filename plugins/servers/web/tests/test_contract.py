"""This distribution keeps Jackfield's contracts."""

from __future__ import annotations

import json
import uuid
from typing import Any

from jackfield_testkit.faces import HttpReply, HttpRequest
from jackfield_testkit.suites import PluginSuite, ServerSuite


def events_in(reply: HttpReply) -> list[dict[str, Any]]:
    return [json.loads(line[6:]) for line in reply.text.splitlines() if line.startswith("data: ")]


class TestPlugin(PluginSuite):
    dist = "jackfield-web"


class TestWeb(ServerSuite):
    component = "jackfield-web/web"

    def question(self, agent: str, text: str) -> HttpRequest:
        body = {"agent": agent, "text": text, "conversation": uuid.uuid4().hex}
        return HttpRequest(path="/api/runs?follow", body=json.dumps(body).encode())

    def streamed_question(self, agent: str, text: str) -> HttpRequest:
        return self.question(agent, text)

    def text_in(self, reply: HttpReply) -> str:
        return "".join(event["text"] for event in events_in(reply) if event["type"] == "text")

    def run_id_in(self, reply: HttpReply) -> str:
        return str(events_in(reply)[0]["run"])

    def requests_of_run(self, run_id: str) -> list[HttpRequest]:
        path = f"/api/runs/{run_id}"
        answers = json.dumps({"answers": {"a": True}}).encode()
        return [
            HttpRequest(method="GET", path=f"{path}/events"),
            HttpRequest(path=f"{path}/answers", body=answers),
            HttpRequest(path=f"{path}/cancel"),
        ]

    def next_question(self, agent: str, text: str, reply: HttpReply) -> HttpRequest:
        run_id = self.run_id_in(reply)
        body = {"agent": agent, "text": text, "conversation": uuid.uuid4().hex, "continues": run_id}
        return HttpRequest(path="/api/runs?follow", body=json.dumps(body).encode())

    def is_error(self, reply: HttpReply) -> bool:
        if reply.header("content-type").startswith("text/event-stream"):
            return events_in(reply)[-1]["reason"] == "failed"
        return "error" in json.loads(reply.body)
