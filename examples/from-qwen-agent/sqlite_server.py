"""An MCP server for a database of SQLite, in a file that its first argument names.

The other programs in this folder start it. Servers of others are configured in the same way.
"""

from __future__ import annotations

import json
import sqlite3
import sys
from contextlib import closing

from mcp.server.mcpserver import MCPServer

DATABASE = sys.argv[1]
server = MCPServer("sqlite")


@server.tool()
def list_tables() -> str:
    """List the tables, with the statements that made them."""
    return _run("SELECT name, sql FROM sqlite_schema WHERE type = 'table'")


@server.tool()
def read_query(sql: str) -> str:
    """Run one SELECT, and get the rows as JSON."""
    return _run(sql, read_only=True)


@server.tool()
def write_query(sql: str) -> str:
    """Run one statement that changes the database."""
    return _run(sql)


def _run(sql: str, *, read_only: bool = False) -> str:
    with closing(sqlite3.connect(DATABASE)) as database, database:
        database.execute(f"PRAGMA query_only = {int(read_only)}")
        rows = database.execute(sql)
        columns = [column[0] for column in rows.description or ()]
        return json.dumps([dict(zip(columns, row, strict=True)) for row in rows], ensure_ascii=False)


if __name__ == "__main__":
    server.run("stdio")
