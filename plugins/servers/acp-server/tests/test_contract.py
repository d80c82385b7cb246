"""This distribution keeps Jackfield's contracts."""

from __future__ import annotations

import json
from asyncio import StreamReader, StreamWriter
from typing import Any

from jackfield_testkit.suites import PluginSuite, StdioServerSuite


class TestPlugin(PluginSuite):
    dist = "jackfield-acp-server"


class TestStdio(StdioServerSuite):
    component = "jackfield-acp-server/acp"

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
