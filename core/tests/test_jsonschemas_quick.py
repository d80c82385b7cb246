"""The quick tests of values and schemas accept nothing that the library would refuse, and spare it what fits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from jackfield import jsonschemas
from jackfield.jsonschemas import SchemaChecker, _compile_test, _is_surely_valid, fault_of_schema
from jackfield_testkit.forks import Forks

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
        {"properties": {"a": 5}},
        {"properties": [], "type": "object"},
        {"additionalProperties": "no"},
        {"items": [{"type": "string"}]},
        {"required": [1]},
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
    with pytest.raises(jsonschemas.UncheckableError, match="too complex"):
        checker.misfits(["a" * 10_000] * 10_000)


RARE = ["contains", "if", "$id", "multipleOf", "dependentRequired", "x-ours"]
KEYWORDS = st.sampled_from([*jsonschemas._VALID_VALUES, *RARE])
ODD_SCHEMAS = st.recursive(
    SCALARS | TYPES | st.lists(TYPES | NAMES, max_size=3),
    lambda inner: (
        st.dictionaries(KEYWORDS, inner, max_size=3)
        | st.dictionaries(NAMES, inner, max_size=2)
        | st.lists(inner, max_size=2)
    ),
    max_leaves=8,
)


@settings(max_examples=10 * settings().max_examples)
@given(ODD_SCHEMAS)
@example({"required": "ab"})
@example({"required": ["a", "a"]})
@example({"type": []})
@example({"type": ["null", "null"]})
@example({"anyOf": []})
@example({"anyOf": {"a": True}})
@example({"minLength": -1})
@example({"minLength": True})
@example({"minimum": False})
@example({"enum": "ab"})
@example({"properties": {"a": 1}})
@example({"properties": [True]})
@example({"title": None})
def test_a_schema_that_looks_valid_is_valid(schema: Any) -> None:
    assert not _is_surely_valid(schema) or Draft202012Validator(Draft202012Validator.META_SCHEMA).is_valid(schema)


@given(SCHEMAS)
def test_schemas_of_common_keywords_look_valid(schema: Any) -> None:
    assert _is_surely_valid(schema)


def test_each_value_that_the_library_refuses_for_a_keyword_does_not_look_valid() -> None:
    values: list[Any] = [None, True, -1, 1, 1.5, "", "null", "a", [], ["a"], ["a", "a"], ["null", "null"], [1], [True]]
    values += [{}, {"a": 1}, {"a": True}, [{}], [{"type": 1}], {"a": {"type": 1}}, {"type": 1}, [[]], [None]]
    library = Draft202012Validator(Draft202012Validator.META_SCHEMA)
    for keyword in jsonschemas._VALID_VALUES:
        for value in values:
            assert not _is_surely_valid({keyword: value}) or library.is_valid({keyword: value}), (keyword, value)


def test_a_pattern_is_checked_in_a_schema_that_looks_valid() -> None:
    schema = {"properties": {"a": {"type": "string", "pattern": "("}}}
    assert _is_surely_valid(schema)
    assert fault_of_schema(schema)


def test_an_agent_with_tools_answers_without_the_library(tmp_path: Path) -> None:
    program = """
import sys
from pydantic import BaseModel
from jackfield import FnCallAgent, tool
from jackfield.testing import ScriptedModel, answer, calls

class Place(BaseModel):
    street: str
    number: int | None = None

@tool
def add(a: int, b: int | None = 3, where: list[Place] | None = None) -> int:
    "Add two numbers."
    return a + (b or 0)

agent = FnCallAgent([add], ScriptedModel([calls(("add", {"a": 1, "b": 2})), answer("It is 3.")]))
assert agent.ask("go").text == "It is 3."
print([name for name in ("jsonschema", "referencing", "attr", "jackfield.patterns") if name in sys.modules])
"""
    with Forks("import sys") as forks:
        done = forks.run(program, cwd=tmp_path, env={"HOME": str(tmp_path)})
    assert (done.stdout.strip(), done.stderr) == ("[]", "")
