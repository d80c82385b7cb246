"""Test which row of a table applies, and how tables are read."""

from __future__ import annotations

import re
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from jackfield.errors import ConfigError
from jackfield.prices import PriceRow
from jackfield_budget.prices import PriceTable, parse_rows, rows_of

DAY = date(2026, 11, 21)


def _row(**fields: Any) -> PriceRow:
    return PriceRow(
        **{"models": ("m",), "currency": "USD", "valid_from": date(2026, 1, 1), "input": 1, "output": 2, **fields}
    )


# --- which row ---


def test_the_row_that_is_valid_on_the_day_counts() -> None:
    old, new = _row(input=9), _row(valid_from=date(2026, 6, 1), input=3)
    gone = _row(models=("gone",), valid_until=date(2026, 3, 1))
    table = PriceTable([new, old, gone])
    assert table.find("m", "s", date(2025, 12, 31)) is None
    assert table.find("m", "s", date(2026, 1, 1)) is old
    assert table.find("m", "s", date(2026, 5, 31)) is old
    assert table.find("m", "s", date(2026, 6, 1)) is new
    assert table.find("gone", "s", date(2026, 3, 1)) is gone
    assert table.find("gone", "s", date(2026, 3, 2)) is None


def test_the_row_that_names_the_model_most_closely_counts_whatever_its_day() -> None:
    all_, some, one = _row(models=("*",), valid_from=DAY), _row(models=("model-*",)), _row(models=("model-x",))
    table = PriceTable([all_, some, one])
    assert [table.find(name, "s", DAY) for name in ("model-x", "model-y", "else")] == [one, some, all_]


def test_a_row_is_for_its_servers_alone() -> None:
    table = PriceTable([_row(servers=("openai", "openai@*.acme.example"))])
    servers = ("openai", "openai@api.acme.example", "openai@localhost:8000", "azure")
    assert [table.find("m", server, DAY) is not None for server in servers] == [True, True, False, False]


def test_a_price_for_some_time_leaves_the_one_before_in_its_place() -> None:
    always, sale = _row(input=9), _row(valid_from=date(2026, 6, 1), valid_until=date(2026, 6, 30), input=3)
    table = PriceTable([always, sale])
    days = (date(2026, 5, 31), date(2026, 6, 1), date(2026, 6, 30), date(2026, 7, 1))
    assert [table.find("m", "s", day) for day in days] == [always, sale, sale, always]


# --- as it is written ---

TABLE = """
[[price]]
models = ["m"]
currency = "EUR"
valid_from = 2026-03-01
input = 0.1
output = 0.3
"""


def test_rows_come_from_a_file_a_dict_or_a_list_and_figures_are_as_written(tmp_path: Path) -> None:
    path = tmp_path / "prices.toml"
    path.write_text(TABLE)
    row = {"models": ["m"], "currency": "EUR", "valid_from": date(2026, 3, 1), "input": "0.1", "output": "0.3"}
    assert rows_of(path) == rows_of(str(path)) == rows_of({"price": [row]}) == rows_of([row])
    (read,) = rows_of(path)
    assert (read.input, read.output) == (Decimal("0.1"), Decimal("0.3"))
    assert rows_of(None) == ()


def test_a_file_may_be_in_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    (tmp_path / "prices.toml").write_text(TABLE)
    assert len(rows_of("~/prices.toml")) == 1


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"input": None}, "`input` and `output`"),
        ({"input": -1}, "input"),
        ({"currency": "dollars"}, "currency"),
        ({"models": []}, "models"),
        ({"prompt": 3}, "unknown setting 'price.0.prompt'"),
        ({"tiers": [{"up_to": 9, "input": 1, "output": 1}]}, "either in the row or in its tiers"),
        (
            {"input": None, "output": None, "tiers": [{"up_to": n, "input": 1, "output": 1} for n in (9, 3)]},
            "ordered by prompt length, shortest",
        ),
    ],
)
def test_a_row_that_does_not_fit_is_named(change: dict[str, Any], said: str) -> None:
    row = {"models": ["m"], "currency": "EUR", "valid_from": "2026-03-01", "input": 1, "output": 1, **change}
    with pytest.raises(ConfigError, match=re.escape(said)):
        rows_of([row])


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"missing\.toml cannot be read"):
        rows_of(tmp_path / "missing.toml")
    (tmp_path / "broken.toml").write_text("price = [")
    with pytest.raises(ConfigError, match=r"broken\.toml is not valid TOML"):
        rows_of(tmp_path / "broken.toml")
    (tmp_path / "latin.toml").write_bytes(b"# M\xfcnzen")
    with pytest.raises(ConfigError, match=r"latin\.toml cannot be read: 'utf-8' codec"):
        rows_of(tmp_path / "latin.toml")


def test_the_example_in_the_readme_is_a_table() -> None:
    readme = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```toml title=\"prices.toml\"\n(.*?)```", readme, re.DOTALL)
    assert len(parse_rows(block, what="README.md")) == 2
