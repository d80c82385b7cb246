"""Tables of documents are queried with SQL, completely and within limits."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from jackfield.errors import ToolArgumentError
from jackfield.tools import ToolContext, ToolResult
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
    assert '"orders" ("Order" TEXT, "Customer" TEXT, "Price" NUMERIC, "Paid" TEXT), 3000 rows' in text
    assert "customer 0" in text


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
    with pytest.raises(ToolArgumentError, match="the query cannot be answered"):
        run_query([SMALL], sql, max_rows=10)


ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT COUNT(*) FROM n"


def test_a_query_without_end_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jackfield_doc_parser.querying._WALL_S", 0.3)
    with pytest.raises(ToolArgumentError, match=r"took longer than 0\.3 s"):
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
    with pytest.raises(ToolArgumentError, match="no table"):
        query(str(path))


def test_a_document_without_tables_is_named(tmp_path: Path) -> None:
    path = tmp_path / "tea.txt"
    path.write_text("Green tea.")
    with pytest.raises(ToolArgumentError, match="no table"):
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
