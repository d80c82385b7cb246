"""Serve agents inside code editors: the face `acp`."""

from __future__ import annotations

from asyncio import StreamReader, StreamWriter
from contextlib import closing
from typing import Any, ClassVar, cast

from acp import run_agent

from jackfield.servers import ServingLike, StdioServer
from jackfield_acp_server.editor import EditorAgent
from jackfield_acp_server.lines import Lines
from jackfield_serving import Serving


class AcpServer(StdioServer):
    """Face that serves agents to an editor over the Agent Client Protocol. Each agent is a session mode."""

    name: ClassVar[str] = "acp"

    async def talk(self, serving: ServingLike, reader: StreamReader, writer: StreamWriter) -> None:
        """Serve one editor until it disconnects, then cancel unfinished prompts."""
        agent = EditorAgent(cast(Serving, serving))
        with closing(agent):
            await run_agent(cast(Any, agent), Lines(reader, writer))
