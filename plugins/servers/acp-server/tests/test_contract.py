"""This distribution keeps Jackfield's contracts."""

from __future__ import annotations

import asyncio
import json
import socket
from asyncio import StreamReader, StreamWriter
from typing import Any

import pytest

from jackfield import FnCallAgent
from jackfield.servers import StdioServer, load_server
from jackfield.testing import ScriptedModel
from jackfield_acp_server import editor
from jackfield_serving import Serving
from jackfield_testkit.installed import plain_host
from jackfield_testkit.suites import PluginSuite, StdioServerSuite


class TestPlugin(PluginSuite):
    dist = "jackfield-acp-server"


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ('{"jsonrpc": "2.0", "id": 1, "method"', -32700),
        ('{"jsonrpc": "2.0", "id": 1, "id": 2, "method": "initialize"}', -32700),
        ('{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": NaN}}', -32700),
        ("[]", -32700),
        ("{}", -32600),
        ('{"jsonrpc": "2.0", "id": {}, "method": "initialize"}', -32600),
        ('{"jsonrpc": "2.0", "id": 1, "method": {}}', -32600),
        ('{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": [1]}', -32600),
        ('{"jsonrpc": "2.0", "id": 1, "method": "nope"}', -32601),
        ('{"jsonrpc": "2.0", "id": 1, "method": "initialize"}', -32602),
        ('{"jsonrpc": "2.0", "id": 1, "method": "session/new", "params": {"cwd": 3}}', -32602),
        ('{"jsonrpc": "2.0", "id": 1, "method": "authenticate", "params": {"methodId": "x"}}', -32601),
    ],
)
def test_an_invalid_line_is_answered_with_an_error_and_the_next_one_with_its_reply(line: str, code: int) -> None:
    async def main() -> list[Any]:
        ours, theirs = socket.socketpair()
        reader, writer = await asyncio.open_connection(sock=ours)
        their_reader, their_writer = await asyncio.open_connection(sock=theirs)
        face = load_server("acp", plain_host())
        assert isinstance(face, StdioServer)
        async with Serving({"helper": FnCallAgent(llm=ScriptedModel([]))}) as serving:
            talking = asyncio.ensure_future(face.talk(serving, their_reader, their_writer))
            good = '{"jsonrpc": "2.0", "id": 9, "method": "initialize", "params": {"protocolVersion": 1}}'
            writer.write(f"{line}\n\n{good}\n".encode())
            replies = [json.loads(await reader.readline()) for _ in range(2)]
            writer.close()
            await talking
            their_writer.close()
        return sorted(replies, key=lambda reply: reply["id"] == 9)

    error, reply = asyncio.run(main())
    assert error["error"]["code"] == code
    assert reply["result"]["agentInfo"]["name"] == "jackfield"


class TestStdio(StdioServerSuite):
    component = "jackfield-acp-server/acp"

    @pytest.fixture(autouse=True)
    def _few_sessions(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(editor, "_MOST_SESSIONS", 5)

    async def ask(self, reader: StreamReader, writer: StreamWriter, agent: str, text: str) -> str:
        texts: list[str] = []

        async def request(number: int, method: str, **params: Any) -> Any:
            line = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
            writer.write(json.dumps(line).encode() + b"\n")
            while True:
                message = json.loads(await reader.readline())
                if message.get("id") == number:
                    return message["result"]
                update = message["params"]["update"]
                if update["sessionUpdate"] == "agent_message_chunk":
                    texts.append(update["content"]["text"])

        await request(0, "initialize", protocolVersion=1)
        session = (await request(1, "session/new", cwd="/", mcpServers=[]))["sessionId"]
        await request(2, "session/set_mode", sessionId=session, modeId=agent)
        await request(3, "session/prompt", sessionId=session, prompt=[{"type": "text", "text": text}])
        return "".join(texts)
