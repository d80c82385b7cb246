"""A guide for drivers: the tools of a server of maps, named in a file that other programs share.

    python cookbook_drive_guide.py "How long from Bonn to Cologne, by car?" mcp.json

The file has `mcpServers`, as for Claude, Cursor or VS Code: a server of Amap (`npx -y @amap/amap-maps-mcp-server`), say.
"""

from __future__ import annotations

import os
import sys

from jackfield import create_agent

MODEL = os.environ.get("JACKFIELD_MODEL", "openai:gpt-4.1-mini")
STEPS = (
    "You guide drivers. Look places up before you plan a route between them; then give the way in a few lines: how "
    "far, how long, where to stop. Never guess a distance."
)


def main(question: str = "How long from Bonn to Cologne, by car?", servers: str = "mcp.json") -> None:
    """Ask, and show what was looked up."""
    agent = create_agent("assistant", llm=MODEL, system_message=STEPS, function_list=[{"name": "mcp", "file": servers}])
    result = agent.ask(question)
    for message in result.messages:
        if message.function_call:
            print(message.function_call.name, message.function_call.arguments)
    print(result.text)


if __name__ == "__main__":
    main(*sys.argv[1:])
