"""The `query_table` tool: SQL queries over the tables in documents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from jackfield.errors import ToolArgumentError
from jackfield.plurals import format_count
from jackfield.sync import in_worker
from jackfield.tools import ToolContext, ToolResult, says_if_not_awaited
from jackfield_counting.estimating import estimate_tokens
from jackfield_doc_parser.base import DocumentTool, Made
from jackfield_doc_parser.plugin import tools
from jackfield_doc_parser.querying import Table, run_query, tables_of
from jackfield_doc_parser.reading import Readings
from jackfield_doc_parser.settings import QueryTableConfig
from jackfield_documents import pipe_table


class QueryTable(DocumentTool):
    """Answers SQL queries over spreadsheets, CSV files and other tables in documents."""

    name = "query_table"
    description = tools()[3].description
    parameters = tools()[3].parameters
    effects = tools()[3].effects
    read_only = True

    config_class = QueryTableConfig
    config: QueryTableConfig

    @says_if_not_awaited
    async def call(self, params: str | Mapping[str, Any], *, context: ToolContext | None = None) -> ToolResult:
        """Run a query, or list the tables and their columns if `sql` is missing.

        Raises:
            ToolArgumentError: The name matches no document that the model may read, the documents contain no table, or
                the query is invalid or exceeds a limit.
            DocParserError: No document could be read.
        """
        arguments = self.parse_arguments(params)
        readings = await self._documents.of_call([arguments["url"]], context or ToolContext())
        return await in_worker(self._answer, readings, str(arguments.get("sql") or ""))

    @cached_property
    def _tables(self) -> Made[Table]:
        return Made()

    def _answer(self, readings: Readings, sql: str) -> ToolResult:
        tables = self._tables.of(readings, lambda: tables_of(readings.documents))
        if not tables:
            raise ToolArgumentError("this document contains no tables")
        if not sql.strip():
            listed = "\n\n".join(["Tables:", *_listed(tables), *readings.problems])
            return ToolResult(self._fit(listed), readings.metadata())
        result = run_query(tables, sql, max_rows=self.config.max_rows)
        rows = [["" if cell is None else str(cell) for cell in row] for row in result["rows"]]
        shown = self._fit(pipe_table([result["columns"], *rows]))
        count = format_count(len(rows), "row")
        more = f"Only the first {len(rows)} rows are shown." if result["more"] else f"{count}."
        metadata = {**readings.metadata(), "columns": result["columns"], "rows": result["rows"]}
        return ToolResult("\n\n".join([shown, more, *readings.problems]), metadata)

    def _fit(self, text: str) -> str:
        """Truncate a text to the lines that fit into a result."""
        lines = text.split("\n")
        while len(lines) > 1 and estimate_tokens("\n".join(lines)) > self.config.max_ref_token:
            lines = lines[: max(1, len(lines) * 3 // 4)]
        shown = "\n".join(lines)
        return shown if len(shown) == len(text) else f"{shown}\n… (truncated: select fewer rows or columns)"


def _listed(tables: Sequence[Table]) -> list[str]:
    """Describe the tables. Data tables come first because the list may be truncated; layout tables are only named."""
    listed = [table.summary for table in tables if not table.is_layout]
    layout = ", ".join(f'"{table.name}"' for table in tables if table.is_layout)
    return [*listed, *([f"Probably used for layout, not data: {layout}"] if layout else [])]
