"""The faults of descriptors: each is a sentence, and what is allowed has none."""

from __future__ import annotations

from typing import Any

import pytest

from jackfield.plugins import ParserSpec, ToolsetSpec, ToolSpec
from jackfield_testkit.suites.plugin_descriptors import MAX_BYTES, faults_of

OK: dict[str, Any] = {"name": "acme", "target": "m:T", "description": "Does it."}
NO_NAME = "is not a valid name: 1 to 64 of a-z, 0-9, _ and -, with no - or _ at the front"
NO_DESCRIPTION = "nothing tells a model what the tool does, or a description is empty"


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
    assert faults_of(ToolsetSpec(name="none")) == ["its target '' is not module:name"]
    assert faults_of(ParserSpec(name="p", target="m:P", magic=(b"\xff\x00a\\x", "é".encode()))) == []


@pytest.mark.parametrize(
    ("settings", "faults"),
    [
        ({"name": "Acme"}, [f"'Acme' {NO_NAME}"]),
        ({"name": "a" * 65}, [f"'{'a' * 65}' {NO_NAME}"]),
        ({"name": "-a"}, [f"'-a' {NO_NAME}"]),
        ({"secrets": ("A", "sk-1", "b")}, [f"{name!r} is not a valid environment variable" for name in ("sk-1", "b")]),
        (
            {"effects": frozenset({"files", "telepathy"})},
            ["'telepathy' is not a valid effect: use files, network, processes"],
        ),
        ({"efects": 1}, ["it says 'efects', which no core knows; is 'effects' meant?"]),
        ({"target": "m.T"}, ["its target 'm.T' is not module:name"]),
        ({"target": ""}, ["its target '' is not module:name"]),
        ({"config": "1:C"}, ["its config '1:C' is not module:name"]),
        ({"check": "m:c d"}, ["its check 'm:c d' is not module:name"]),
        ({"requires": ("tool.a", "tool")}, ["it requires 'tool', which is not kind.name"]),
        ({"requires": ("gadget.a",)}, ["it requires 'gadget.a', which is not kind.name"]),
        ({"requires": ("tool.B",)}, ["it requires 'tool.B', which is not kind.name"]),
        ({"required_by": {"files": "gadget"}}, ["it requires 'gadget.any', which is not kind.name"]),
        ({"required_by": {"a": ["gadget.x"]}}, ["it requires 'gadget.x', which is not kind.name"]),
        ({"required_by": {"a": {"": ["tool.a", "gadget.x"]}}}, ["it requires 'gadget.x', which is not kind.name"]),
        ({"summary": "a\nb"}, ["its summary is more than one line"]),
        ({"summary": "a\x1bb"}, ["its summary has control characters: 'a\\x1bb'"]),
        ({"description": {"en": "a\x85"}}, ["its description has control characters: 'a\\x85'"]),
        (
            {"parameters": {"type": "object", "properties": {"a\u202e": {}}}},
            ["its parameters has control characters: 'a\\u202e'"],
        ),
        (
            {"parameters": {"type": "object", "x": float("nan")}},
            ["it is not made of JSON's values: Out of range float values are not JSON compliant"],
        ),
        ({"secrets": ["A"]}, ["its secrets is ['A'], and comes back from JSON as ('A',)"]),
        (
            {"parameters": {"type": "object", "x": (1,)}},
            [
                "its parameters is {'type': 'object', 'x': (1,)}, "
                "and comes back from JSON as {'type': 'object', 'x': [1]}"
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
    rest = int(too_large.partition("it is ")[2].partition(" ")[0]) - MAX_BYTES
    assert faults_of(ToolSpec(**{**OK, "description": "x" * (MAX_BYTES - rest)})) == []
    assert size_of(MAX_BYTES - rest + 1) == f"it is {MAX_BYTES + 1} bytes of JSON; {MAX_BYTES} are the most"
