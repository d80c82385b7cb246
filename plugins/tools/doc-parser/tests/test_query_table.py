"""Tables of documents are queried with SQL, completely and within limits."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from jackfield.errors import ToolArgumentError, ToolServiceError
from jackfield.tools import ToolContext, ToolResult
from jackfield_doc_parser import querying
from jackfield_doc_parser.querying import Table, run_query
from jackfield_doc_parser.tables import QueryTable

ORDERS = "Order,Customer,Price,Paid\n" + "".join(
    f'{number:05},customer {number % 7},"{1000 + number:,}.50",2026-01-{number % 28 + 1:02}\n' for number in range(3000)
)


SMALL = Table("t", ("a",), ("TEXT",), (("x",),))


@pytest.fixture
def orders(tmp_path: Path) -> str:
    path = tmp_path / "orders.csv"
    path.write_text(ORDERS)
    return str(path)


def query(path: str, sql: str | None = None, **settings: Any) -> ToolResult:
    arguments = {"url": Path(path).name, **({} if sql is None else {"sql": sql})}
    return asyncio.run(QueryTable(**settings).call(arguments, context=ToolContext(files=(path,))))


def test_a_sum_counts_every_row(orders: str) -> None:
    result = query(orders, 'SELECT SUM("Price"), COUNT(*) FROM "orders"')
    assert result.metadata["rows"] == [[sum(1000.5 + number for number in range(3000)), 3000]]


def test_without_sql_tables_columns_and_first_rows_are_listed(orders: str) -> None:
    text = str(query(orders).content)
    assert '"orders" ("Order" TEXT, "Customer" TEXT, "Price" NUMERIC, "Paid" TEXT), 3,000 rows' in text
    assert "customer 0" in text


def test_tables_that_are_layout_are_listed_last_and_by_name(tmp_path: Path) -> None:
    path = tmp_path / "guide.md"
    tables = {
        "Note": "| Tip | |\n|---|---|\n| ! | Keep a copy of the file. |",
        "Frame": "| Menu |\n|---|\n| Home |\n| Help |",
        "Total": "| Sum | 2024 |\n|---|---|\n| all | 12 |",
        "Prices": "| Fruit | Colour |\n|---|---|\n| apple | red |\n| pear | green |",
    }
    path.write_text("\n\n".join(f"# {name}\n\n{table}" for name, table in tables.items()))
    _, *data, layout = str(query(str(path)).content).split("\n\n")
    assert [text.partition(" ")[0] for text in data] == ['"Total"', '"Prices"']
    assert layout == 'Probably used for layout, not data: "Note", "Frame"'
    assert query(str(path), 'SELECT * FROM "Frame"').metadata["rows"] == [["Home"], ["Help"]]


def test_codes_with_leading_zeros_stay_as_they_are(orders: str) -> None:
    assert query(orders, 'SELECT "Order" FROM "orders" LIMIT 1').metadata["rows"] == [["00000"]]


def test_a_long_result_is_cut_and_says_so(orders: str) -> None:
    result = query(orders, 'SELECT * FROM "orders"', max_rows=5)
    assert len(result.metadata["rows"]) == 5
    assert "Only the first 5 rows are shown." in str(result.content)


def test_tables_of_a_text_are_named_after_their_headings(tmp_path: Path) -> None:
    path = tmp_path / "prices.md"
    table = "\n\n| Fruit | Price |\n|---|---|\n| apple | $1.20 |\n| pear | $0.80 |\n\n"
    path.write_text(f"# Shop A{table}# Shop B{table}# Shop B{table}")
    result = query(str(path), 'SELECT SUM("Price") FROM "Shop_A" UNION ALL SELECT MAX("Price") FROM "Shop_B_2"')
    assert result.metadata["rows"] == [[2.0], [1.2]]


def test_links_and_code_in_cells_count_as_their_text(tmp_path: Path) -> None:
    path = tmp_path / "packages.md"
    path.write_text(
        "# List\n\n| `name` | size |\n|---|---|\n| [`mutt`](http://a.example/m?x=1) | [7104](http://b.example/s) |\n"
        "| ``a`b`` | [1,000](#t) |\n| [kept] (x) | 3 |\n"
    )
    result = query(str(path), 'SELECT SUM("size"), MAX("name"), MIN("name") FROM "List"')
    assert result.metadata["rows"] == [[8107, "mutt", "[kept] (x)"]]


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM t",
        "DROP TABLE t",
        "ATTACH 'x.db' AS other",
        "PRAGMA database_list",
        "CREATE TABLE more (x)",
        "SELECT load_extension('x')",
        "SELECT 1; SELECT 2",
        "SELEKT 1",
        'SELECT "Nothing" FROM "missing"',
        "VACUUM INTO 'x.db'",
    ],
)
def test_what_is_not_one_select_over_the_tables_is_refused(sql: str) -> None:
    with pytest.raises(ToolArgumentError, match="the query failed"):
        run_query([SMALL], sql, max_rows=10)


ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT COUNT(*) FROM n"


def test_a_query_without_end_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jackfield_doc_parser.querying._WALL_S", 0.3)
    with pytest.raises(ToolArgumentError, match=r"the query failed: timed out after 0\.3 s"):
        run_query([SMALL], ENDLESS, max_rows=10)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits memory")
def test_a_query_that_wants_all_memory_ends_without_harm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jackfield_doc_parser.querying._MEMORY_BYTES", 100 << 20)
    monkeypatch.setattr("jackfield_doc_parser.querying._WALL_S", 60.0)
    sql = (
        "WITH RECURSIVE n(x, y) AS (SELECT 1, randomblob(900000) UNION ALL SELECT x + 1, randomblob(900000) FROM n "
        "LIMIT 300) SELECT COUNT(*), MAX(y) FROM (SELECT DISTINCT y FROM n)"
    )
    with pytest.raises(ToolArgumentError, match="memory"):
        run_query([], sql, max_rows=10)


def test_a_value_without_end_is_refused() -> None:
    with pytest.raises(ToolArgumentError, match="too big"):
        run_query([SMALL], "SELECT length(zeroblob(2000000000))", max_rows=10)


def test_a_value_has_up_to_a_million_bytes() -> None:
    sql = "SELECT length(zeroblob({}))"
    assert run_query([SMALL], sql.format(1_000_000), max_rows=1)["rows"] == [[1_000_000]]
    with pytest.raises(ToolArgumentError, match="too big"):
        run_query([SMALL], sql.format(1_000_001), max_rows=1)


def test_a_header_without_rows_is_no_table(tmp_path: Path) -> None:
    path = tmp_path / "tea.md"
    path.write_text("| Sort | Price |\n|---|---|\n")
    with pytest.raises(ToolArgumentError, match="this document contains no tables"):
        query(str(path))


def test_a_document_without_tables_is_named(tmp_path: Path) -> None:
    path = tmp_path / "tea.txt"
    path.write_text("Green tea.")
    with pytest.raises(ToolArgumentError, match="this document contains no tables"):
        query(str(path), "SELECT 1")


def read(columns: Mapping[str, list[str]]) -> dict[str, str]:
    from jackfield_doc_parser.querying import _table

    rows = [list(columns), *zip(*columns.values(), strict=True)]
    table = _table("t", rows)
    return dict(zip(table.columns, table.types, strict=True))


def test_the_type_of_a_column_follows_from_its_cells() -> None:
    assert read(
        {
            "whole": ["1", "-2", ""],
            "grouped": ["1,234", "12,345.6", "7"],
            "money": ["$5", "€ 6.50", "7 %"],
            "phone": ["0301", "0444", "12"],
            "mixed": ["1", "two", "3"],
            "date": ["2026-01-02", "2026-01-03", ""],
            "empty": ["", "", ""],
        }
    ) == {
        "whole": "NUMERIC",
        "grouped": "NUMERIC",
        "money": "NUMERIC",
        "phone": "TEXT",
        "mixed": "TEXT",
        "date": "TEXT",
        "empty": "TEXT",
    }


@pytest.mark.timeout(60)  # a search from each blank would take minutes
def test_cells_of_blanks_take_no_time() -> None:
    blanks = f"a{' ' * 30_000}b"
    assert read({"wide": [blanks] * 100}) == {"wide": "TEXT"}


@pytest.mark.parametrize(
    ("cell", "number"),
    [
        ("1", 1), ("+1", 1), ("-2.50", -2.5), (".5", 0.5), ("1e3", 1000.0), ("1,234,567", 1234567), ("1 234", 1234),
        ("1\u202f234", 1234), ("1\u00a0234", 1234), ("€ 6.50", 6.5), ("6 €", 6), ("￥7", 7), ("7元", 7), ("7 %", 7),
        ("12,34", None), ("1,2345", None), ("", None), ("-", None), (".", None), ("e5", None), ("1.2.3", None),
        ("two", None), ("1-2", None), ("9" * 17, int("9" * 17)), ("9" * 18, float("9" * 18)),
    ],
)  # fmt: skip
def test_a_number_is_what_a_cell_shows(cell: str, number: float | None) -> None:
    found = querying._number(cell)
    assert (found, type(found)) == (number, type(number))


@pytest.mark.parametrize(("notes", "kind"), [(0, "NUMERIC"), (1, "NUMERIC"), (2, "TEXT")])
def test_a_few_notes_do_not_make_a_column_a_text(notes: int, kind: str) -> None:
    assert read({"n": ["n/a"] * notes + ["1"] * (10 - notes) + [""] * 5}) == {"n": kind}


def test_a_column_has_its_cells_whatever_the_rows_lack() -> None:
    table = querying._table("t", [["a", "A", " "], ["1"], ["2", "x", " y ", "z"], ["n", "", ""]])
    assert table.columns == ("a", "A_2", "column_3", "column_4")
    assert table.rows == (("1", None, None, None), ("2", "x", "y", "z"), ("n", None, None, None))
    mixed = querying._table("t", [["a"], *[["1"]] * 9, ["n/a"]])
    assert mixed.types == ("NUMERIC",)
    assert mixed.rows[-2:] == ((1,), ("n/a",))


def test_names_are_unique_whatever_their_case() -> None:
    names: set[str] = set()
    assert [querying._unique(name, names) for name in ("a", "A", "a_2", "a")] == ["a", "A_2", "a_2_2", "a_3"]


@pytest.mark.parametrize(("rows", "more"), [(2, False), (3, True)])
def test_a_result_of_just_the_limit_is_whole(rows: int, more: bool) -> None:
    table = Table("t", ("a",), ("NUMERIC",), tuple((number,) for number in range(rows)))
    result = run_query([table], "SELECT a FROM t", max_rows=2)
    assert result == {"columns": ["a"], "rows": [[0], [1]], "more": more}


def test_a_process_gets_the_limits_and_no_variable_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACME_API_KEY", "secret")
    seen: dict[str, Any] = {}

    def run(command: list[str], **more: Any) -> Any:
        seen.update(more, command=command, job=json.loads(more["input"]))
        return subprocess.CompletedProcess(command, 0, b'{"columns": [], "rows": [], "more": false}', b"")

    monkeypatch.setattr(querying.subprocess, "run", run)
    run_query([SMALL], "SELECT 1", max_rows=7)
    assert seen["command"][1:3] == ["-I", "-S"]
    assert set(seen["env"]) <= {"SYSTEMROOT"}
    assert seen["timeout"] == 30
    limits = {name: seen["job"][name] for name in ("max_rows", "wall_s", "cpu_s", "memory_bytes")}
    assert limits == {"max_rows": 7, "wall_s": 10, "cpu_s": 20, "memory_bytes": 1 << 30}


@pytest.mark.parametrize(
    ("end", "kind", "says"),
    [
        (
            subprocess.TimeoutExpired("x", 1),
            ToolArgumentError,
            "the query takes too long: simplify it or select fewer rows",
        ),
        (OSError("none"), ToolServiceError, "cannot start a process for the query: none"),
        (
            subprocess.CompletedProcess([], -9, b"", b""),
            ToolArgumentError,
            "takes too long or uses too much memory: simplify it or select fewer rows",
        ),
        (subprocess.CompletedProcess([], 0, b'{"error": "x"}', b""), ToolArgumentError, "the query failed: x"),
    ],
    ids=["time", "start", "killed", "error"],
)
def test_each_end_of_a_query_is_told(
    end: Any, kind: type[Exception], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(*_: Any, **__: Any) -> Any:
        if isinstance(end, Exception):
            raise end
        return end

    monkeypatch.setattr(querying.subprocess, "run", run)
    with pytest.raises(kind, match=says):
        run_query([SMALL], "SELECT 1", max_rows=1)
