"""Which price counts, and what a usage costs by it."""

from __future__ import annotations

import re
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield.errors import ConfigError
from jackfield.messages import Usage
from jackfield_budget.prices import PriceRow, PriceTable, Rates, Tier, parse_rows, rows_of, shipped_rows

DAY = date(2026, 11, 21)


def _row(**fields: Any) -> PriceRow:
    return PriceRow(
        **{"models": ("m",), "currency": "USD", "valid_from": date(2026, 1, 1), "input": 1, "output": 2, **fields}
    )


# --- what it costs ---


def test_cached_and_reasoning_tokens_are_parts_with_prices_of_their_own() -> None:
    rates = Rates(input=Decimal(10), cached_input=Decimal(1), output=Decimal(100), reasoning=Decimal(50))
    usage = Usage(prompt_tokens=1000, cached_tokens=400, completion_tokens=100, reasoning_tokens=60)
    assert rates.cost(usage) == Decimal("0.0134")
    alike = Rates(input=Decimal(10), output=Decimal(100))
    assert alike.cost(usage) == Decimal("0.02")


COUNTS = st.integers(0, 10**9)
PRICES = st.decimals(0, 1000, places=6)


@given(PRICES, st.none() | PRICES)
def test_the_least_a_prompt_costs_is_its_price_new_or_from_the_cache(new: Decimal, old: Decimal | None) -> None:
    rates = Rates(input=new, cached_input=old, output=Decimal(0))
    costs = [rates.cost(Usage(prompt_tokens=10**6, cached_tokens=cached)) for cached in (0, 10**6)]
    assert rates.least_input == min(costs)


@given(COUNTS, COUNTS, COUNTS, COUNTS, PRICES, PRICES, PRICES, PRICES)
def test_the_cost_is_exact_and_lies_between_the_cheapest_and_the_dearest(
    prompt: int, cached: int, answer: int, reasoning: int, new: Decimal, old: Decimal, said: Decimal, thought: Decimal
) -> None:
    rates = Rates(input=new, cached_input=old, output=said, reasoning=thought)
    usage = Usage(prompt_tokens=prompt, cached_tokens=cached, completion_tokens=answer, reasoning_tokens=reasoning)
    cost = rates.cost(usage)
    assert isinstance(cost, Decimal)
    low = (prompt * min(new, old) + answer * min(said, thought)) / Decimal(10**6)
    high = (prompt * max(new, old) + answer * max(said, thought)) / Decimal(10**6)
    assert low <= cost <= high
    cached, reasoning = min(cached, prompt), min(reasoning, answer)
    micro = [int(price * 10**6) for price in (new, old, said, thought)]  # in whole numbers there is nothing to round
    counts = (prompt - cached, cached, answer - reasoning, reasoning)
    assert cost * 10**12 == sum(price * count for price, count in zip(micro, counts, strict=True))


def test_a_tier_is_for_the_whole_call() -> None:
    tiers = (
        Tier(up_to=100, input=Decimal(1), output=Decimal(1)),
        Tier(up_to=200, input=Decimal(5), output=Decimal(5)),
    )
    row = PriceRow(models=("m",), currency="CNY", valid_from=DAY, tiers=tiers)
    assert [row.rates(tokens) for tokens in (0, 100, 101, 200, 201)] == [tiers[0], tiers[0], tiers[1], tiers[1], None]


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


def test_the_first_table_wins_however_vague_it_is() -> None:
    mine, shipped = _row(models=("*",)), _row(models=("m",), valid_from=DAY)
    assert PriceTable([mine], [shipped]).find("m", "s", DAY) is mine
    assert PriceTable([_row(models=("x",))], [shipped]).find("m", "s", DAY) is shipped


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
            "from the shortest",
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


# --- what comes along ---


def test_each_price_that_comes_along_has_a_source_and_names_models_in_full() -> None:
    for row in shipped_rows():
        assert row.source.startswith("https://"), row
        assert not any(letter in name for name in row.models for letter in "*?["), row
        assert "*" not in row.servers, row
        assert row.valid_from >= date(2025, 1, 1), row


def test_of_the_prices_that_come_along_two_are_never_for_the_same_model_from_the_same_day() -> None:
    seen = [(model, server, row.valid_from) for row in shipped_rows() for model in row.models for server in row.servers]
    assert len(seen) == len(set(seen))


def test_prices_that_changed_are_told_apart_by_the_day() -> None:
    table = PriceTable(shipped_rows())
    server = "openai@api.deepseek.com"

    def price(day: date) -> Decimal | None:
        row = table.find("deepseek-chat", server, day)
        return row and row.output

    assert price(date(2025, 9, 28)) == Decimal("1.68")
    assert price(date(2025, 9, 29)) == Decimal("0.42")
    assert price(date(2026, 5, 1)) is None
    assert table.find("deepseek-chat", "openai@localhost:8000", date(2025, 9, 29)) is None


def test_a_long_prompt_has_the_price_of_its_tier() -> None:
    row = PriceTable(shipped_rows()).find("qwen3.7-flash", "openai@dashscope.aliyuncs.com", DAY)
    assert row is not None
    rates = [row.rates(tokens) for tokens in (1_000, 100_000, 900_000)]
    assert [one and one.output for one in rates] == [Decimal("0.8"), Decimal("2.4"), Decimal("4.8")]
    assert row.currency == "CNY"


def test_the_example_in_the_readme_is_a_table() -> None:
    readme = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```toml title=\"prices.toml\"\n(.*?)```", readme, re.DOTALL)
    assert len(parse_rows(block, what="README.md")) == 2
