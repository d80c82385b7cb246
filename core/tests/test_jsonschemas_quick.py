"""The quick test of a value accepts nothing that the library would refuse, and spares it the values that fit."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from jackfield import jsonschemas
from jackfield.jsonschemas import SchemaChecker, _compile_test

SMALL = st.integers(-2, 3)
NAMES = st.sampled_from(["a", "b", "c"])
TYPES = st.sampled_from(["array", "boolean", "integer", "null", "number", "object", "string"])
SCALARS = (
    st.none()
    | st.booleans()
    | SMALL
    | st.sampled_from([0.5, 1.0, float("nan"), float("inf")])
    | st.text("ab", max_size=3)
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3), max_leaves=8
)


def _schemas(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    limits = {name: SMALL | st.just(1.5) for name in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")} | {
        name: st.integers(0, 3) for name in ("minLength", "maxLength", "minItems", "maxItems")
    }
    return st.fixed_dictionaries(
        {},
        optional={
            "type": TYPES | st.lists(TYPES, min_size=1, max_size=3, unique=True),
            "enum": st.lists(st.text("ab", max_size=2), min_size=1, max_size=3),
            "pattern": st.sampled_from(["a", "^b+$"]),
            "items": inner,
            "properties": st.dictionaries(NAMES, inner, max_size=3),
            "required": st.lists(NAMES, max_size=2, unique=True),
            "additionalProperties": inner,
            "description": st.just("text"),
            **limits,
        },
    )


SCHEMAS = st.recursive(st.booleans() | _schemas(st.booleans()), _schemas, max_leaves=6)


@given(SCHEMAS, VALUES)
def test_the_quick_test_accepts_what_the_library_accepts_and_nothing_else(schema: Any, value: Any) -> None:
    _compare(schema, value)


def test_each_keyword_means_what_it_means_to_the_library() -> None:
    integer = {"type": "integer"}
    schemas: list[Any] = [{"type": kind} for kind in jsonschemas._TYPES]
    schemas += [{name: limit} for name in jsonschemas._LIMITS for limit in (0, 1, 1.5, 2)]
    schemas += [{"type": ["string", "null"]}, {"enum": ["a", ""]}, {"pattern": "^a+$"}, {"items": integer}]
    schemas += [{"required": ["a"]}, {"additionalProperties": integer}, {"additionalProperties": False}, True, False]
    schemas += [{"properties": {"a": integer, "b": False}, **more} for more in ({}, *schemas[-5:-2])]
    values: list[Any] = [None, True, -1, 0, 1, 2, 10**30, 1.5, "", "a", "aa", "b", [], [1], [1, "a"], [1, 2, 3]]
    values += [{}, {"a": 1}, {"a": "a"}, {"b": 1}, {"a": 1, "c": 1}, {"a": 1, "c": "a"}, {"c": None}]
    for schema in schemas:
        for value in values:
            _compare(schema, value)


def _compare(schema: Any, value: Any) -> None:
    fits = _compile_test(schema)
    assert fits is not None
    is_accepted = fits(value)
    is_valid = Draft202012Validator(schema).is_valid(value)
    assert is_valid or not is_accepted
    # 1.0 is an integer for JSON Schema, and NaN within all limits: the library decides about these.
    if not any(isinstance(entry, float) for entry in _entries_of(value)):
        assert is_accepted == is_valid


def _entries_of(value: Any) -> list[Any]:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [value, *(one for entry in inner for one in _entries_of(entry))]


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#/$defs/a", "$defs": {"a": {"type": "string"}}},
        {"not": {"type": "string"}},
        {"items": {"uniqueItems": True}},
        {"properties": {"a": {"multipleOf": 2}}},
        {"patternProperties": {"a": False}, "additionalProperties": True},
        {"enum": [1]},
        {"type": "text"},
        {"minLength": True},
    ],
)
def test_a_schema_with_any_other_keyword_is_left_to_the_library(schema: dict[str, Any]) -> None:
    assert _compile_test(schema) is None


def test_a_large_value_that_fits_takes_no_step_of_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}, "required": ["a"]}
    checker = SchemaChecker({"type": "array", "items": {**entry, "additionalProperties": False}})
    value = [{"a": number, "b": "text"} for number in range(10_000)]
    asked: list[object] = []
    monkeypatch.setattr(jsonschemas, "_make_validator", asked.append)
    assert checker.misfits(value) == []
    assert asked == []


def test_a_pattern_takes_its_steps_from_the_same_bound() -> None:
    checker = SchemaChecker({"items": {"type": "string", "pattern": "(a?b?){500}$"}})
    with pytest.raises(jsonschemas.UncheckableError, match="too many steps"):
        checker.misfits(["a" * 10_000] * 10_000)
