"""Test the tables of prices."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from jackfield.config import LLMConfig
from jackfield.errors import ConfigError
from jackfield.messages import Usage
from jackfield.prices import PriceRow, find_price
from jackfield_backends.known_models import find_model
from jackfield_backends.known_prices import HOSTS, find_prices, shipped_prices

WriteUserFile = Callable[[object], None]
ALL = [(host, row) for host in HOSTS for row in shipped_prices(host)]
DAY = date(2026, 11, 28)


@dataclass
class Model:
    """A model at a server, as far as prices need it."""

    config: LLMConfig
    server_name: str = "acme"
    url: str | None = None

    def configured_url(self) -> str | None:
        if self.url == "wrong":
            raise ConfigError("base_url is not a URL")
        return self.url


def _find(model: str, url: str | None = None, *, usual: str = "", server: str = "acme") -> tuple[PriceRow, ...]:
    return find_prices(Model(LLMConfig(model=model), server, url), usual)


@pytest.fixture
def write_user_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> WriteUserFile:
    """Write the user's `prices.json`."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))

    def write(content: object) -> None:
        folder = tmp_path / "jackfield"
        folder.mkdir(exist_ok=True)
        text = content if isinstance(content, str) else json.dumps(content)
        (folder / "prices.json").write_text(text, encoding="utf-8")

    return write


@pytest.mark.parametrize(("host", "row"), ALL, ids=[f"{host}-{row.models[0]}-{row.valid_from}" for host, row in ALL])
def test_every_row_has_a_day_and_a_page_and_can_be_found(host: str, row: PriceRow) -> None:
    assert row.source.startswith("https://")
    assert date(2025, 1, 1) <= row.valid_from <= DAY
    assert row.servers == ("*",)
    for pattern in row.models:
        name = re.sub(r"-20\?+$", "-20260131", pattern)
        assert not re.search(r"[*?\[]", name), "only a date at the end may be a pattern"
        assert row in _find(name, f"https://{host}/v1"), f"another row hides {pattern}"
        # Caches never cost more to read than to skip, and never less to write.
        for tokens in (1, 10**6):
            rates = row.rates(tokens)
            assert rates is not None
            assert (rates.cached_input or rates.input) <= rates.input <= rates.output
            assert rates.input <= (rates.cache_write or rates.input) <= (rates.long_cache_write or 10**6)


def test_two_rows_for_one_model_never_begin_on_the_same_day() -> None:
    names = [(host, name, row.valid_from) for host, row in ALL for name in row.models]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("host", "model", "usage", "cost"),
    [
        ("api.openai.com", "gpt-4.1-mini", {"prompt_tokens": 1000, "completion_tokens": 1000}, "0.002"),
        ("api.openai.com", "gpt-6-sol", {"prompt_tokens": 272_000}, "0.544"),
        ("api.openai.com", "gpt-6-sol", {"prompt_tokens": 272_001}, "1.088004"),
        ("api.anthropic.com", "claude-opus-5-5", {"prompt_tokens": 1000, "cache_write_tokens": 1000}, "0.005"),
        (
            "api.anthropic.com",
            "claude-opus-4-5-20251101",
            {"prompt_tokens": 1000, "cache_write_tokens": 1000, "long_cache_write_tokens": 1000},
            "0.01",
        ),
        ("api.anthropic.com", "claude-sonnet-5-5", {"prompt_tokens": 1000, "cached_tokens": 1000}, "0.0001"),
        ("api.anthropic.com", "claude-haiku-5-5", {"prompt_tokens": 100_001}, "0.0500005"),
        ("dashscope.aliyuncs.com", "qwen3.7-flash", {"completion_tokens": 1000}, "0.0008"),
    ],
)
def test_an_answer_costs_what_the_provider_states(host: str, model: str, usage: dict[str, Any], cost: str) -> None:
    row = find_price(_find(model, f"https://{host}/v1"), DAY)
    assert row is not None
    assert row.cost(Usage(**usage)) == Decimal(cost)


@pytest.mark.parametrize(
    ("model", "url"),
    [
        ("gpt-4.1", None),
        ("gpt-4.1", "https://api.openai.com.example.org/v1"),
        ("gpt-4.1", "http://127.0.0.1:8000/v1"),
        ("gpt-4.1", "wrong"),
        ("gpt-99", "https://api.openai.com/v1"),
        ("ft:gpt-4.1:acme::1", "https://api.openai.com/v1"),
        ("claude-opus-4-99", "https://api.anthropic.com"),
        ("qwen3.7-flash", "https://dashscope-intl.aliyuncs.com/api/v1"),
    ],
)
def test_a_model_or_a_server_that_is_not_listed_has_no_price(model: str, url: str | None) -> None:
    assert _find(model, url) == ()


def test_the_usual_address_decides_only_if_none_is_configured() -> None:
    assert _find("gpt-4.1", usual="https://api.openai.com/v1")
    assert not _find("gpt-4.1", "http://127.0.0.1:8000/v1", usual="https://api.openai.com/v1")


def test_prices_that_changed_differ_by_day() -> None:
    rows = _find("deepseek-chat", "https://api.deepseek.com")
    found = [find_price(rows, day) for day in (date(2025, 9, 28), date(2025, 9, 29), date(2026, 5, 1))]
    assert [row and row.output for row in found] == [Decimal("1.68"), Decimal("0.42"), None]


def test_rows_of_the_user_win_at_the_servers_that_they_name(write_user_file: WriteUserFile) -> None:
    row = {"models": ["gpt-4.1*"], "currency": "EUR", "valid_from": "2026-01-01", "input": 0.1, "output": 1}
    write_user_file([{**row, "servers": ["acme*"]}])
    (own,) = _find("gpt-4.1", "https://api.openai.com/v1", server="acme@api.openai.com")
    assert (own.input, own.currency) == (Decimal("0.1"), "EUR")
    (ours,) = _find("gpt-4.1", "https://api.openai.com/v1", server="openai")
    assert ours.currency == "USD"
    write_user_file([{**row, "models": ["gpt-4.1", "gpt*"]}])
    assert _find("gpt-9", "http://127.0.0.1:8000/v1", server="openai@127.0.0.1:8000")


def test_a_row_of_the_user_without_servers_is_for_all_and_the_closest_rows_win(
    write_user_file: WriteUserFile,
) -> None:
    row = {"currency": "EUR", "valid_from": "2026-01-01", "output": 1}
    write_user_file(
        [
            {**row, "models": ["acme*"], "input": 1},
            {**row, "models": ["acme-2*"], "input": 2},
            {**row, "models": ["acme-2*"], "input": 3, "valid_from": "2026-06-01"},
            {**row, "models": ["acme-2-x"], "input": 4},
        ]
    )
    prices = {name: [int(row.input) for row in _find(name)] for name in ("acme-1", "acme-2-y", "acme-2-x", "other")}
    assert prices == {"acme-1": [1], "acme-2-y": [2, 3], "acme-2-x": [4], "other": []}
    assert [int(row.input) for row in _find("acme-1", "https://api.openai.com/v1")] == [1]
    write_user_file([])
    assert _find("acme-1") == ()


def test_a_price_of_the_user_is_read_to_its_last_digit(write_user_file: WriteUserFile) -> None:
    price = "0.1234567890123456789012345"
    write_user_file(
        f'[{{"models": ["acme"], "currency": "EUR", "valid_from": "2026-01-01", "input": {price}, "output": 1}}]'
    )
    assert [row.input for row in _find("acme")] == [Decimal(price)]


def test_a_file_that_cannot_be_opened_is_an_error_that_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for name, find in (("prices.json", lambda: _find("acme")), ("models.json", lambda: find_model("acme", "acme"))):
        (tmp_path / "jackfield" / name).mkdir(parents=True)
        with pytest.raises(ConfigError, match=rf"jackfield/{name} is not valid JSON"):
            find()


def test_a_server_without_a_table_has_no_prices() -> None:
    assert shipped_prices("elsewhere.example") == ()
    for host in HOSTS:
        every = shipped_prices(host)
        name = every[0].models[0].replace("?", "1")
        assert {row.models for row in shipped_prices(host, name)} <= {row.models for row in every}
        assert shipped_prices(host, name)
        assert shipped_prices(host, "no such model") == ()


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("{", "JSON"),
        ({"gpt": 1}, "list"),
        (["gpt"], "list"),
        ([{"models": ["gpt"], "currency": "USD", "valid_from": "2026-01-01", "input": 1, "output": 1}, "gpt"], "list"),
        ([{"models": ["gpt"], "currency": "USD", "valid_from": "2026-01-01"}], "row 1"),
        ([{"models": ["gpt"], "price": 1}], "price"),
    ],
)
def test_a_wrong_file_of_the_user_is_an_error_that_names_it(
    write_user_file: WriteUserFile, content: object, problem: str
) -> None:
    write_user_file(content)
    with pytest.raises(ConfigError, match=problem) as caught:
        _find("gpt")
    assert "prices.json" in str(caught.value)
