"""A document is filtered by what it states, by rules, and never by what it claims about its own place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield.retrieval import RESERVED_KEYS, Block, Document, Selection, Where
from jackfield_documents.selecting import metadata_of, search_selected, stated_metadata


def stating(metadata: Mapping[str, Any]) -> Document:
    return Document("/a/reports/x.pdf", (Block("text"),), content_hash="", metadata=metadata)


@pytest.mark.parametrize("key", RESERVED_KEYS)
def test_a_file_never_states_what_each_document_has(key: str) -> None:
    assert stated_metadata(stating({key: "elsewhere", "author": "Ada"})) == {"author": "Ada"}


@pytest.mark.parametrize(
    ("metadata", "year"),
    [
        ({"created": "2024-05-06"}, 2024),
        ({"created": "D:20240506120000"}, 2024),
        ({"modified": "2025-01-01", "created": "2024-01-01"}, 2024),
        ({"created": "2024-01-01", "date": "2023-01-01"}, 2023),
        ({"created": "2024-01-01", "year": 1999}, 1999),
        ({"created": "1899-01-01"}, None),
        ({"created": "20245 pages"}, 2024),
        ({"created": "202405"}, 2024),
        ({"created": "2024"}, 2024),
        ({"created": "2024567"}, None),
        ({"created": "in 2024"}, None),
    ],
)
def test_the_year_is_that_of_the_first_date(metadata: dict[str, Any], year: int | None) -> None:
    assert stated_metadata(stating(metadata)).get("year") == year


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        ("", None),
        ("x" * 2000, "x" * 1000),
        (["a", "b" * 2000], ("a", "b" * 1000)),
        (["a", 1], None),
        ([], None),
        ({"a": 1}, None),
        (None, None),
        (False, False),
        (2.5, 2.5),
    ],
)
def test_only_plain_values_are_kept_and_long_texts_are_cut(value: object, kept: object) -> None:
    assert stated_metadata(stating({"key": value})) == ({} if kept is None else {"key": kept})


def test_rules_replace_what_a_file_states_and_see_what_earlier_ones_have_added() -> None:
    rules = [
        (Where.parse({"path": "reports/*"}), {"team": "sales", "author": "Bo"}),
        (Where.parse({"team": "sales"}), {"level": 1}),
        (Where.parse({"path": "notes/*"}), {"level": 2}),
    ]
    assert metadata_of(stating({"author": "Ada"}), rules) == {"author": "Bo", "team": "sales", "level": 1}


@given(st.lists(st.integers(0, 39), unique=True), st.integers(0, 12), st.permutations(range(40)))
def test_a_search_of_a_selection_finds_the_best_in_it_and_no_more_than_asked_for(
    numbers: list[int], limit: int, order: list[int]
) -> None:
    hits = [(number, 40.0 - place) for place, number in enumerate(order)]
    selection = Selection(sorted(numbers), 40)
    best = [hit for hit in hits if hit[0] in numbers][:limit]
    assert search_selected(lambda count: hits[:count], limit, selection) == best


@pytest.mark.parametrize("limit", [1, 3])
def test_a_selection_at_the_end_of_a_long_ranking_is_found(limit: int) -> None:
    asked: list[int] = []

    def search(wanted: int) -> list[tuple[int, float]]:
        asked.append(wanted)
        return [(number, 1.0) for number in range(wanted)]

    hits = search_selected(search, limit, Selection(range(9_500, 10_000), 10_000))
    assert [number for number, _ in hits] == list(range(9_500, 9_500 + limit))
    assert asked == sorted(asked)
    assert asked[-1] == 10_000


@given(st.dictionaries(st.sampled_from([*RESERVED_KEYS, "date", "a"]), st.one_of(st.text(), st.integers(), st.none())))
def test_no_metadata_of_a_file_is_an_error(metadata: dict[str, Any]) -> None:
    assert not set(stated_metadata(stating(metadata))) & set(RESERVED_KEYS)


@pytest.mark.parametrize(
    ("selected", "asked"),
    [(range(10), [100]), (range(50), [20]), (range(50, 100), [20, 80]), (range(0, 100, 2), [20])],
    ids=["few", "the best half", "the other half", "every other"],
)
def test_so_many_hits_are_asked_for_that_enough_are_likely_and_then_four_times_as_many(
    selected: range, asked: list[int]
) -> None:
    wanted: list[int] = []

    def search(limit: int) -> list[tuple[int, float]]:
        wanted.append(limit)
        return [(number, 1.0) for number in range(limit)]

    hits = search_selected(search, 5, Selection(selected, 100))
    assert [number for number, _ in hits] == list(selected[:5])
    assert wanted == asked
