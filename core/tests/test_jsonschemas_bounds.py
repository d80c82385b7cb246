"""Values that a model sends cannot make their check take for ever, and a schema is not checked over and over."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, ClassVar

import pytest
from jsonschema import Draft202012Validator

from jackfield import BaseTool, FnCallAgent, jsonschemas
from jackfield.jsonschemas import MOST_MISFITS, SchemaChecker, fault_of_schema

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
    assert len(SchemaChecker({"items": {"type": "string"}}).misfits(list(range(10_000)))) == MOST_MISFITS


@pytest.fixture
def checks(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The schemas that are checked from now on, one after the other, with nothing remembered."""
    checked: list[Any] = []
    check = Draft202012Validator.check_schema

    def noted(schema: Any, *args: Any, **kwargs: Any) -> None:
        checked.append(schema)
        check(schema, *args, **kwargs)

    monkeypatch.setattr(Draft202012Validator, "check_schema", noted)
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


def test_what_is_nested_too_deeply_to_be_checked_does_not_fit() -> None:
    checker = SchemaChecker({"properties": {"a": {"$ref": "#"}}})
    assert checker.misfits(_nested(100)) == []
    assert checker.misfits(_nested(5000)) == ["it is nested too deeply to be checked"]


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
