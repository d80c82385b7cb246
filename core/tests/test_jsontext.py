"""JSON as models read and write it: what is JSON, and what is left to the library for backends."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield.jsontext import MAX_DEPTH, TooDeepError, dumps, is_json, loads_lenient, loads_strict

values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.text(max_size=5), children, max_size=3),
    max_leaves=10,
)


@given(values)
def test_what_was_written_is_read_back(value: Any) -> None:
    assert loads_lenient(dumps(value)) == value
    assert loads_lenient(json.dumps(value, indent=2)) == value


def test_wellformed_json_is_never_reinterpreted() -> None:
    assert loads_lenient('{"a": "{\'b\': 1,}"}') == {"a": "{'b': 1,}"}
    assert loads_lenient('"[1, 2,"') == "[1, 2,"


@pytest.mark.parametrize("depth", [MAX_DEPTH + 1, 1_000, 100_000])
@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_what_is_nested_too_deeply_is_a_value_error(opening: str, depth: int) -> None:
    closing = "]" if opening == "[" else "}"
    with pytest.raises(ValueError, match="nested too deeply"):
        loads_lenient(opening * depth + "1" + closing * depth)
    assert dumps(loads_lenient(opening * MAX_DEPTH + "1" + closing * MAX_DEPTH))


def test_depth_is_that_of_the_deepest_place() -> None:
    for levels in (MAX_DEPTH - 1, MAX_DEPTH):
        deep = "[" * levels + "]" * levels
        for text in (f"[1, [], {deep}, []]", f'{{"a": 1, "b": {deep}, "c": []}}'):
            if levels < MAX_DEPTH:
                assert loads_strict(text)
            else:
                with pytest.raises(TooDeepError):
                    loads_strict(text)


def test_many_brackets_beside_each_other_are_not_deep() -> None:
    for value in ([[]] * 1000, {"code": "[" * 1000}, [[[number] for number in range(500)]]):
        assert loads_lenient(dumps(value)) == value


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999", "nan", "inf"])
def test_only_what_json_calls_a_number_is_one(number: str) -> None:
    for text in (f'{{"a": {number}}}', number):
        with pytest.raises(ValueError, match=r"not a valid JSON number|too large|Expecting value"):
            loads_strict(text)
        assert not is_json(text)


def test_other_alphabets_stay_readable() -> None:
    assert dumps({"名": "ü"}) == '{"名": "ü"}'
