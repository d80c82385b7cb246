"""Filters over metadata: how they are written, what they select, and which are errors."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield.errors import ConfigError
from jackfield.retrieval import Chunk, Corpus, Where, check_metadata
from jackfield.retrieval._filtering import document_values, kind_of, kinds_in, position_values
from jackfield.retrieval._searching import chunk_values

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
    ("value", "matches"),
    [(2024, True), (2024.5, True), (2022, False), ("2024", False), (True, False), (("2024", "2025"), False)],
)
def test_values_of_another_kind_are_neither_above_nor_below(value: Any, matches: bool) -> None:
    assert Where.parse({"year": {"gte": 2023}}).matches({"year": value}) is matches
    assert not Where.parse({"year": {"lt": "x"}}).matches({"year": 2024})


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ({"yaer": 2024}, "no document has the key 'yaer'; did you mean 'year'"),
        ({"year": "2024"}, "year has type number, but '2024' has type text"),
        ({"final": 1}, "final has type true or false, but 1 has type number"),
        ({"year": {"above": 3}}, "gt, gte, lt, lte, not"),
        ({"year": {}}, "gt, gte, lt, lte, not"),
        ({"year": None}, "year must be a string, a number"),
        ({"year": []}, "year must be a string, a number"),
        ({"year": [2024, "x"]}, "must have the same type"),
        ({"year": {"gt": [1, 2]}}, "gt needs a single number or string"),
        ({"final": {"gt": True}}, "gt needs a single number or string"),
        ({3: 4}, "keys must be non-empty strings"),
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


VALUES: dict[str, Any] = {
    "year": 2024, "path": "reports/Q1/a.pdf", "part": "x.zip › b.pdf", "author": ("Ada", "Bob"), "draft": True,
    "title": "One [1]",
}  # fmt: skip


@pytest.mark.parametrize(
    ("where", "matches"),
    [
        ({"year": 2024}, True), ({"year": 2024.0}, True), ({"year": "2024"}, False), ({"year": [2023, 2024]}, True),
        ({"year": {"gte": 2024, "lte": 2024}}, True), ({"year": {"gt": 2024}}, False), ({"year": {"lt": 2024}}, False),
        ({"year": {"gt": 2023, "lt": 2025}}, True), ({"year": {"not": 2024}}, False), ({"year": {"not": [1, 2]}}, True),
        ({"draft": True}, True), ({"draft": 1}, False), ({"draft": False}, False), ({"gone": "x"}, False),
        ({"gone": {"not": "x"}}, True), ({"gone": {"gt": 1}}, False), ({"author": "ada"}, True),
        ({"author": "A*"}, True),
        ({"author": "Cleo"}, False), ({"author": {"not": "Bob"}}, False), ({"author": {"gt": "B"}}, True),
        ({"path": "a.pdf"}, True), ({"path": "q1/*"}, True), ({"path": "/a.pdf"}, False), ({"path": "1/a.pdf"}, False),
        ({"path": r"reports\Q1\a.pdf"}, True), ({"part": "b.pdf"}, True), ({"part": "x.zip*"}, True),
        ({"title": "one [1]"}, True), ({"title": "One 1"}, False), ({"title": "O?e*"}, True), ({"title": "[1]"}, False),
        ({"year": 2024, "draft": False}, False), ({}, True),
    ],
    ids=str,
)  # fmt: skip
def test_a_filter_means_what_it_says(where: dict[str, Any], matches: bool) -> None:
    assert Where.parse(where).matches(VALUES) is matches


@pytest.mark.parametrize(
    ("where", "said"),
    [
        (5, "where must be a dict such as"), ({5: 1}, "where: keys must be non-empty strings, got 5"),
        ({"": 1}, "where: keys must be non-empty strings, got ''"),
        ({"a": {}}, "where: a must be a value, a list, or a dict of"),
        ({"a": {"ge": 1}}, "where: a must be a value, a list, or a dict of gt, gte, lt, lte, not; for example"),
        ({"a": {"gt": [1, 2]}}, "where: a: gt needs a single number or string"),
        ({"a": {"gt": True}}, "where: a: gt needs a single number or string"),
        ({"a": []}, "where: a must be a string, a number, true or false, or a list of these, got []"),
        ({"a": [None]}, "where: a must be a string, a number, true or false, or a list of these, got [None]"),
        ({"a": [1, "b"]}, "where: all values of a must have the same type, got [1, 'b']"),
        ({"a": [1, True]}, "where: all values of a must have the same type, got [1, True]"),
    ],
    ids=str,
)  # fmt: skip
def test_a_filter_that_is_none_is_told_why(where: Any, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Where.parse(where)
    assert str(caught.value).startswith(said)


def test_a_filter_is_compared_with_the_documents() -> None:
    where = Where.parse({"year": 2024, "page": {"gt": 1}, "day": date(2024, 1, 2)})
    assert Where.parse(where) is where
    checked = where.check({"year": ["number"], "page": ["number"], "day": ["text", "number"]})
    assert (checked.conditions, checked.is_checked) == (where.conditions, True)
    assert (where.is_of_documents, where.of_documents().is_of_documents) == (False, True)
    assert [one.key for one in checked.of_documents().conditions] == ["year", "day"]
    assert checked.of_documents().is_checked
    with pytest.raises(ConfigError, match="where: no document has the key 'yaer'; did you mean 'year'"):
        Where.parse({"yaer": 1}).check({"year": ["number"]})
    with pytest.raises(ConfigError, match="where: year has type number or text, but True has type true or false"):
        Where.parse({"year": True}).check({"year": ["text", "number"]})


def test_the_values_of_a_chunk_are_those_of_its_document_and_its_place() -> None:
    values = document_values(r"C:\data\A.PDF", "T", {"year": 1})
    assert values == {"year": 1, "path": "C:/data/A.PDF", "name": "A.PDF", "type": "pdf", "title": "T"}
    assert document_values("README", "", {})["type"] == ""
    assert position_values(None, ("a",), "") == {"heading": ("a",)}
    assert position_values(3, (), "p") == {"heading": (), "page": 3, "part": "p"}
    chunk = Chunk("1", "a.md", "text", 0, 1, page=3, metadata={"page": 9, "heading": "x"})
    assert (chunk_values(chunk)["page"], chunk_values(chunk)["heading"]) == (3, ())
    assert [kind_of(one) for one in (True, 1, 1.5, "a")] == ["true or false", "number", "number", "text"]
    kinds = kinds_in([{"year": 1}, {"year": "x"}, {"draft": True}])
    assert (kinds["year"], kinds["draft"], kinds["page"]) == ({"number", "text"}, {"true or false"}, {"number"})


@pytest.mark.parametrize(
    ("value", "checked"),
    [("a", "a"), (1, 1), (True, True), (date(2024, 1, 2), "2024-01-02"),
     (datetime(2024, 1, 2, 3, tzinfo=UTC), "2024-01-02T03:00:00+00:00"), (["a", "b"], ("a", "b")), ([], None),
     (["a", 1], None), (None, None), ({}, None)],
    ids=str,
)  # fmt: skip
def test_metadata_are_texts_numbers_and_flags(value: Any, checked: Any) -> None:
    if checked is not None:
        assert check_metadata({"k": value}) == {"k": checked}
    else:
        with pytest.raises(
            ConfigError, match="metadata: k must be a string, a number, true, false or a list of strings"
        ):
            check_metadata({"k": value})
    for key in ("", "path", "page", "title"):
        with pytest.raises(ConfigError, match=f"x: '{key}' cannot be set; choose a name other than"):
            check_metadata({key: "a"}, what="x")
