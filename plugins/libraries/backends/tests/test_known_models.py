"""Test the tables of models."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield.config import LLMConfig
from jackfield.errors import ConfigError
from jackfield.request import ModelFacts
from jackfield_backends.known_models import PROVIDERS, UNKNOWN, KnownModel, find_model, shipped_models, with_configured

WriteUserFile = Callable[[object], None]
ALL = [(provider, entry) for provider in PROVIDERS for entry in shipped_models(provider)]


@pytest.fixture
def write_user_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> WriteUserFile:
    """Write the user's `models.json`."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))

    def write(content: object) -> None:
        folder = tmp_path / "jackfield"
        folder.mkdir(exist_ok=True)
        text = content if isinstance(content, str) else json.dumps(content)
        (folder / "models.json").write_text(text, encoding="utf-8")

    return write


class Config(LLMConfig):
    images: bool = True
    json_schema: bool | None = None
    context_tokens: int | None = None


@pytest.mark.parametrize(("provider", "entry"), ALL, ids=[f"{provider}-{entry.names[0]}" for provider, entry in ALL])
def test_every_entry_has_a_day_and_a_page_and_can_be_found(provider: str, entry: KnownModel) -> None:
    assert entry.as_of is not None
    assert entry.as_of <= date(2026, 11, 28)
    assert entry.source.startswith("https://")
    for pattern in entry.names:
        assert find_model(provider, pattern.replace("*", "")) is entry, f"another entry hides {pattern}"
    context, answer = entry.facts.get("context_tokens"), entry.facts.get("max_output_tokens")
    assert context is None or answer is None or answer <= context


@pytest.mark.parametrize(
    ("provider", "model", "context"),
    [
        ("anthropic", "claude-opus-4-5-20251101", 200_000),
        ("anthropic", "Claude-Opus-5-5", 1_000_000),
        ("openai", "gpt-4o-mini-2024-07-18", 128_000),
        ("openai", "gpt-5.4-mini", 400_000),
        ("openai", "gpt-5.4", 1_050_000),
        ("openai", "gpt-5.2-chat-latest", 128_000),
        ("dashscope", "qwen3-max-preview", 262_144),
        ("deepseek", "deepseek-v4-pro", 1_000_000),
    ],
)
def test_a_model_is_found_by_its_longest_pattern(provider: str, model: str, context: int) -> None:
    assert find_model(provider, model).facts["context_tokens"] == context


@given(st.sampled_from((*PROVIDERS, "", "acme")), st.text())
def test_an_unknown_model_has_no_facts(provider: str, model: str) -> None:
    assert find_model(provider, f"my own {model}") is UNKNOWN


def test_an_exact_name_wins_over_patterns_and_the_longest_pattern_over_others(write_user_file: WriteUserFile) -> None:
    names = [["a*"], ["abc"], ["ab*"], ["a*c"], ["a?*", "*cde*"], ["AB*"]]
    write_user_file({"acme": [{"names": each, "context_tokens": number} for number, each in enumerate(names, 1)]})

    def found(model: str) -> object:
        return find_model("acme", model).facts.get("context_tokens")

    assert [found(name) for name in ("a", "ABC", "abx", "axc", "xcdex", "b")] == [1, 2, 3, 4, 5, None]
    for names in (["a*", "a"], ["a", "a*"]):
        write_user_file({"acme": [{"names": [name], "tokenizer": name} for name in names]})
        assert find_model("acme", "a").facts["tokenizer"] == "a"
    write_user_file({"acme": [{"names": ["*"], "context_tokens": 6}, {"names": ["a*"], "context_tokens": 7}]})
    assert [found(name) for name in ("a", "b", "")] == [7, 6, 6]


def test_what_an_entry_states_is_read(write_user_file: WriteUserFile) -> None:
    entry = {"names": ["A-1", "a-2*"], "as_of": "2026-01-31", "source": "s", "images": False, "tokenizer": "t", "x": 1}
    write_user_file({"acme": [entry, {"names": ["b"]}]})
    known = find_model("acme", "a-2-large")
    assert known == KnownModel(("a-1", "a-2*"), date(2026, 1, 31), "s", {"images": False, "tokenizer": "t"}, {"x": 1})
    assert find_model("acme", "B") == KnownModel(("b",))
    assert find_model("other", "a-1") is UNKNOWN


@pytest.mark.parametrize("name", ["max_output_tokens", "context_tokens"])
def test_a_number_of_tokens_is_at_least_one(write_user_file: WriteUserFile, name: str) -> None:
    write_user_file({"acme": [{"names": ["a"], name: 1}]})
    assert find_model("acme", "a").facts == {name: 1}
    for value in (0, -1, "1", 1.0, None):
        write_user_file({"acme": [{"names": ["a"], name: value, "x": str(value)}]})
        with pytest.raises(ConfigError, match=f"'{name}' of 'a' must be a number of tokens"):
            find_model("acme", "a")


def test_a_price_is_no_fact_of_these_tables(write_user_file: WriteUserFile) -> None:
    write_user_file({"acme": [{"names": ["a"], "prices": 1}]})
    assert find_model("acme", "a").details == {"prices": 1}


def test_an_entry_of_the_user_replaces_ours(write_user_file: WriteUserFile) -> None:
    write_user_file({"openai": [{"names": ["GPT-4o*"], "context_tokens": 7, "speed": "high"}]})
    known = find_model("openai", "gpt-4o-mini")
    assert (known.facts, known.details) == ({"context_tokens": 7}, {"speed": "high"})
    assert find_model("openai", "gpt-4.1").facts["context_tokens"] == 1_047_576
    write_user_file({"openai": [{"names": ["gpt-4o*"], "context_tokens": 1234567}]})
    assert find_model("openai", "gpt-4o-mini").facts == {"context_tokens": 1234567}


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("{", "JSON"),
        ([], "object"),
        ([1], "object"),
        ("acme", "JSON"),
        ({"openai": {}}, "list"),
        ({"openai": [{}]}, "names"),
        ({"openai": [{"names": "gpt"}]}, "names"),
        ({"openai": [{"names": []}]}, "names"),
        ({"openai": [{"names": ["gpt", 3]}]}, "names"),
        ({"openai": ["gpt"]}, "names"),
        ({"openai": [{"names": ["gpt"], "as_of": "soon"}]}, "as_of"),
        ({"openai": [{"names": ["gpt"], "as_of": ""}]}, "as_of"),
        ({"openai": [{"names": ["gpt"], "as_of": 20260131}]}, "as_of"),
        ({"openai": [{"names": ["gpt"], "images": "yes"}]}, "images"),
        ({"openai": [{"names": ["gpt"], "context_tokens": True}]}, "context_tokens"),
        ({"openai": [{"names": ["gpt"], "tokenizer": 3}]}, "tokenizer"),
    ],
)
def test_a_wrong_file_of_the_user_is_an_error_that_names_it(
    write_user_file: WriteUserFile, content: object, problem: str
) -> None:
    write_user_file(content)
    with pytest.raises(ConfigError, match=problem) as caught:
        find_model("openai", "gpt")
    assert "models.json" in str(caught.value)
    assert (Path("jackfield") / "models.json").as_posix() in str(caught.value)
    write_user_file({"openai": []})  # corrected, it is read again
    assert find_model("acme", "gpt") is UNKNOWN


@pytest.mark.parametrize(
    ("known", "config", "expected"),
    [
        ({}, {}, {"images": True}),
        ({"images": False, "context_tokens": 5}, {}, {"images": False, "context_tokens": 5}),
        (
            {"images": False, "context_tokens": 5},
            {"images": True, "context_tokens": 9},
            {"images": True, "context_tokens": 9},
        ),
        ({"images": False}, {"context_tokens": 3}, {"images": False, "context_tokens": 3}),
        ({"tokenizer": "t", "audio": True}, {}, {"images": True, "tokenizer": "t", "audio": True}),
        ({"json_schema": True}, {"json_schema": None}, {"images": True, "json_schema": True}),
        ({"json_schema": True}, {"json_schema": False}, {"images": True, "json_schema": False}),
    ],
)
def test_settings_win_over_facts_and_facts_over_defaults(
    known: dict[str, Any], config: dict[str, Any], expected: dict[str, Any]
) -> None:
    assert with_configured(known, Config(model="m", **config)) == ModelFacts(**expected)


def test_details_are_no_facts() -> None:
    facts = {fact.name for fact in fields(ModelFacts)}
    for _, entry in ALL:
        assert set(entry.facts) <= facts
        assert not set(entry.details) & facts
