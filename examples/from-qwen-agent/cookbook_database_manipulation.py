"""A database by a server of MCP: the model makes tables, fills and queries them, and you approve what changes them.

    python cookbook_database_manipulation.py shop.db "Make a table of fruit with two kinds in it." "Which is cheaper?"

Changes are shown before they are made; `y` allows them.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from jackfield import FnCallAgent, FunctionCall, Message, ToolContext
from jackfield_mcp.toolset import MCPServers

MODEL = os.environ.get("JACKFIELD_MODEL", "openai:gpt-4.1-mini")
SERVER = Path(__file__).parent / "sqlite_server.py"


def approve(call: FunctionCall, context: ToolContext) -> bool:  # noqa: ARG001 - nothing of the run is asked
    """Ask at the terminal."""
    return input(f"{call.name} {call.arguments}: may it? [y/n] ") == "y"


def main(database: str = "shop.db", *turns: str) -> None:
    """Keep one server for the whole conversation."""
    sqlite = {"command": sys.executable, "args": [str(SERVER), database]}
    with MCPServers(mcpServers={"sqlite": sqlite}) as servers:
        rules = {"allow": ["sqlite-read_query", "sqlite-list_tables"], "by": approve}
        agent = FnCallAgent([servers], llm=MODEL, approve=rules)
        history: tuple[Message, ...] = ()
        for said in turns or ("Which tables are there?",):
            result = agent.ask(said, history=history)
            history = result.history
            print(result.text)


if __name__ == "__main__":
    main(*sys.argv[1:])
