"""Test which price applies to an answer, and the cost at it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from jackfield import FnCallAgent, tool
from jackfield.errors import ConfigError
from jackfield.events import ModelEvent, TextDelta, UsageReported
from jackfield.messages import Usage
from jackfield.prices import PriceRow, Rates, Tier, add_cost, add_costs, find_price
from jackfield.request import ModelFacts
from jackfield.testing import ScriptedModel, answer, calls

DAY = date(2026, 11, 21)
USAGE = Usage(prompt_tokens=5000, completion_tokens=500)
COUNTS = st.integers(0, 10**9)
PRICES = st.decimals(0, 1000, places=6)


def _rates(**prices: Any) -> Rates:
    return Rates(**prices)


def _tier(**fields: Any) -> Tier:
    return Tier(**fields)


def _row(**fields: Any) -> PriceRow:
    return PriceRow(
        **{"models": ("m",), "currency": "USD", "valid_from": date(2026, 1, 1), "input": 1, "output": 10, **fields}
    )


def test_tokens_of_the_cache_and_of_reasoning_have_prices_of_their_own() -> None:
    usage = Usage(
        prompt_tokens=1000,
        cached_tokens=400,
        cache_write_tokens=300,
        long_cache_write_tokens=100,
        completion_tokens=100,
        reasoning_tokens=60,
    )
    own = _rates(input=10, cached_input=1, cache_write=12, long_cache_write=20, output=100, reasoning=50)
    # 300 new, 400 read from the cache, 200 and 100 written to it, 40 of the answer and 60 of reasoning.
    assert own.cost(usage) == Decimal(300 * 10 + 400 + 200 * 12 + 100 * 20 + 40 * 100 + 60 * 50) / 1_000_000
    assert _rates(input=10, output=100).cost(usage) == Decimal("0.02")
    assert _rates(input=10, cache_write=12, output=0).cost(usage) == Decimal(700 * 10 + 300 * 12) / 1_000_000


@given(PRICES, st.none() | PRICES, st.none() | PRICES, st.none() | PRICES)
def test_the_least_a_prompt_costs_is_the_lowest_of_its_prices(
    new: Decimal, cached: Decimal | None, write: Decimal | None, long: Decimal | None
) -> None:
    rates = _rates(input=new, cached_input=cached, cache_write=write, long_cache_write=long, output=0)
    whole = Usage(prompt_tokens=10**6)
    kinds: list[dict[str, int]] = [
        {},
        {"cached_tokens": 10**6},
        {"cache_write_tokens": 10**6},
        {"cache_write_tokens": 10**6, "long_cache_write_tokens": 10**6},
    ]
    assert rates.least_input <= min(rates.cost(whole.model_copy(update=kind)) for kind in kinds)


@given(st.tuples(*[COUNTS] * 6), st.tuples(*[PRICES] * 6))
def test_the_cost_is_exact_and_lies_between_the_cheapest_and_the_dearest(
    counts: tuple[int, ...], prices: tuple[Decimal, ...]
) -> None:
    prompt, cached, written, long, completion, reasoning = counts
    new, old, write, long_write, said, thought = prices
    rates = _rates(
        input=new, cached_input=old, cache_write=write, long_cache_write=long_write, output=said, reasoning=thought
    )
    usage = Usage(
        prompt_tokens=prompt,
        cached_tokens=cached,
        cache_write_tokens=written,
        long_cache_write_tokens=long,
        completion_tokens=completion,
        reasoning_tokens=reasoning,
    )
    cost = rates.cost(usage)
    inputs = (new, old, write, long_write)
    assert isinstance(cost, Decimal)
    low = (prompt * min(inputs) + completion * min(said, thought)) / Decimal(10**6)
    high = (prompt * max(inputs) + completion * max(said, thought)) / Decimal(10**6)
    assert low <= cost <= high
    assert (cost * 10**12) % 1 == 0  # nothing is rounded


def test_a_tier_is_for_the_whole_call_and_the_last_may_be_open() -> None:
    tiers = (_tier(up_to=100, input=1, output=1), _tier(up_to=200, input=5, output=5))
    row = _row(input=None, output=None, tiers=tiers)
    assert [row.rates(tokens) for tokens in (0, 100, 101, 200, 201)] == [tiers[0], tiers[0], tiers[1], tiers[1], None]
    assert row.cost(Usage(prompt_tokens=201)) is None
    last = _tier(input=9, output=9)
    assert _row(input=None, output=None, tiers=(*tiers, last)).rates(10**9) == last
    with pytest.raises(ValidationError, match="ordered by prompt length, shortest"):
        _row(input=None, output=None, tiers=(last, *tiers))


def test_the_row_with_the_latest_first_day_that_is_valid_applies() -> None:
    always, sale = _row(), _row(valid_from=date(2026, 6, 1), valid_until=date(2026, 6, 30))
    days = (date(2025, 12, 31), date(2026, 5, 31), date(2026, 6, 1), date(2026, 6, 30), date(2026, 7, 1))
    assert [find_price([always, sale], day) for day in days] == [None, always, sale, sale, always]


@pytest.mark.parametrize(
    ("usage", "rows"),
    [
        (USAGE, []),
        (USAGE, [_row(valid_from=date(2027, 1, 1))]),
        (USAGE, [_row(input=None, output=None, tiers=(_tier(up_to=10, input=1, output=1),))]),
        (USAGE.model_copy(update={"cost": Decimal(3), "currency": "EUR"}), [_row()]),
    ],
    ids=["none", "other day", "longer than the last tier", "stated by the server"],
)
def test_a_cost_is_never_guessed_and_never_replaced(usage: Usage, rows: list[PriceRow]) -> None:
    assert add_cost(usage, rows, DAY) == usage


def test_each_report_of_an_answer_gets_its_cost_at_the_price_of_its_day() -> None:
    rows = [_row(), _row(valid_from=DAY, input=2, output=20)]
    days = iter([date(2026, 11, 20), DAY])

    async def events() -> AsyncIterator[ModelEvent]:
        yield TextDelta("a")
        yield UsageReported(USAGE)
        yield UsageReported(USAGE)

    async def read() -> list[ModelEvent]:
        return [event async for event in add_costs(events(), rows, day=lambda: next(days))]

    text, first, second = asyncio.run(read())
    assert text == TextDelta("a")
    assert isinstance(first, UsageReported)
    assert isinstance(second, UsageReported)
    assert [first.usage.cost, second.usage.cost] == [Decimal("0.01"), Decimal("0.02")]


def test_the_stream_of_a_model_is_closed_when_its_reader_leaves() -> None:
    closed: list[str] = []

    async def events() -> AsyncIterator[ModelEvent]:
        try:
            yield TextDelta("a")
            yield TextDelta("b")
        finally:
            closed.append("closed")

    async def leave() -> None:
        priced = add_costs(events(), [_row()])
        await anext(priced)
        await priced.aclose()  # type: ignore[attr-defined]
        assert closed == ["closed"]

    asyncio.run(leave())


@tool
def count(word: str) -> int:
    """Count the letters of a word."""
    return len(word)


def test_a_run_costs_the_sum_of_its_answers_at_the_prices_of_its_model() -> None:
    script = [calls(("count", {"word": "oak"})), answer("3", usage=USAGE)]
    priced = ScriptedModel(script, facts=ModelFacts(prices=(_row(currency="EUR"),)))
    result = FnCallAgent([count], priced).ask("How many letters has oak?")
    # One token of each kind for the call, and a cent for the answer.
    assert (result.cost, result.usage.currency) == (Decimal("0.000011") + Decimal("0.01"), "EUR")
    free = ScriptedModel(script, facts=ModelFacts(prices=(_row(input=0, output=0),)))
    assert FnCallAgent([count], free).ask("How many letters has oak?").cost == 0
    assert FnCallAgent([count], ScriptedModel(script)).ask("How many letters has oak?").cost is None


async def stream_of(*events: ModelEvent) -> AsyncIterator[ModelEvent]:
    for event in events:
        yield event


def parsed_row(models: Any = ("m",), start: date = date(2024, 1, 1), **more: Any) -> PriceRow:
    return PriceRow.parse({"models": models, "currency": "USD", "valid_from": start, "input": 1, "output": 2, **more})


USED = Usage(
    prompt_tokens=1_000_000, completion_tokens=1_000_000, cached_tokens=100_000, cache_write_tokens=300_000,
    long_cache_write_tokens=200_000, reasoning_tokens=400_000,
)  # fmt: skip


def test_each_part_of_a_usage_has_its_price() -> None:
    rates = {"input": 1, "cached_input": 10, "cache_write": 100, "long_cache_write": 1000, "output": 2, "reasoning": 20}
    cost = Rates.parse(rates).cost(USED)
    assert cost == Decimal("0.6") + 1 + 10 + 200 + Decimal("1.2") + 8
    assert Rates.parse({"input": 1, "output": 2}).cost(USED) == 3
    assert Rates.parse({"input": 1, "output": 2, "cache_write": 100}).cost(USED) == Decimal("0.7") + 30 + 2
    assert Rates.parse(rates).least_input == 1
    assert Rates.parse({**rates, "cached_input": 0}).least_input == 0
    odd = Usage(prompt_tokens=10, cached_tokens=20, cache_write_tokens=5, reasoning_tokens=9)
    assert Rates.parse({"input": 1, "output": 2, "cached_input": 0}).cost(odd) == 0


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"input": None}, "a row needs `input` and `output`, or `tiers`"),
        ({"output": None}, "a row needs `input` and `output`, or `tiers`"),
        ({"tiers": [{"input": 1, "output": 2}]}, "specify prices either in the row or in its tiers, not in both"),
        (
            {
                "input": None,
                "output": None,
                "tiers": [{"input": 1, "output": 2}, {"input": 1, "output": 2, "up_to": 5}],
            },
            "tiers must be ordered by prompt length, shortest first, each with a different `up_to`",
        ),
        ({"currency": "usd"}, "currency"),
        ({"models": []}, "models"),
    ],
)
def test_a_row_of_prices_that_is_none_is_refused(change: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parsed_row(**change)
    assert said in str(caught.value)


def test_prices_are_those_of_the_day_the_model_and_the_length() -> None:
    tiered = parsed_row(
        input=None, output=None, tiers=[{"input": 1, "output": 2, "up_to": 10}, {"input": 3, "output": 4, "up_to": 20}]
    )
    assert [rates and rates.input for rates in map(tiered.rates, (10, 11, 20, 21))] == [1, 3, 3, None]
    assert tiered.cost(Usage(prompt_tokens=21)) is None
    early, late = parsed_row(), parsed_row(start=date(2024, 6, 1), valid_until=date(2024, 6, 2))
    days = [date(2023, 12, 31), date(2024, 1, 1), date(2024, 6, 1), date(2024, 6, 2), date(2024, 6, 3)]
    assert [find_price([early, late], day) for day in days] == [None, early, late, late, early]
    close = parsed_row(["gpt-4", "gpt-*", "*"], servers=["openai", "azure@*"])
    asked = (("gpt-4", "openai"), ("gpt-5", "azure@h"), ("x", "openai"), ("x", "y"))
    assert [close.closeness(*one) for one in asked] == [10_000, 4, 0, None]
    assert (
        parsed_row(["gpt-?", "gpt-[45]", "g*"]).closeness("gpt-4", "openai") == 7
    )  # `[` is the only sign of a pattern
    assert parsed_row(["gpt-?"]).closeness("gpt-4", "openai") == 4


def test_a_cost_is_added_where_the_price_is_known_and_none_was_stated() -> None:
    used, stated = Usage(prompt_tokens=1_000_000), Usage(prompt_tokens=1, cost=Decimal(9), currency="EUR")
    day = date(2024, 1, 1)
    assert (add_cost(used, [parsed_row()], day).cost, add_cost(used, [parsed_row()], day).currency) == (1, "USD")
    assert add_cost(stated, [parsed_row()], day) is stated
    assert add_cost(used, [], day) is used
    assert add_cost(used, [parsed_row()], date(2023, 1, 1)) is used

    async def read() -> list[ModelEvent]:
        events = stream_of(TextDelta("a"), UsageReported(used))
        return [event async for event in add_costs(events, [parsed_row()], day=lambda: day)]

    text, reported = asyncio.run(read())
    assert (text, reported.usage.cost) == (TextDelta("a"), 1)  # type: ignore[union-attr]
