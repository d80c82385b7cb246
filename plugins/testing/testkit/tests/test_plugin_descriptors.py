"""The faults of descriptors: each is a sentence, and what is allowed has none."""

from __future__ import annotations

from typing import Any

import pytest

from jackfield.plugins import ParserSpec, ToolsetSpec, ToolSpec
from jackfield_testkit.suites.plugin_descriptors import MAX_BYTES, faults_of

OK: dict[str, Any] = {"name": "acme", "target": "m:T", "description": "Does it."}
NO_NAME = "is not a valid name: use 1 to 64 of a-z, 0-9, _ and -, and do not start with - or _"
NO_DESCRIPTION = "the tool has no description, or an empty one"


@pytest.mark.parametrize(
    "settings",
    [
        {"name": "a" * 64},
        {"secrets": ("A_1",), "effects": frozenset({"files", "network", "processes"})},
        {"a_keyword_of_a_newer_core": 1},
        {"config": "a_1.b:C", "check": "m:_c"},
        {"requires": ("tool.a", "parser.b-c"), "required_by": {"files": "parser"}},
        {"summary": "a\tb", "description": {"en": "One.\nTwo.", "zh": "一"}},
        {"parameters": {"type": "object", "properties": {"a": {"enum": ["x", 1, None]}}}},
        {"description": "x" * (MAX_BYTES - 1000)},
    ],
    ids=", ".join,
)
def test_a_descriptor_that_says_what_is_known_has_no_faults(settings: dict[str, Any]) -> None:
    assert faults_of(ToolSpec(**{**OK, **settings})) == []


def test_a_set_that_names_its_tools_needs_no_target_and_bytes_are_values() -> None:
    assert faults_of(ToolsetSpec(name="all", tools=("tool.a",))) == []
    assert faults_of(ToolsetSpec(name="none")) == ["target must be in the form module:name, got ''"]
    assert faults_of(ParserSpec(name="p", target="m:P", magic=(b"\xff\x00a\\x", "é".encode()))) == []


@pytest.mark.parametrize(
    ("settings", "faults"),
    [
        ({"name": "Acme"}, [f"'Acme' {NO_NAME}"]),
        ({"name": "a" * 65}, [f"'{'a' * 65}' {NO_NAME}"]),
        ({"name": "-a"}, [f"'-a' {NO_NAME}"]),
        (
            {"secrets": ("A", "sk-1", "b")},
            [f"{name!r} is not a valid environment variable name" for name in ("sk-1", "b")],
        ),
        (
            {"effects": frozenset({"files", "telepathy"})},
            ["'telepathy' is not a valid effect: use files, network, processes"],
        ),
        ({"efects": 1}, ["unknown field 'efects'; did you mean 'effects'?"]),
        ({"target": "m.T"}, ["target must be in the form module:name, got 'm.T'"]),
        ({"target": ""}, ["target must be in the form module:name, got ''"]),
        ({"config": "1:C"}, ["config must be in the form module:name, got '1:C'"]),
        ({"check": "m:c d"}, ["check must be in the form module:name, got 'm:c d'"]),
        ({"requires": ("tool.a", "tool")}, ["required components must be in the form kind.name, got 'tool'"]),
        ({"requires": ("gadget.a",)}, ["required components must be in the form kind.name, got 'gadget.a'"]),
        ({"requires": ("tool.B",)}, ["required components must be in the form kind.name, got 'tool.B'"]),
        ({"required_by": {"files": "gadget"}}, ["required components must be in the form kind.name, got 'gadget.any'"]),
        ({"required_by": {"a": ["gadget.x"]}}, ["required components must be in the form kind.name, got 'gadget.x'"]),
        (
            {"required_by": {"a": {"": ["tool.a", "gadget.x"]}}},
            ["required components must be in the form kind.name, got 'gadget.x'"],
        ),
        ({"summary": "a\nb"}, ["the summary must be a single line"]),
        ({"summary": "a\x1bb"}, ["summary must not contain control characters: 'a\\x1bb'"]),
        ({"description": {"en": "a\x85"}}, ["description must not contain control characters: 'a\\x85'"]),
        (
            {"parameters": {"type": "object", "properties": {"a\u202e": {}}}},
            ["parameters must not contain control characters: 'a\\u202e'"],
        ),
        (
            {"parameters": {"type": "object", "x": float("nan")}},
            ["the descriptor must be JSON-serializable: Out of range float values are not JSON compliant"],
        ),
        ({"secrets": ["A"]}, ["secrets=['A'] becomes ('A',) after a round trip through JSON"]),
        (
            {"parameters": {"type": "object", "x": (1,)}},
            [
                "parameters={'type': 'object', 'x': (1,)} becomes "
                "{'type': 'object', 'x': [1]} after a round trip through JSON"
            ],
        ),
        ({"description": " "}, [NO_DESCRIPTION]),
        ({"description": {}}, [NO_DESCRIPTION]),
        ({"description": {"en": "Does it.", "zh": ""}}, [NO_DESCRIPTION]),
        ({"parameters": {"type": "array"}}, ["the parameters of tool 'acme' must be a JSON Schema of type 'object'"]),
    ],
    ids=lambda value: ", ".join(value) if isinstance(value, dict) else "",
)  # fmt: skip
def test_each_fault_of_a_descriptor_is_a_sentence(settings: dict[str, Any], faults: list[str]) -> None:
    assert faults_of(ToolSpec(**{**OK, **settings})) == faults


def test_a_descriptor_is_64_kib_of_json_at_most() -> None:
    def size_of(length: int) -> str:
        (fault,) = faults_of(ToolSpec(**{**OK, "description": "x" * length}))
        return fault

    too_large = size_of(MAX_BYTES)
    rest = int(too_large.partition("the descriptor is ")[2].partition(" ")[0]) - MAX_BYTES
    assert faults_of(ToolSpec(**{**OK, "description": "x" * (MAX_BYTES - rest)})) == []
    assert size_of(MAX_BYTES - rest + 1) == f"the descriptor is {MAX_BYTES + 1} bytes of JSON; the limit is {MAX_BYTES}"
