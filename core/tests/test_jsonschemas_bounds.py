"""Values that a model sends cannot make their check take for ever, and a schema is not checked over and over."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from jackfield import BaseTool, FnCallAgent, jsonschemas
from jackfield.jsonschemas import MAX_MISFITS, SchemaChecker, UncheckableError, fault_of_schema

_HOSTILE = {"patternProperties": {"^(a+)+$": True}}
_DIALECTS = ("https://json-schema.org/draft/2020-12/schema", "http://json-schema.org/draft-07/schema#")
UNIQUE = SchemaChecker({"type": "array", "uniqueItems": True})


@pytest.mark.parametrize(
    ("value", "fits"),
    [
        ([1, True, "1", [1], {"a": 1}], True),
        ([1, 1.0], False),
        ([[True], [1]], True),
        ([{"a": 1, "b": 2}, {"b": 2, "a": 1.0}], False),
        ([{"a": 1}, {"a": 2}, ["a", 1]], True),
        ([None, None], False),
        ([[1], ["1"], [[1]], {"a": [1]}, {"a": ["1"]}], True),
        ([{"a": [1]}, {"a": [1.0]}], False),
        ([], True),
    ],
)
def test_what_is_twice_in_a_list_is_found(value: list[Any], fits: bool) -> None:
    assert (UNIQUE.misfits(value) == []) == fits
    assert SchemaChecker({"uniqueItems": False}).misfits(value) == []


@pytest.mark.parametrize(
    ("schema", "make"),
    [
        ({"uniqueItems": True}, lambda n: [{"a": [number]} for number in range(n)]),
        ({"items": {"type": "string"}}, lambda n: list(range(n))),
        ({"additionalProperties": False}, lambda n: {str(number): 1 for number in range(n)}),
    ],
)
def test_checking_a_value_takes_steps_as_it_has_parts(schema: dict[str, Any], make: Callable[[int], Any]) -> None:
    checker = SchemaChecker(schema)
    checker.misfits([])
    short, long = (_steps(lambda count=count: checker.misfits(make(count))) for count in (200, 1600))  # type: ignore[misc]
    assert long <= 16 * short + 2000, f"{short} steps for 200 parts, and {long} for 1600"


def test_no_more_than_five_misfits_of_a_great_many_are_reported() -> None:
    assert len(SchemaChecker({"items": {"type": "string"}}).misfits(list(range(10_000)))) == MAX_MISFITS


@pytest.fixture
def checks(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The schemas that are checked from now on, one after the other, with nothing remembered."""
    checked: list[Any] = []
    check = jsonschemas._fault_of_schema

    def noted(schema: Any, ignore_patterns: bool) -> str:
        checked.append(schema)
        return check(schema, ignore_patterns)

    monkeypatch.setattr(jsonschemas, "_fault_of_schema", noted)
    jsonschemas._fault_of_content.cache_clear()
    return checked


def test_many_agents_with_one_tool_check_its_schema_once(checks: list[Any]) -> None:
    class Clock(BaseTool):
        name = "clock"
        description = "Tell the time."
        parameters: ClassVar = {"type": "object", "properties": {"zone": {"type": "string"}}, "required": []}

        def call(self, params: Any, *, context: Any = None) -> str:
            return "noon"

    for _ in range(20):
        FnCallAgent([Clock()])
    assert checks == [Clock.parameters]


def test_a_schema_that_has_changed_is_checked_again(checks: list[Any]) -> None:
    schema: dict[str, Any] = {"properties": {"a": {"type": "string"}}}
    assert fault_of_schema(schema) == ""
    schema["properties"]["a"]["type"] = "whole"
    assert "whole" in fault_of_schema(schema)
    schema["properties"]["a"]["type"] = "string"
    assert fault_of_schema(schema) == ""
    assert len(checks) == 2


@pytest.mark.parametrize(
    ("valid", "invalid"),
    [({"minimum": 1}, {"minimum": True}), ({"required": ["a"]}, {"required": ("a",)}), ({"enum": []}, {"enum": {}})],
)
def test_schemas_that_only_look_alike_are_judged_apart(valid: dict[str, Any], invalid: dict[str, Any]) -> None:
    for _ in range(2):
        assert fault_of_schema(valid) == ""
        assert fault_of_schema(invalid)


def test_a_schema_that_is_large_or_not_of_plain_values_is_not_kept(checks: list[Any]) -> None:
    large = {"description": "x" * 20_000}
    for schema in (large, large, {"default": Path()}, {"default": Path()}):
        assert fault_of_schema(schema) == ""
    assert len(checks) == 4
    for schema in ({"default": Path(), "pattern": "(?<=a)b"}, {**large, "pattern": "(?<=a)b"}):
        assert "lookaround" in fault_of_schema(schema)
        assert fault_of_schema(schema, ignore_patterns=True) == ""


def test_what_is_nested_too_deeply_to_be_checked_does_not_fit() -> None:
    checker = SchemaChecker({"properties": {"a": {"$ref": "#"}}})
    assert checker.misfits(_nested(100)) == []
    assert checker.misfits(_nested(5000)) == ["the value or its schema is nested too deeply to be validated"]


def _nested(depth: int) -> Any:
    value: Any = {}
    for _ in range(depth):
        value = {"a": value}
    return value


def _steps(work: Callable[[], object]) -> int:
    count = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        count += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


def _object(**keywords: Any) -> SchemaChecker:
    return SchemaChecker({"type": "object", **keywords})


_LADDER = {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(40)} | {"d40": {}}
_TREE = {"items": {"allOf": [{"$ref": "#/$defs/tree"}] * 2}}
_DEPENDENT = {
    f"d{n}": {"dependentSchemas": {"a": {"$ref": f"#/$defs/d{n + 1}"}, "b": {"$ref": f"#/$defs/d{n + 1}"}}}
    for n in range(40)
} | {"d40": {}}
_TWICE = {f"d{n}": {"$ref": f"#/$defs/d{n + 1}", "$dynamicRef": f"#/$defs/d{n + 1}"} for n in range(40)} | {"d40": {}}


@pytest.mark.timeout(30)
@pytest.mark.parametrize(
    ("checker", "value"),
    [
        (_object(properties={"a": {"$ref": "#/$defs/d0"}}, **{"$defs": _LADDER}), {"a": 1}),
        (
            _object(properties={"a": {"$ref": "#/$defs/tree"}}, **{"$defs": {"tree": _TREE}}),
            {"a": [[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]},
        ),
        (_object(properties={"a": {"pattern": "[ab]*a[ab]{900}c"}}), {"a": "ab" * 500_000}),
        (_object(patternProperties={"[ab]*a[ab]{900}c": {}}), {"ab" * 500_000: 1}),
        (
            _object(
                unevaluatedProperties=False,
                dependentSchemas=_DEPENDENT["d0"]["dependentSchemas"],
                **{"$defs": _DEPENDENT},
            ),
            {"a": 1, "b": 1},
        ),
        (_object(properties={"a": {"unevaluatedItems": False, "$ref": "#/$defs/d0"}}, **{"$defs": _TWICE}), {"a": [1]}),
        (_object(properties={"a": {"items": {"enum": list(range(9000))}}}), {"a": [-1] * 100}),
    ],
    ids=[
        "ladder of references",
        "tree of references",
        "large pattern",
        "large pattern of names",
        "dependents",
        "two references",
        "enum",
    ],
)
def test_a_schema_cannot_multiply_the_work(checker: SchemaChecker, value: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jsonschemas, "_FREE_STEPS", 5000)
    with pytest.raises(UncheckableError, match="too complex"):
        checker.misfits(value)
    # Neither other values nor schemas pay for it.
    assert checker.misfits({}) == []
    assert fault_of_schema({"minProperties": 1, "title": str(id(checker))}) == ""


def test_a_long_value_is_checked_however_long_it_is() -> None:
    item = {"type": "object", "properties": {"x": {"type": "string", "pattern": "^[a-z]+$"}}, "required": ["x"]}
    checker = _object(properties={"a": {"items": item}})
    assert checker.misfits({"a": [{"x": "abc"}] * 30_000}) == []
    assert checker.misfits({"a": [{"x": "abc"}] * 30_000 + [{"x": "ABC"}]}) == [
        "a.30000.x: 'ABC' does not match '^[a-z]+$'"
    ]
    assert _object(properties={"a": {"pattern": "^[a-z ]+$"}}).misfits({"a": "ab " * 1_000_000}) == []


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    ("schema", "misfits"),
    [
        ({"properties": {"x": {"pattern": "^(a+)+$"}}}, 1),
        ({"patternProperties": {"^(a+)+$": False}}, 0),
        ({"patternProperties": {"^(a+)+$": {}}, "additionalProperties": False}, 1),
        ({"propertyNames": {"pattern": "^(a+)+$"}}, 2),
        ({"propertyNames": {"$dynamicRef": "#p"}, "$defs": {"p": {"$dynamicAnchor": "p", "pattern": "^(a+)+$"}}}, 2),
        ({"propertyNames": {"contentSchema": {"pattern": "^(a+)+$"}, "not": {"pattern": "^(a+)+$"}}}, 0),
        ({"properties": {"x": {"type": "string", "format": "regex"}}}, 0),
        *(
            ({"unevaluatedProperties": False, "properties": {"x": True}, **applied}, 1)
            for applied in (
                {"$ref": "#/$defs/p", "$defs": {"p": _HOSTILE}},
                {"$dynamicRef": "#p", "$defs": {"p": {"$dynamicAnchor": "p", **_HOSTILE}}},
                {"allOf": [_HOSTILE]},
                {"anyOf": [_HOSTILE]},
                {"oneOf": [_HOSTILE]},
                {"if": _HOSTILE},
                {"if": True, "then": _HOSTILE},
                {"if": False, "else": _HOSTILE},
                {"dependentSchemas": {"x": _HOSTILE}},
                _HOSTILE,
            )
        ),
    ],
)
@pytest.mark.parametrize("dialect", ["", *_DIALECTS])
def test_a_pattern_that_backtracks_does_not_hold_up_a_check(schema: dict[str, Any], misfits: int, dialect: str) -> None:
    text = "a" * 100 + "!"
    value: dict[str, Any] = {"x": text, text: 1}
    if dialect:
        inner = _in_dialect(schema, dialect)
        schema = {"properties": {"inner": inner}, "$defs": inner.get("$defs", {})}
        value = {"inner": value}
    assert fault_of_schema(schema) == ""
    assert len(SchemaChecker(schema).misfits(value)) == misfits


def _in_dialect(schema: Any, dialect: str) -> Any:
    """Name the dialect in a schema and in all that it applies."""
    if isinstance(schema, list):
        return [_in_dialect(entry, dialect) for entry in schema]
    if not isinstance(schema, dict):
        return schema
    by_name = ("properties", "patternProperties", "dependentSchemas", "$defs")
    named = {} if "$dynamicAnchor" in schema else {"$schema": dialect}  # which draft 7 does not have
    return named | {
        key: {name: _in_dialect(inner, dialect) for name, inner in entry.items()}
        if key in by_name
        else _in_dialect(entry, dialect)
        for key, entry in schema.items()
    }


@pytest.mark.parametrize("dialect", _DIALECTS)
def test_a_reference_to_the_whole_schema_stays_within_bounds(dialect: str) -> None:
    schema = {"$schema": dialect, "pattern": "^(a+)+$", "properties": {"a": {"$ref": "#"}}}
    assert len(SchemaChecker(schema).misfits({"a": "a" * 100 + "!"})) == 1


_PARTS = st.sampled_from(
    [
        {"properties": {"a": {"type": "integer"}}},
        {"patternProperties": {"^b": True}},
        {"additionalProperties": {"type": "string"}},
        {"unevaluatedProperties": {"type": "string"}},
        {"prefixItems": [{"type": "integer"}]},
        {"items": {"type": "integer"}},
        {"contains": {"type": "string"}},
        {"unevaluatedItems": {"type": "boolean"}},
        {"required": ["a"]},
        {"$ref": "#/$defs/one"},
        {"$dynamicRef": "#two"},
    ]
)


def _combine(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    lists = st.lists(inner, min_size=1, max_size=2)
    return st.one_of(
        st.builds(lambda key, schemas: {key: schemas}, st.sampled_from(["allOf", "anyOf", "oneOf"]), lists),
        st.builds(lambda first, second, third: {"if": first, "then": second, "else": third}, inner, inner, inner),
        st.builds(lambda schema: {"dependentSchemas": {"a": schema}}, inner),
        st.builds(lambda first, second: {**first, **second}, inner, inner),
    )


@given(
    schema=st.recursive(_PARTS, _combine, max_leaves=5),
    value=st.one_of(
        st.dictionaries(st.sampled_from(["a", "b", "bb", "c"]), st.sampled_from([1, "x", True])),
        st.lists(st.sampled_from([1, "x", True]), max_size=4),
    ),
    rest=st.sampled_from([False, {"type": "string"}]),
)
def test_what_no_schema_looks_at_is_judged_as_by_the_library(schema: dict[str, Any], value: Any, rest: Any) -> None:
    definitions = {
        "one": {"properties": {"c": True}, "prefixItems": [True, True]},
        "two": {"$dynamicAnchor": "two", "patternProperties": {"bb": {"type": "integer"}}, "contains": {"const": True}},
    }
    whole = {**schema, "unevaluatedProperties": rest, "unevaluatedItems": rest, "$defs": definitions}
    assert (SchemaChecker(whole).misfits(value) == []) == Draft202012Validator(whole).is_valid(value)


def test_items_that_no_schema_looks_at_are_named() -> None:
    checker = SchemaChecker({"allOf": [{"prefixItems": [True]}], "unevaluatedItems": False})
    assert checker.misfits([1]) == []
    assert checker.misfits([1, 2]) == ["Unevaluated items are not allowed (1 was unexpected)"]
    typed = SchemaChecker({"properties": {"a": True}, "unevaluatedProperties": {"type": "string"}})
    assert typed.misfits({"a": 1, "b": 2}) == ["b: 2 is not of type 'string'"]


def test_a_reference_to_an_anchor_does_not_read_the_whole_schema_again() -> None:
    definitions = {f"d{n}": {"$anchor": f"a{n}"} for n in range(500)}
    checker = SchemaChecker({"items": {"$ref": "#a499"}, "$defs": definitions})
    checker.misfits([])
    few, many = (_steps(lambda count=count: checker.misfits([1] * count)) for count in (1, 21))  # type: ignore[misc]
    assert many - few < 20 * 1000, f"{few} steps for one item, and {many} for 21"


def test_names_that_match_a_pattern_are_not_additional() -> None:
    checker = _object(properties={"a": {}}, patternProperties={"^x-": {"type": "string"}}, additionalProperties=False)
    assert checker.misfits({"a": 1, "x-b": "c"}) == []
    assert checker.misfits({"x-b": 1}) == ["x-b: 1 is not of type 'string'"]
    assert checker.misfits({"c": 1}) == ["Additional properties are not allowed ('c' was unexpected)"]
    typed = _object(patternProperties={"^x-": {}}, additionalProperties={"type": "integer"})
    assert typed.misfits({"x-a": "b", "n": "1"}) == ["n: '1' is not of type 'integer'"]


@pytest.mark.parametrize(
    ("schema", "fault"),
    [
        ({"properties": {"a": {"pattern": "(?=a)"}}}, "lookaround"),
        ({"patternProperties": {"(": {}}}, "unclosed group"),
        ({"$defs": {"a": {"items": [{}, {"anyOf": [{"pattern": "("}]}]}}}, ""),
        ({"allOf": [{"not": {"pattern": r"(a)\1"}}]}, "backreference"),
        ({"properties": {str(n): {"type": "string"} for n in range(6000)}}, "10,000 values"),
    ],
)
def test_a_schema_that_cannot_be_checked_is_not_valid(schema: dict[str, Any], fault: str) -> None:
    reason = fault_of_schema(schema)
    assert reason
    assert fault in reason


@pytest.mark.parametrize("keyword", ["const", "enum", "default", "examples"])
def test_values_in_a_schema_are_no_patterns(keyword: str) -> None:
    assert fault_of_schema({"properties": {"pattern": {keyword: [{"pattern": "("}]}}}) == ""


@pytest.mark.parametrize("levels", [49, 50, 1000, 100_000])
def test_a_schema_may_be_nested_a_hundred_levels_deep(levels: int) -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"a": schema}}
    fault = fault_of_schema(schema)
    assert fault == (
        "" if levels < 50 else "nested more than 100 levels deep: use $defs and $ref to flatten the schema"
    )
    while schema:  # freed level by level
        schema = schema.pop("properties", {}).pop("a", {})


def test_a_schema_that_refers_to_itself_only_ends_in_a_misfit() -> None:
    checker = _object(properties={"a": {"$ref": "#/properties/a"}})
    assert checker.misfits({"a": 1}) == ["the value or its schema is nested too deeply to be validated"]


@pytest.mark.parametrize("reference", ["http://[", "#nowhere", "other.json", "#/$defs/%zz"])
def test_a_reference_that_leads_nowhere_is_an_error_of_ours(reference: str) -> None:
    with pytest.raises(UncheckableError):
        _object(properties={"a": {"$ref": reference}}).misfits({"a": 1})


def test_a_number_too_large_to_divide_does_not_fit() -> None:
    checker = _object(properties={"a": {"multipleOf": 0.1}})
    assert checker.misfits({"a": 10**4000}) == ["a number is too large to be validated"]


def test_large_numbers_with_equal_hashes_are_told_apart_in_few_steps() -> None:
    numbers = [n * (2**61 - 1) for n in range(1, 3000)]
    assert UNIQUE.misfits(numbers) == []
    assert UNIQUE.misfits([2**60, float(2**60)]) != []
    assert len({hash(jsonschemas._identity(number)) for number in numbers}) > 2900
