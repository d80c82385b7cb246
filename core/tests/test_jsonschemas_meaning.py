"""Each keyword of JSON Schema means what it means to the reference library, and each misfit is one sentence."""

from __future__ import annotations

import itertools
import re
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from jackfield.jsonschemas import (
    SchemaChecker,
    TooCostlyError,
    UncheckableError,
    UnresolvableReferenceError,
    _size,
    _Steps,
    fault_of_schema,
    schemas_in,
)

BIG = 1 << 53
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, 1.0, -1, 2.5, BIG, BIG + 1, float(BIG), "", "a", "ab", "A1"),
    *([], [1], [1, 1.0], [1, True], [0, False], ["a", "a"], [1, "a"], ["a", 1], [[1], [1]], [{"a": 1}, {"a": 1.0}]),
    *([BIG, BIG + 1], [float(BIG), BIG], [{"a": 1}, {"a": True}], [1, 2, 3], [1, "a", 3], [None, None]),
    *({}, {"a": 1}, {"a": "x"}, {"b": 1}, {"a": 1, "b": 2}, {"a": 1, "b": "x"}, {"x1": 1}, {"a": 1, "x1": "y"}),
    *({"a": {"b": 1}}, {"a": {"b": "x"}}, {"a": {"b": 1, "c": 2}}, {"a": [1, {"a": 1}]}, {"c": 1, "b": 2, "a": 3}),
)
NUMBER, TEXT = {"type": "number"}, {"type": "string"}
OF_A, OF_B = {"properties": {"a": NUMBER}}, {"properties": {"b": NUMBER}}
SCHEMAS: dict[str, dict[str, Any]] = {
    "nothing": {},
    "types": {"type": ["integer", "null"]},
    "boolean": {"type": "boolean"},
    "object": {"type": "object"},
    "const": {"const": 1},
    "const, true": {"const": True},
    "enum": {"enum": [1, "a", None, [1], {"a": 1}]},
    "enum of texts": {"enum": ["a", "b"]},
    "limits": {"minimum": 0, "maximum": 1, "exclusiveMaximum": 2},
    "exclusive limits": {"exclusiveMinimum": 0, "exclusiveMaximum": 1},
    "lengths": {"minLength": 1, "maxLength": 1},
    "counts": {"minItems": 1, "maxItems": 2},
    "multiples": {"multipleOf": 2},
    "sizes": {"minProperties": 1, "maxProperties": 1},
    "a pattern": {"pattern": "^a"},
    "unique items": {"uniqueItems": True},
    "not unique items": {"uniqueItems": False},
    "items": {"items": NUMBER},
    "no items": {"items": False},
    "items of items": {"items": {"items": NUMBER}},
    "first items": {"prefixItems": [NUMBER, TEXT]},
    "first items and others": {"prefixItems": [NUMBER], "items": TEXT},
    "contains": {"contains": TEXT},
    "contains many": {"contains": NUMBER, "minContains": 2, "maxContains": 2},
    "properties": {"properties": {"a": NUMBER, "b": TEXT}},
    "required": {"required": ["a", "b"]},
    "no others": {"properties": {"a": NUMBER}, "additionalProperties": False},
    "others": {"properties": {"a": NUMBER}, "additionalProperties": TEXT},
    "others beside patterns": {"patternProperties": {"^x": NUMBER}, "additionalProperties": TEXT},
    "no others beside patterns": {"patternProperties": {"^x": {}}, "additionalProperties": False},
    "inner objects": {"properties": {"a": {"properties": {"b": NUMBER}, "additionalProperties": False}}},
    "names": {"propertyNames": {"maxLength": 1}},
    "dependent": {"dependentRequired": {"a": ["b"]}, "dependentSchemas": {"b": {"required": ["a"]}}},
    "not": {"not": {"type": "object"}},
    "all of": {"allOf": [OF_A, {"required": ["a"]}]},
    "any of": {"anyOf": [{"required": ["a"]}, NUMBER]},
    "one of": {"oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
    "if, then, else": {"if": {"required": ["a"]}, "then": OF_A, "else": TEXT},
    "if and else": {"if": OF_A, "else": TEXT},
    "if and then": {"if": {"type": "array"}, "then": {"minItems": 2}},
    "a reference": {"$ref": "#/$defs/a", "$defs": {"a": NUMBER}},
    "a reference to itself": {"properties": {"a": {"$ref": "#"}, "b": NUMBER}},
    "an anchor": {"$ref": "#n", "$defs": {"a": {"$anchor": "n", **NUMBER}}},
    "a reference to its own address": {"$id": "https://h/s", "$ref": "s#/$defs/a", "$defs": {"a": NUMBER}},
    "a schema with an address of its own": {"$ref": "https://h/a", "$defs": {"a": {"$id": "https://h/a", **NUMBER}}},
    "a dynamic anchor": {"$dynamicRef": "#n", "$defs": {"a": {"$dynamicAnchor": "n", **NUMBER}}},
    "unevaluated": {**OF_A, "unevaluatedProperties": False},
    "unevaluated, a schema": {**OF_A, "unevaluatedProperties": TEXT},
    "unevaluated and all of": {"allOf": [OF_A, OF_B], "unevaluatedProperties": False},
    "unevaluated and any of": {"anyOf": [OF_A, {"required": ["b"], **OF_B}], "unevaluatedProperties": False},
    "unevaluated and one of": {
        "oneOf": [{"required": ["a"], **OF_A}, {"required": ["b"], **OF_B}], "unevaluatedProperties": False,
    },
    "unevaluated and a reference": {"$ref": "#/$defs/a", "$defs": {"a": OF_A}, "unevaluatedProperties": False},
    "unevaluated and if": {
        "if": {"required": ["a"], **OF_A}, "then": OF_B, "else": {"properties": {"c": {}}},
        "unevaluatedProperties": False,
    },
    "unevaluated and dependent": {"dependentSchemas": {"a": {**OF_A, **OF_B}}, "unevaluatedProperties": False},
    "unevaluated and patterns": {"patternProperties": {"^x": {}}, **OF_A, "unevaluatedProperties": False},
    "unevaluated and others": {"allOf": [{"additionalProperties": NUMBER}], "unevaluatedProperties": False},
    "unevaluated twice": {"allOf": [{"unevaluatedProperties": NUMBER}], "unevaluatedProperties": False},
    "unevaluated and true": {"allOf": [True, OF_A], "unevaluatedProperties": False},
    "unevaluated items": {"prefixItems": [NUMBER], "unevaluatedItems": False},
    "unevaluated items, a schema": {"prefixItems": [NUMBER], "unevaluatedItems": TEXT},
    "unevaluated items and contains": {"contains": TEXT, "unevaluatedItems": NUMBER},
    "unevaluated items and all of": {"allOf": [{"prefixItems": [{}, TEXT]}], "unevaluatedItems": False},
    "unevaluated items and items": {"allOf": [{"items": NUMBER}], "unevaluatedItems": False},
    "unevaluated items twice": {"allOf": [{"unevaluatedItems": NUMBER}], "unevaluatedItems": False},
    "unevaluated items and if": {
        "if": {"prefixItems": [NUMBER]}, "then": {"prefixItems": [{}, TEXT]}, "unevaluatedItems": False,
    },
    "unevaluated, anything": {**OF_A, "unevaluatedProperties": {}},
    "unevaluated items, anything": {"prefixItems": [NUMBER], "unevaluatedItems": {}},
    "unevaluated items, first items and contains": {
        "prefixItems": [NUMBER], "contains": TEXT, "unevaluatedItems": False,
    },
    "unevaluated and a dynamic reference": {
        "$dynamicRef": "#n", "$defs": {"a": {"$dynamicAnchor": "n", **OF_A}}, "unevaluatedProperties": False,
    },
    "unevaluated and a schema with references of its own": {
        "$ref": "https://h/a", "unevaluatedProperties": False,
        "$defs": {"a": {"$id": "https://h/a", "allOf": [{"$ref": "#/$defs/b"}], "$defs": {"b": OF_A}}},
    },
    "a reference below another $schema": {
        "properties": {"a": {"$schema": "https://json-schema.org/draft/2020-12/schema", "$ref": "#/$defs/n"}},
        "$defs": {"n": NUMBER},
    },
    "below another $schema": {"properties": {"a": {"$schema": "https://json-schema.org/draft/2020-12/schema", **OF_B}}},
}  # fmt: skip


@pytest.mark.parametrize("case", SCHEMAS)
def test_a_value_fits_a_schema_if_the_reference_library_says_so(case: str) -> None:
    schema = SCHEMAS[case]
    assert fault_of_schema(schema) == ""
    checker, reference = SchemaChecker(schema), Draft202012Validator(schema)
    for value in VALUES:
        assert (checker.misfits(value) == []) == reference.is_valid(value), value


@pytest.mark.parametrize(
    ("first", "second"), list(itertools.combinations(["limits", "properties", "items", "no others"], 2))
)
def test_keywords_hold_together(first: str, second: str) -> None:
    schema = {**SCHEMAS[first], **SCHEMAS[second]}
    checker, reference = SchemaChecker(schema), Draft202012Validator(schema)
    for value in VALUES:
        assert (checker.misfits(value) == []) == reference.is_valid(value), value


@pytest.mark.parametrize(
    ("schema", "value", "misfits"),
    [
        (NUMBER, "a", ["'a' is not of type 'number'"]),
        ({"properties": {"a": {"items": NUMBER}}}, {"a": [1, "x"]}, ["a.1: 'x' is not of type 'number'"]),
        ({"pattern": "^a"}, "b", ["'b' does not match '^a'"]),
        ({"uniqueItems": True}, [1, 1], ["items are not unique"]),
        (
            {"additionalProperties": False}, {"b": 1, "a": 1},
            ["Additional properties are not allowed ('a', 'b' were unexpected)"],
        ),
        ({"additionalProperties": False}, {"b": 1}, ["Additional properties are not allowed ('b' was unexpected)"]),
        (
            {"unevaluatedProperties": False}, {"b": 1},
            ["Unevaluated properties are not allowed ('b' was unexpected)"],
        ),
        ({"unevaluatedItems": False}, [1], ["Unevaluated items are not allowed (0 was unexpected)"]),
        ({"const": "x" * 400}, 1, [f"'{'x' * 299}…"]),
    ],
    ids=lambda value: str(value)[:40],
)  # fmt: skip
def test_a_misfit_is_a_sentence_about_its_place(schema: dict[str, Any], value: Any, misfits: list[str]) -> None:
    assert SchemaChecker(schema).misfits(value) == misfits


@pytest.mark.parametrize(
    ("schema", "value", "places"),
    [
        ({"items": NUMBER}, [1, 1, "x", *[1] * 7, "x", "x"], ["2", "10", "11"]),
        ({"properties": {"a": NUMBER, "b": NUMBER}}, {"b": "x", "a": "x"}, ["b", "a"]),
    ],
)
def test_violations_are_in_the_order_of_the_value(schema: Any, value: Any, places: list[str]) -> None:
    assert [sentence.partition(":")[0] for sentence in SchemaChecker(schema).misfits(value)] == places


def test_at_most_five_misfits_are_told_in_the_order_of_the_value() -> None:
    many = SchemaChecker({"items": NUMBER}).misfits(["x"] * 9)
    assert [text.partition(":")[0] for text in many] == ["0", "1", "2", "3", "4"]
    assert len(SchemaChecker({"items": NUMBER}).misfits(["x"] * 5)) == 5


def test_what_cannot_be_checked_says_why() -> None:
    for reference in ("#/gone", "#/$defs/a/b", "#gone", "#gone/b", "https://h/x", "https://h/x#/y"):
        text = re.escape(f"the schema refers to {reference!r}, which it does not define")
        with pytest.raises(UnresolvableReferenceError, match=text):
            SchemaChecker({"$ref": reference}).misfits(1)
    with pytest.raises(UncheckableError):
        SchemaChecker({"pattern": "(?<=a)b"}).misfits("x")
    assert SchemaChecker({"multipleOf": 0.1}).misfits(10**400) == ["a number is too large to be validated"]


# --- bounds ---


def test_the_steps_of_a_check_grow_with_the_value() -> None:
    for value, size in ((1, 1), ("x" * 199, 2), ("x" * 200, 3), ([1, [2]], 4), ({"a": 1, "b" * 99: 2}, 4)):
        assert _size(value) == size, value
    steps = _Steps([1, 2, 3])
    steps.spend(50_000)
    steps.spend(80)  # twenty for each of four values
    with pytest.raises(TooCostlyError):
        steps.spend(1)


# --- faults of schemas ---


def nested(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {}
    for _ in range(depth):
        schema = {"items": schema}
    return schema


@pytest.mark.parametrize(
    ("schema", "fault"),
    [
        (nested(100), ""),
        (nested(101), "nested more than 100 levels deep: use $defs and $ref to flatten the schema"),
        ({"enum": ["x"] * 9_998}, ""),
        ({"enum": ["x"] * 9_999}, "contains more than 10,000 values: simplify the schema"),
        ({"type": "text"}, "'text' is not valid under any of the given schemas"),
        ({"properties": {"a": {"minLength": -1}}}, "-1 is less than the minimum of 0"),
        ({"pattern": "(?<=a)b"}, "unsupported pattern '(?<=a)b': the lookaround"),
        ({"patternProperties": {"(?<=a)b": {}}}, "unsupported pattern '(?<=a)b': the lookaround"),
        (
            {"allOf": [{"items": {"pattern": "(a)\\1"}}]},
            "unsupported pattern '(a)\\\\1': backreferences",
        ),
        ({"const": {"pattern": "(?<=a)b"}, "properties": {"pattern": {"type": "string"}}}, ""),
        ({"default": {"type": "text"}, "examples": [{"type": "text"}]}, ""),
        ({"description": "x" * 20_000, "type": "object"}, ""),
        ({"description": "x" * 20_000, "type": "text"}, "'text' is not valid under any of the given schemas"),
    ],
    ids=lambda value: str(value)[:50],
)
def test_a_schema_that_is_none_is_told_why(schema: dict[str, Any], fault: str) -> None:
    assert fault_of_schema(schema).startswith(fault)
    assert bool(fault_of_schema(schema)) == bool(fault)
    if "pattern" in fault:
        assert fault_of_schema(schema, ignore_patterns=True) == ""


@pytest.mark.parametrize(
    ("keyword", "valid", "invalid"),
    [
        ("type", ["string", ["string", "null"]], ["text", [], ["string", "string"], 5, ["text"]]),
        ("enum", [[], [1, 1], ["a"]], ["a", 5]),
        ("required", [[], ["a"]], [["a", "a"], [5], "a"]),
        ("minLength", [0, 3], [-1, "1", True, 1.5]),
        ("minimum", [1, -1.5], ["1", True]),
        ("items", [{}, True, {"type": "string"}], [[], 5, {"type": "text"}]),
        ("allOf", [[{}], [True]], [[], {}, [5]]),
        ("properties", [{}, {"a": {}}], [[], {"a": 5}]),
        ("uniqueItems", [True], [1, "true"]),
        ("description", ["a"], [5]),
        ("deprecated", [False], [0]),
        ("not", [{}, False], [[], 5]),
    ],
)
def test_a_keyword_takes_the_values_that_json_schema_allows(keyword: str, valid: list[Any], invalid: list[Any]) -> None:
    for value in valid:
        assert fault_of_schema({keyword: value}) == "", value
        Draft202012Validator.check_schema({keyword: value})
    for value in invalid:
        assert fault_of_schema({keyword: value}) != "", value


def test_the_schemas_in_a_schema_are_all_but_its_data() -> None:
    inner = [{"title": str(number)} for number in range(6)]
    schema = {
        "properties": {"default": inner[0], "b": {"items": inner[1]}}, "anyOf": [inner[2], True], "not": inner[3],
        "$defs": {"enum": inner[4]}, "default": inner[5], "enum": [inner[5]], "const": inner[5], "examples": [inner[5]],
    }  # fmt: skip
    assert [one.get("title") for one in schemas_in(schema) if "title" in one] == ["0", "1", "2", "3", "4"]
    in_tuples = {"anyOf": (inner[0], {"allOf": (inner[1],)})}
    assert [one["title"] for one in schemas_in(in_tuples) if "title" in one] == ["0", "1"]


def test_a_tuple_is_a_list_for_the_bounds_of_a_schema() -> None:
    assert "more than 10,000 values" in fault_of_schema({"enum": ("x",) * 10_000})
    deep: Any = {}
    for _ in range(101):
        deep = {"allOf": (deep,)}
    assert "levels deep" in fault_of_schema(deep)
