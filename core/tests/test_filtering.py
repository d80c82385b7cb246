"""Filters over metadata: how they are written, what they select, and which are errors."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield.errors import ConfigError
from jackfield.retrieval import Chunk, Corpus, Where, check_metadata

CHUNK = Chunk(
    "1",
    "/data/Reports/2024/q1.PDF",
    "text",
    0,
    1,
    page=3,
    headings=("Results", "Sales"),
    title="First Quarter [draft]",
    metadata={"year": 2024, "author": "Ada", "tags": ("red", "blue"), "final": True, "created": "2024-03-05T10:00"},
)
CORPUS = Corpus((CHUNK, Chunk("2", "b.md", "text", 0, 1)))


@pytest.mark.parametrize(
    "where",
    [
        {},
        {"year": 2024},
        {"year": [2023, 2024]},
        {"year": {"gte": 2024, "lt": 2025}},
        {"year": {"not": 2023}},
        {"path": "reports/*"},
        {"path": "/data/reports/2024/q1.pdf"},
        {"path": "2024/q?.pdf"},
        {"path": "*.pdf"},
        {"name": "q1.pdf", "type": "PDF"},
        {"author": "ada"},
        {"author": ["Bob", "A*"]},
        {"tags": "blue"},
        {"tags": {"not": ["green"]}},
        {"final": True},
        {"page": {"gt": 2}},
        {"heading": "sales"},
        {"title": "*[draft]"},
        {"created": {"gte": date(2024, 3, 1)}},
        {"author": {"not": "Bob"}, "year": 2024},
    ],
)
def test_a_filter_selects(where: dict[str, Any]) -> None:
    assert 0 in CORPUS.select(Where.parse(where))


@pytest.mark.parametrize(
    "where",
    [
        {"year": 2023},
        {"year": {"gt": 2024}},
        {"year": 2024, "author": "Bob"},
        {"path": "ports/*"},
        {"path": "q1"},
        {"author": "Ad"},
        {"tags": "green"},
        {"tags": {"not": "red"}},
        {"final": False},
        {"title": "*[drat]"},
        {"created": {"lt": "2024-03-05"}},
    ],
)
def test_a_filter_leaves_out(where: dict[str, Any]) -> None:
    assert 0 not in CORPUS.select(Where.parse(where))


def test_a_missing_value_fulfils_only_not() -> None:
    assert CORPUS.select(Where.parse({"author": {"not": "Ada"}})).numbers == [1]
    assert CORPUS.select(Where.parse({"author": "*"})).numbers == [0]


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ({"yaer": 2024}, "no document has 'yaer'; did you mean 'year'"),
        ({"year": "2024"}, "year is number, and '2024' is text"),
        ({"final": 1}, "final is true or false, and 1 is number"),
        ({"year": {"above": 3}}, "gt, gte, lt, lte, not"),
        ({"year": {}}, "gt, gte, lt, lte, not"),
        ({"year": None}, "year must be a text, a number"),
        ({"year": []}, "year must be a text, a number"),
        ({"year": [2024, "x"]}, "of one kind"),
        ({"year": {"gt": [1, 2]}}, "gt needs one number or text"),
        ({"final": {"gt": True}}, "gt needs one number or text"),
        ({3: 4}, "keys must be texts"),
        ([("year", 2024)], "must be a dict"),
    ],
)
def test_a_filter_that_does_not_fit_says_why(where: Any, message: str) -> None:
    with pytest.raises(ConfigError, match="where") as caught:
        CORPUS.select(Where.parse(where))
    assert message in str(caught.value)


@pytest.mark.parametrize("values", [{"path": "x"}, {"": 1}, {"a": None}, {"a": {"b": 1}}, {"a": [1]}])
def test_metadata_that_does_not_fit_says_why(values: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="metadata"):
        check_metadata(values)


@given(st.text(max_size=30), st.text(max_size=30))
def test_any_text_is_equal_to_itself_only(text: str, other: str) -> None:
    corpus = Corpus((Chunk("1", "a", "t", 0, 1, metadata={"key": text}),))
    if not set("*?") & set(text):
        assert 0 in corpus.select(Where.parse({"key": text}))
    if not set("*?") & set(other):
        assert (0 in corpus.select(Where.parse({"key": other}))) == (text.lower() == other.lower()) or (
            text.casefold() == other.casefold()
        )


@pytest.mark.timeout(60)  # with backtracking, it would take years
def test_a_pattern_of_many_stars_ends() -> None:
    corpus = Corpus((Chunk("1", "a", "t", 0, 1, metadata={"key": "a" * 5000}),))
    assert len(corpus.select(Where.parse({"key": "*a" * 40 + "b"}))) == 0


@pytest.mark.parametrize("name", ["g1", "g0 g1", "a.g10", "[g1]", "(?P<g0>a)", "a|b", "^a$"])
def test_a_name_that_looks_like_a_part_of_an_expression_is_a_name(name: str) -> None:
    corpus = Corpus((Chunk("1", f"/docs/{name}/{name}", "t", 0, 1),))
    for where in ({"name": name}, {"path": f"{name}/*"}, {"path": f"*/{name}"}, {"name": [f"{name[:-1]}?", "x"]}):
        assert 0 in corpus.select(Where.parse(where)), where
    assert 0 not in corpus.select(Where.parse({"path": "g1_0/*"}))
