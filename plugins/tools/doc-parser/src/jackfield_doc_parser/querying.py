"""Load the tables of documents into a database, and query them in a separate process."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jackfield.errors import ToolArgumentError, ToolServiceError
from jackfield.messages import basename_of
from jackfield.plurals import format_count
from jackfield.retrieval import Document
from jackfield_documents import cells_of, places_of

_PROGRAM = Path(__file__).with_name("query_process.py")
_WALL_S = 10.0
_START_S = 20.0  # for the process to start and to receive the tables
_CPU_S = 20
_MEMORY_BYTES = 1 << 30
_NUMERIC_SHARE = 0.9  # of the filled cells of a column, so that a few notes in the column do no harm
_NUMBER = re.compile(r"[+-]?(?:(?:\d{1,3}(?:[,\u202f\u00a0 ]\d{3})+|\d+)(?:\.\d+)?|\.\d+)(?:[eE][+-]?\d+)?")
_CURRENCIES = "$€£¥￥"
_GROUPS = re.compile(r"[,\u202f\u00a0 ]")
_NO_NAME = re.compile(r"\W+")
_LINK = re.compile(r"!?\[([^\[\]]*)\]\(\S*\)")
_CODE = re.compile(r"(`+)(?!`)(.+?)(?<!`)\1(?!`)")

Cell = str | int | float | None


@dataclass(frozen=True, slots=True)
class Table:
    """A table in a document.

    Attributes:
        name: The table's name in queries.
        columns: The column names.
        types: `NUMERIC` or `TEXT` for each column.
        rows: The cells. Empty cells are None.
    """

    name: str
    columns: tuple[str, ...]
    types: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]

    @property
    def is_layout(self) -> bool:
        """True if the table probably only arranges text: it has a single column, or a single row without numbers."""
        return len(self.columns) == 1 or (len(self.rows) == 1 and "NUMERIC" not in self.types)

    @property
    def summary(self) -> str:
        """A description of the table for the model, with its first rows."""
        columns = ", ".join(f'"{name}" {kind}' for name, kind in zip(self.columns, self.types, strict=True))
        first = "\n".join(str(list(row)) for row in self.rows[:2])
        return f'"{self.name}" ({columns}), {format_count(len(self.rows), "row")}, starting with:\n{first}'


def tables_of(documents: Iterable[Document]) -> list[Table]:
    """Return the tables in the documents.

    Each table is named after the heading above it, such as a sheet name, or else after its file.
    """
    tables: list[Table] = []
    names: set[str] = set()
    for document in documents:
        for place in places_of(document):
            rows = [[_without_markup(cell) for cell in row] for row in cells_of(place.block)]
            if len(rows) > 1:
                title = place.headings[-1] if place.headings else Path(basename_of(document.source)).stem
                tables.append(_table(_unique(_NO_NAME.sub("_", title).strip("_") or "table", names), rows))
    return tables


def run_query(tables: Sequence[Table], sql: str, *, max_rows: int) -> Mapping[str, Any]:
    """Run a query in a process with time and memory limits. Blocks until the process ends.

    Returns:
        A mapping with `columns`, `rows` and `more`, which is True if there are more than `max_rows` rows.

    Raises:
        ToolArgumentError: The query is invalid, tries to modify data, or exceeds a limit.
        ToolServiceError: The process could not be started.
    """
    job = {
        "tables": [{"name": one.name, "columns": one.columns, "types": one.types, "rows": one.rows} for one in tables],
        "sql": sql,
        "max_rows": max_rows,
        "wall_s": _WALL_S,
        "cpu_s": _CPU_S,
        "memory_bytes": _MEMORY_BYTES,
    }
    environment = {name: os.environ[name] for name in ("SYSTEMROOT",) if name in os.environ}
    try:
        done = subprocess.run(  # noqa: S603 - this Python, with a program of this package
            [sys.executable, "-I", "-S", str(_PROGRAM)],
            input=json.dumps(job).encode(),
            capture_output=True,
            timeout=_WALL_S + _START_S,
            env=environment,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise ToolArgumentError("the query takes too long: simplify it or select fewer rows") from error
    except OSError as error:
        raise ToolServiceError(f"cannot start a process for the query: {error}") from error
    if done.returncode:
        raise ToolArgumentError("the query takes too long or uses too much memory: simplify it or select fewer rows")
    result: Mapping[str, Any] = json.loads(done.stdout)
    if "error" in result:
        raise ToolArgumentError(f"the query failed: {result['error']}")
    return result


def _table(name: str, rows: Sequence[Sequence[str]]) -> Table:
    header, *body = rows
    width = max(len(row) for row in rows)
    names: set[str] = set()
    columns = tuple(
        _unique((header[number].strip() if number < len(header) else "") or f"column_{number + 1}", names)
        for number in range(width)
    )
    texts = [[row[number].strip() if number < len(row) else "" for row in body] for number in range(width)]
    types = tuple("NUMERIC" if _is_numeric(column) else "TEXT" for column in texts)
    cells = [[_cell(text, kind) for text in column] for column, kind in zip(texts, types, strict=True)]
    return Table(name, columns, types, tuple(zip(*cells, strict=True)))


def _unique(name: str, names: set[str]) -> str:
    """Return a name that differs from all `names`, ignoring case, and add it to them."""
    unique, number = name, 1
    while unique.lower() in names:
        number += 1
        unique = f"{name}_{number}"
    names.add(unique.lower())
    return unique


def _without_markup(cell: str) -> str:
    """Strip link targets and code marks from a cell so that numbers are recognised."""
    return _CODE.sub(r"\2", _LINK.sub(r"\1", cell))


def _is_numeric(column: Sequence[str]) -> bool:
    filled = [text for text in column if text]
    # A number with leading zeros is a code, such as a telephone number.
    if not filled or any(re.match(r"0\d", text) for text in filled):
        return False
    return sum(_number(text) is not None for text in filled) >= _NUMERIC_SHARE * len(filled)


def _cell(text: str, kind: str) -> Cell:
    if not text:
        return None
    number = _number(text) if kind == "NUMERIC" else None
    return text if number is None else number


def _number(text: str) -> int | float | None:
    """Parse a number with optional thousands separators, currency or percent sign, or return None."""
    bare = text.strip().lstrip(_CURRENCIES).rstrip(f"{_CURRENCIES}%％元").strip()
    if not _NUMBER.fullmatch(bare):
        return None
    bare = _GROUPS.sub("", bare)
    return int(bare) if bare.lstrip("+-").isdigit() and len(bare) < 18 else float(bare)
