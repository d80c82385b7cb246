"""JSON that is too long for a model stays JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jackfield.tools import cut_text

_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=200),
    lambda inner: st.lists(inner, max_size=8) | st.dictionaries(st.text(max_size=30), inner, max_size=8),
    max_leaves=40,
)


@given(_JSON.filter(lambda value: isinstance(value, dict | list)), st.integers(0, 600), st.sampled_from([None, 4]))
@example([["\n" * 20, 1], None, "ab"], 60, None)  # line feeds take twice the room in JSON
def test_json_that_is_cut_is_json_of_the_same_kind_or_a_note(value: Any, limit: int, indent: int | None) -> None:
    whole = json.dumps(value, indent=indent, ensure_ascii=False)
    cut = cut_text(whole, limit)
    read = json.loads(cut)
    assert len(cut) <= max(limit, 50)
    if len(whole) <= limit:
        assert cut == whole
    elif isinstance(read, str):
        assert f"{len(whole)} characters omitted" in read
    else:
        assert type(read) is type(value)


def test_of_json_the_first_elements_and_all_small_values_are_kept() -> None:
    hits = [{"title": f"page {number}", "text": "x" * 100} for number in range(1000)]
    read = json.loads(cut_text(json.dumps({"hits": hits, "total": 1000, "more": None}), 2000))
    assert (read["total"], read["more"]) == (1000, None)
    assert read["hits"][:5] == hits[:5]
    assert "elements omitted" in read["hits"][-1]


def test_the_entries_of_a_cut_object_keep_their_order() -> None:
    entries = {"first": "x" * 900, "second": 2, "third": ["y" * 50] * 40, "fourth": None}
    read = json.loads(cut_text(json.dumps(entries), 600))
    assert list(read) == list(entries)


@pytest.mark.parametrize("text", ["[1] Knuth, The Art of Computer Programming. " * 50, "{half of an object " * 100])
def test_what_only_begins_like_json_is_cut_as_text(text: str) -> None:
    assert "characters omitted" in cut_text(text, 200)
    assert len(cut_text(text, 200)) < 250


def test_json_nested_too_deeply_to_be_read_becomes_a_note() -> None:
    assert "200000 characters omitted" in json.loads(cut_text("[" * 100_000 + "]" * 100_000, 1000))


@pytest.mark.parametrize("limit", [0, 1, 3, 90, 299])
def test_a_text_without_lines_keeps_twice_as_much_of_its_beginning_as_of_its_end(limit: int) -> None:
    text = "".join(chr(33 + number % 90) for number in range(300))
    head, note, tail = cut_text(text, limit).split("\n")
    assert note == f"[… {300 - limit} characters omitted …]"
    assert (len(head), len(tail)) == (limit * 2 // 3, limit - limit * 2 // 3)
    assert text.startswith(head)
    assert text.endswith(tail)


def test_a_text_that_just_fits_stays() -> None:
    assert cut_text("x" * 90, 90) == "x" * 90
    for value in ([1, [2, 3], "x" * 90], {"a": "x" * 90, "b": [1]}):
        written = json.dumps(value, indent=4)
        assert cut_text(written, len(written)) == written


LINES = "\n".join(f"line {number:03}" for number in range(30))
XYZ = f"{'x' * 70}\n{'y' * 29}\n{'z' * 101}"
WIDE = 10**200  # a number cannot be cut
CUTS: dict[str, tuple[Any, int, Any]] = {
    "between lines": (
        LINES, 90, f"{LINES[:53]}\n[… 189 characters omitted …]\nline 027\nline 028\nline 029",
    ),
    "no line is near": (XYZ, 90, f"{'x' * 60}\n[… 112 characters omitted …]\n{'z' * 30}"),
    "elements": ([1] * 100, 60, [*[1] * 6, "[… 94 elements omitted …]"]),
    "a long first element": (
        ["a" * 100, "b" * 10], 100,
        [f"{'a' * 12}\n[… 82 characters omitted …]\n{'a' * 6}", "[… 1 elements omitted …]"],
    ),
    "one long element": (["a" * 100], 100, [f"{'a' * 12}\n[… 82 characters omitted …]\n{'a' * 6}"]),
    "a first element that cannot be cut": ([WIDE, 2], 100, ["[… 2 elements omitted …]"]),
    "two long values": (
        {"a": "x" * 300, "b": "y" * 300, "c": 1}, 400,
        {
            "a": f"{'x' * 85}\n[… 172 characters omitted …]\n{'x' * 43}",
            "b": f"{'y' * 85}\n[… 172 characters omitted …]\n{'y' * 43}",
            "c": 1,
        },
    ),
    "a value that cannot be cut": (
        {"a": WIDE, "b": 1, "c": [1] * 200}, 200,
        {"b": 1, "c": [*[1] * 33, "[… 167 elements omitted …]"], "…": "[… 1 entries omitted …]"},
    ),
    "room for half of a value": (
        {"a": "x" * 300, "bb": 1}, 140, {"a": f"{'x' * 28}\n[… 258 characters omitted …]\n{'x' * 14}", "bb": 1},
    ),
    "no room for half of a value": ({"a": "x" * 300, "bb": 1}, 120, {"bb": 1, "…": "[… 1 entries omitted …]"}),
    "letters outside of ASCII": (
        {"k": ["é" * 50] * 20}, 200, {"k": ["é" * 50, "é" * 50, "[… 18 elements omitted …]"]},
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CUTS)
def test_a_cut_keeps_as_much_as_it_can(case: str) -> None:
    value, limit, kept = CUTS[case]
    if isinstance(value, str):
        assert cut_text(value, limit) == kept
    else:
        assert cut_text(json.dumps(value, ensure_ascii=False), limit) == json.dumps(kept, ensure_ascii=False)


@pytest.mark.parametrize("text", ["first\n" + "x" * 3000, "x" * 3000 + "\nlast", "x" * 1500 + "\n" + "y" * 1500])
def test_a_line_break_far_away_costs_no_more_than_a_quarter(text: str) -> None:
    assert 750 <= len(cut_text(text, 1000)) <= 1050


@pytest.mark.parametrize("value", [[1, [2, 3], "four " * 12], ["a" * 50, "b" * 50], {"list": list(range(30))}])
def test_json_that_fits_once_its_blanks_are_gone_loses_nothing(value: Any) -> None:
    written = f" \n{json.dumps(value, indent=4)}"
    limit = len(json.dumps(value)) + 2 + (50 if isinstance(value, dict) else 0)
    assert len(written) > limit
    assert json.loads(cut_text(written, limit)) == value
