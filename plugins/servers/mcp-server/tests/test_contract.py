"""This distribution keeps Jackfield's contracts."""

from __future__ import annotations

import json
from asyncio import StreamReader, StreamWriter
from typing import Any

import pytest
from mcp.shared.inbound import encode_header_value

from jackfield import FnCallAgent
from jackfield.errors import ConfigError
from jackfield.testing import ScriptedModel
from jackfield_serve.options import make_app, read_options
from jackfield_serve.parser import make_parser
from jackfield_testkit.faces import HttpReply, HttpRequest
from jackfield_testkit.suites import PluginSuite, ServerSuite, StdioServerSuite

VERSION = "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": VERSION,
    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
}


def result_in(reply: HttpReply) -> dict[str, Any]:
    text = reply.text
    if reply.header("content-type").startswith("text/event-stream"):
        text = [line for line in text.splitlines() if line.startswith("data: ")][-1].removeprefix("data: ")
    table: dict[str, Any] = json.loads(text)
    return table


class TestPlugin(PluginSuite):
    dist = "jackfield-mcp-server"


class TestHttp(ServerSuite):
    component = "jackfield-mcp-server/mcp"

    def question(self, agent: str, text: str) -> HttpRequest:
        return self._call(agent, {"message": text})

    def streamed_question(self, agent: str, text: str) -> HttpRequest:
        return self._call(agent, {"message": text}, progress=True)

    def text_in(self, reply: HttpReply) -> str:
        return str(result_in(reply)["result"]["content"][0]["text"])

    def run_id_in(self, reply: HttpReply) -> str:
        return str(result_in(reply)["result"]["structuredContent"]["conversation"])

    def requests_of_run(self, run_id: str) -> list[HttpRequest]:
        answers = {"approval:1": {"action": "accept", "content": {"allow": True}}}
        return [
            self._call("echo", {"message": "Hi", "conversation": run_id}),
            self._call("echo", {"message": "Hi"}, requestState=f"{run_id}.0"),
            self._call("echo", {"message": "Hi"}, requestState=f"{run_id}.0", inputResponses=answers),
        ]

    def next_question(self, agent: str, text: str, reply: HttpReply) -> HttpRequest:
        return self._call(agent, {"message": text, "conversation": self.run_id_in(reply)})

    def is_error(self, reply: HttpReply) -> bool:
        table = result_in(reply)
        return {"code", "message"} <= table.get("error", {}).keys() or table["result"]["isError"] is True

    def _call(self, agent: str, arguments: dict[str, Any], *, progress: bool = False, **more: Any) -> HttpRequest:
        meta = {**META, "progressToken": 1} if progress else META
        params = {"name": agent, "arguments": arguments, "_meta": meta, **more}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        headers = {
            "content-type": "application/json",
            "accept": "application/json, text/event-stream",
            "mcp-protocol-version": VERSION,
            "mcp-method": "tools/call",
            "mcp-name": encode_header_value(agent),
        }
        return HttpRequest(path="/mcp", body=json.dumps(body).encode(), headers=headers)


class TestStdio(StdioServerSuite):
    component = "jackfield-mcp-server/mcp"

    async def ask(self, reader: StreamReader, writer: StreamWriter, agent: str, text: str) -> str:
        params = {"name": agent, "arguments": {"message": text}, "_meta": META}
        writer.write(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode() + b"\n")
        reply = json.loads(await reader.readline())
        return str(reply["result"]["content"][0]["text"])


class TestStdioOfOlderVersions(TestStdio):
    async def ask(self, reader: StreamReader, writer: StreamWriter, agent: str, text: str) -> str:
        info = {"name": "test", "version": "1"}
        for number, (method, params) in enumerate(
            [
                ("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info}),
                ("tools/call", {"name": agent, "arguments": {"message": text}}),
            ]
        ):
            line = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
            writer.write(json.dumps(line).encode() + b"\n")
            reply = json.loads(await reader.readline())
            if method == "initialize":
                writer.write(b'{"jsonrpc": "2.0", "method": "notifications/initialized"}\n')
        return str(reply["result"]["content"][0]["text"])


def test_several_workers_need_a_face_without_sessions() -> None:
    agents: Any = {"agent": FnCallAgent(llm=ScriptedModel([]))}
    sessions = ["module:agent", "--face", "mcp", "--workers", "2", "--store", "sqlite"]
    with pytest.raises(ConfigError, match="sessions=false"):
        make_app(read_options(make_parser().parse_args(sessions)), agents)
    stateless = [*sessions, "--face", '{"name": "mcp", "sessions": false}']
    del stateless[1:3]
    assert make_app(read_options(make_parser().parse_args(stateless)), agents).faces
