"""The effects of the options, tested without an index."""

from __future__ import annotations

import argparse
from typing import Any

import pytest

from jackfield.cli.main import main
from jackfield.errors import ConfigError
from jackfield_documents import RAGConfig
from jackfield_index.options import (
    chosen_number,
    chosen_searchers,
    make_parser,
    read_config,
    read_value,
    read_values,
    read_where,
)

ACTIONS = ("build", "add", "remove", "set_values", "watch", "list_all", "info", "search")


def parse(*words: str) -> argparse.Namespace:
    actions: dict[str, Any] = {name: name for name in ACTIONS}
    return make_parser(**actions).parse_args(words)


@pytest.mark.parametrize(
    ("conditions", "where"),
    [
        ([], None),
        (["year=2024"], {"year": [2024]}),
        (["name=a", "name=b"], {"name": ["a", "b"]}),
        (["year!=2024"], {"year": {"not": 2024}}),
        (["year>2020"], {"year": {"gt": 2020}}),
        (["year>=2020", "year<=2024"], {"year": {"gte": 2020, "lte": 2024}}),
        (["year<2020"], {"year": {"lt": 2020}}),
        ([" team = sales"], {"team": [" sales"]}),
        (["team=a=b"], {"team": ["a=b"]}),
        (["text=one\ntwo"], {"text": ["one\ntwo"]}),
        (["year>=2020", "team=sales"], {"team": ["sales"], "year": {"gte": 2020}}),
    ],
)
def test_conditions_become_a_filter(conditions: list[str], where: dict[str, object] | None) -> None:
    assert read_where(conditions) == where


@pytest.mark.parametrize(
    ("conditions", "says"),
    [
        (["year"], "--where: invalid condition 'year'; use KEY=VALUE"),
        (["year="], "invalid condition"),
        (["=2024"], "invalid condition"),
        (["year>2020", "year>2021"], "--where: year> was specified twice; remove one"),
        (["year>2020", "year>2020"], "--where: year> was specified twice; remove one"),
        (["year=2020", "year>2021"], "--where: year has both '=' and another condition; remove one"),
        (["year>2021", "year=2020"], "--where: year has both '=' and another condition; remove one"),
    ],
)
def test_conditions_that_do_not_go_together_are_refused(conditions: list[str], says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_where(conditions)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2024", 2024),
        ("0.5", 0.5),
        ("true", True),
        ('"2024"', "2024"),
        ("sales", "sales"),
        ("null", "null"),
        ("[1]", "[1]"),
        ("", ""),
    ],
)
def test_numbers_truths_and_quoted_texts_are_read_as_json(text: str, value: object) -> None:
    read = read_value(text)
    assert (read, type(read)) == (value, type(value))
    assert read_values([f" key ={text}", "other=1"]) == {"key": value, "other": 1}


@pytest.mark.parametrize("text", ["year", "=2024", " =2024"])
def test_a_value_needs_a_key(text: str) -> None:
    with pytest.raises(ConfigError, match="must have the form KEY=VALUE, such as year=2024"):
        read_values([text])


@pytest.mark.parametrize(
    ("words", "defaults"),
    [
        (["build", "n"], {"work": "build", "name": "n", "files": [], "chunk_size": None, "json": False}),
        (["build", "n", "--chunk-size", "1", "--chunk-overlap", "0"], {"chunk_size": 1, "chunk_overlap": 0}),
        (["add", "n", "f", "--json"], {"work": "add", "files": ["f"], "json": True, "trust": False}),
        (["remove", "n"], {"work": "remove", "files": [], "where": []}),
        (["set", "n", "a=1", "b=2"], {"work": "set_values", "values": ["a=1", "b=2"], "where": []}),
        (["watch", "n"], {"work": "watch", "interval": 2.0, "files": []}),
        (["watch", "n", "--interval", "0.1"], {"interval": 0.1}),
        (["watch", "n", "--interval", "86400"], {"interval": 86_400.0}),
        (["list"], {"work": "list_all"}),
        (["info", "n"], {"work": "info"}),
        (["search", "n", "a", "b"], {"work": "search", "query": ["a", "b"], "limit": 10, "type": None, "searcher": []}),
        (["search", "n", "a", "--limit", "1", "--type", "hybrid"], {"limit": 1, "type": "hybrid"}),
    ],
)
def test_options_have_these_values(words: list[str], defaults: dict[str, object]) -> None:
    options = vars(parse(*words))
    assert {name: options[name] for name in defaults} == defaults


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["build", "n", "--chunk-size", "0"], "must be at least 1, got 0"),
        (["build", "n", "--chunk-overlap", "-1"], "must be at least 0, got -1"),
        (["search", "n", "a", "--limit", "0"], "must be at least 1, got 0"),
        (["watch", "n", "--interval", "0.09"], "must be between 0.1 and 86400, got 0.09"),
        (["watch", "n", "--interval", "86401"], "must be between 0.1 and 86400, got 86401"),
        (["build", "n", "--chunk-size", "x"], "expected a whole number, got 'x'"),
        (["watch", "n", "--interval", "x"], "expected a number of seconds, such as 0.5, got 'x'"),
        (["watch", "n", "--interval", "nan"], "must be between 0.1 and 86400, got nan"),
        (["search", "n"], "QUERY"),
        (["add", "n"], "FILES"),
        (["set", "n"], "KEY=VALUE"),
        (["search", "n", "a", "--type", "fuzzy"], "fuzzy"),
        (["build", "n", "--chunk-s", "5"], "unrecognized arguments: --chunk-s"),  # no abbreviations
        ([], "COMMAND"),
    ],
)
def test_wrong_options_end_with_2(words: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["index", *words])
    assert ended.value.code == 2
    assert says in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "settings"),
    [
        ([], {}),
        (["--type", "vector", "--embedding-model", "openai:m"], {"vector_search": {"embedding_model": "openai:m"}}),
        (
            ["--embedding-model", "openai:m"],
            {"keyword_search": {}, "vector_search": {"embedding_model": "openai:m"}},
        ),
        (["--searcher", "keyword_search"], {"keyword_search": {}}),
        (["--searcher", ' {"name": "keyword_search", "k1": 2}'], {"keyword_search": {"k1": 2}}),
        (
            ["--searcher", "vector_search", "--embedding-model", "openai:m"],
            {"vector_search": {"embedding_model": "openai:m"}},
        ),
    ],
)
def test_options_choose_searchers(words: list[str], settings: dict[str, object]) -> None:
    config = read_config(parse("search", "n", "a", *words))
    assert (chosen_searchers(config) or {}) == settings
    assert (chosen_searchers(config) is None) is not bool(words)


def test_searchers_of_the_options_replace_those_of_the_agent_file(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    file = tmp_path / "agent.yaml"
    file.write_text(
        "agent: assistant\nrag_cfg:\n  retrieval_type: hybrid\n  embedding_model: openai:m\n  chunk_overlap: 7\n"
        "  embedder_settings: {dimensions: 3}\n  index_path: vectors.sqlite\n"
    )
    config = read_config(parse("search", "n", "a", "--agent", str(file), "--trust", "--searcher", "keyword_search"))
    assert chosen_searchers(config) == {"keyword_search": {}}
    assert config.model_fields_set == {"rag_searchers", "chunk_overlap"}
    assert chosen_number(config, "chunk_overlap", None) == 7
    assert chosen_number(config, "chunk_overlap", 0) == 0
    assert chosen_number(config, "parser_page_size", None) is None
    assert chosen_number(config, "parser_page_size", 9) == 9


@pytest.mark.parametrize(
    ("settings", "is_chosen"),
    [
        ({}, False),
        ({"chunk_overlap": 7}, False),
        ({"rag_searchers": ["keyword_search"]}, True),
        ({"retrieval_type": "keyword"}, True),
        ({"rerank": "reranker"}, True),
    ],
)
def test_settings_that_name_a_searcher_choose_for_the_index(settings: dict[str, Any], is_chosen: bool) -> None:
    assert (chosen_searchers(RAGConfig.parse(settings)) is not None) is is_chosen
