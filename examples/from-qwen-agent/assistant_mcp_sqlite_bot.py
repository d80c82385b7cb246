"""The tools of an MCP server, configured as everywhere: here a database.

python assistant_mcp_sqlite_bot.py shop.db "How many orders are there?"
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from jackfield import create_agent

MODEL = os.environ.get("JACKFIELD_MODEL", "openai:gpt-4.1-mini")
SERVER = Path(__file__).parent / "sqlite_server.py"


def main(database: str = "shop.db", question: str = "Which tables are there?") -> None:
    """Ask an assistant that can read the database, and nothing else of the server's tools."""
    sqlite = {"command": sys.executable, "args": [str(SERVER), database], "include": ["list_tables", "read_query"]}
    agent = create_agent(
        "assistant",
        llm=MODEL,
        system_message="You answer questions about a database. Look at its tables before you query them.",
        function_list=[{"mcpServers": {"sqlite": sqlite}}],
    )
    result = agent.ask(question)
    for message in result.messages:
        print(message.function_call or message.content)


if __name__ == "__main__":
    main(*sys.argv[1:])
