"""Run one SQL query on tables in a separate process with limits.

The process reads a job as JSON from stdin and writes the answer as JSON to stdout. Run it with
`python -I -S query_process.py`; only the standard library is needed. The separation is necessary because a model's
query may be arbitrarily expensive and must not exhaust the memory or time of the calling program.
"""

from __future__ import annotations

import json
import sqlite3
import sys
import time
from typing import Any

_MAX_VALUE_BYTES = 1_000_000
_INSTRUCTIONS = 10_000  # instructions of SQLite between two checks of the clock
_ALLOWED = frozenset(
    {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, getattr(sqlite3, "SQLITE_RECURSIVE", 33)}
)


def answer(job: dict[str, Any]) -> dict[str, Any]:
    """Return the result of a query as `{"columns", "rows", "more"}`, or as `{"error"}` if it failed."""
    database = sqlite3.connect(":memory:")
    database.execute("PRAGMA temp_store = MEMORY")  # otherwise large sorts would fill the disk
    for table in job["tables"]:
        columns = ", ".join(
            f"{_quote(name)} {kind}" for name, kind in zip(table["columns"], table["types"], strict=True)
        )
        database.execute(f"CREATE TABLE {_quote(table['name'])} ({columns})")
        places = ", ".join("?" * len(table["columns"]))
        database.executemany(f"INSERT INTO {_quote(table['name'])} VALUES ({places})", table["rows"])  # noqa: S608
    database.commit()
    end = time.monotonic() + job["wall_s"]
    database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MAX_VALUE_BYTES)
    database.set_authorizer(_authorize)
    database.set_progress_handler(lambda: time.monotonic() > end, _INSTRUCTIONS)
    try:
        cursor = database.execute(job["sql"])
        rows = cursor.fetchmany(job["max_rows"] + 1)
    except (sqlite3.Error, sqlite3.Warning) as error:
        late = time.monotonic() > end
        return {"error": f"timed out after {job['wall_s']:g} s" if late else str(error)}
    if cursor.description is None:
        return {"error": "only SELECT statements are supported"}
    return {
        "columns": [column[0] for column in cursor.description],
        "rows": [[_as_json(value) for value in row] for row in rows[: job["max_rows"]]],
        "more": len(rows) > job["max_rows"],
    }


def _authorize(action: int, *names: str | None) -> int:
    if action == sqlite3.SQLITE_FUNCTION and "load_extension" in names:
        return sqlite3.SQLITE_DENY
    return sqlite3.SQLITE_OK if action in _ALLOWED else sqlite3.SQLITE_DENY


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _as_json(value: object) -> object:
    return value.hex() if isinstance(value, bytes) else value


def _limit(memory_bytes: int, cpu_s: int) -> None:
    try:
        import resource
    except ImportError:  # Windows has no limits; the host ends the process after a time
        return
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s))
    if sys.platform == "linux":
        resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))


def _main() -> None:
    job = json.load(sys.stdin.buffer)
    _limit(job["memory_bytes"], job["cpu_s"])
    try:
        result = answer(job)
    except MemoryError:
        result = {"error": "out of memory"}
    sys.stdout.write(json.dumps(result))


if __name__ == "__main__":
    _main()
