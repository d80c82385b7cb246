"""Descriptors come from anybody: what is wrong with one is said, and what is new in one does no harm."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jackfield.descriptors import required_by
from jackfield.errors import BrokenPluginError
from jackfield.hookspecs import HOOKS
from jackfield.plugins import ComponentSpec, SearcherSpec, StoreSpec, ToolsetSpec, ToolSpec
from jackfield.plugins._faults import MAX_SCHEMA_BYTES, fault_of

NO_TEXT = (5, None, b"x", ["x"])


def tool(**values: Any) -> ToolSpec:
    return ToolSpec(**{"name": "x", "target": "m:T", "description": "Does it.", **values})


@pytest.mark.parametrize("hook", HOOKS)
def test_a_descriptor_with_its_defaults_has_no_fault(hook: str) -> None:
    more = {"description": "Does it."} if hook == "tools" else {}
    assert fault_of(HOOKS[hook].spec_class(name="x", target="m:T", **more)) == ""


@pytest.mark.parametrize("hook", HOOKS)
@given(data=st.data())
@settings(max_examples=settings().max_examples // 2)
def test_a_value_of_a_wrong_type_is_named_and_never_raises(hook: str, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from([entry.name for entry in dataclasses.fields(HOOKS[hook].spec_class)]))
    wrong = data.draw(st.sampled_from([object(), 5.5j, b"x", {1: 2}, [1], -1, (b"", 1)]))
    values = {"name": "x", "target": "m:T", **({"description": "Does it."} if hook == "tools" else {}), name: wrong}
    told = fault_of(HOOKS[hook].spec_class(**values))
    assert repr(name) in told or (name == "magic" and wrong == (b"", 1))


@pytest.mark.parametrize(
    "name", ["", "a/b", "..", "../x", "a b", "x\x1b[31m", "x\n", "x" * 65, "-x", "ä", "x\0", "a\\b", ".hidden"]
)
def test_a_name_that_could_be_a_path_or_a_command_to_a_terminal_is_none(name: str) -> None:
    assert "is not a valid name" in fault_of(tool(name=name))


@pytest.mark.parametrize(
    "target", ["", "m", "m:", ":T", "m:T:U", "m.n:T()", "m;n:T", "../m:T", "m:T\n", "1m:T", "mü:T", "m:Tü"]
)
def test_a_target_that_is_no_module_and_name_is_refused(target: str) -> None:
    assert "'target'" in fault_of(tool(target=target))
    assert fault_of(tool(check=target)) == "" if not target else "'check'" in fault_of(tool(check=target))


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"description": "x\x1b]0;title\x07"}, "description"),
        ({"description": {"en": "fine", "zh": "\x00"}}, "zh"),
        ({"summary": "two\x9blines"}, "summary"),
        ({"summary": "x" * 501}, "summary"),
        ({"description": "x" * 20_000}, "description"),
        ({"network": ("a\x1b.example",)}, "host"),
        ({"secrets": ("A KEY",)}, "A KEY"),
        ({"secrets": ("A_KEY", "B-KEY")}, "B-KEY"),
        ({"parameters": {"type": {1, 2}}}, "parameters"),
        ({"parameters": {"enum": ["x" * MAX_SCHEMA_BYTES]}}, "parameters"),
        ({"parameters": {"x" * 200_000: {}}}, "parameters"),
        ({"parameters": {"type": "banana"}}, "'banana'"),
        ({"parameters": {"properties": {}}}, "type 'object', got None"),
        ({"parameters": {"type": "object", "properties": {"x": {"type": ["string", "text"]}}}}, "'text'"),
        ({"parameters": {"type": "object", "properties": {"x": {"anyOf": [{"type": "str"}]}}}}, "use string, integer"),
        ({"parameters": {"type": "object", "$defs": {"x": {"items": {"type": 3}}}}}, "uses type 3"),
        ({"timeout_s": 0}, "timeout_s"),
        ({"timeout_s": float("nan")}, "timeout_s"),
        ({"description": {}}, "description"),
        ({"timeout_s": True}, "timeout_s"),
    ],
    ids=str,
)
def test_what_no_terminal_or_model_should_be_given_is_refused(values: dict[str, Any], named: str) -> None:
    assert named in fault_of(tool(**values))
    assert fault_of(tool(**values)).isprintable()


def test_a_property_may_be_named_type_and_a_default_may_look_like_a_schema() -> None:
    properties = {"type": {"type": "string", "default": {"type": "banana"}}, "enum": {"enum": [{"type": "x"}]}}
    assert fault_of(tool(parameters={"type": "object", "properties": properties})) == ""


def test_a_schema_that_contains_itself_is_refused() -> None:
    schema: dict[str, Any] = {"type": "object"}
    schema["properties"] = {"x": schema}
    assert "'parameters' must be JSON-serializable" in fault_of(tool(parameters=schema))


def test_a_deep_schema_is_refused_and_not_followed_for_ever() -> None:
    schema: dict[str, Any] = {}
    for _ in range(100_000):
        schema = {"x": schema}
    assert "'parameters'" in fault_of(tool(parameters=schema))


def test_the_host_refuses_a_descriptor_with_a_fault_and_names_its_distribution(site: Any) -> None:
    source = (
        "from jackfield.plugins import ToolSpec, hook\n@hook.tools\n"
        "def tools(): return [ToolSpec(name='x', target='m:T', description='x', parameters={'enum': ['x' * 10**7]})]"
    )
    site.add("acme", {"tool.x": "acme_light"}, modules={"acme_light": source})
    site.add_tools("sound", "good")
    host = site.host()
    with pytest.raises(BrokenPluginError, match=r"incorrect description of tool\.x: 'parameters' is 10000014 bytes"):
        host.spec("tool", "x", ToolSpec)
    assert host.spec("tool", "good", ToolSpec)


# --- newer plugins ---


def test_what_a_newer_core_would_know_is_kept_apart_and_does_no_harm(site: Any) -> None:
    source = (
        "from jackfield.plugins import ToolSpec, hook\n@hook.tools\n"
        "def tools(): return [ToolSpec(name='x', target='m:T', description='x', holograms=True)]"
    )
    site.add("acme", {"tool.x": "acme_light"}, modules={"acme_light": source})
    assert site.host().spec("tool", "x", ToolSpec).extra == {"holograms": True}


def test_a_field_that_is_needed_is_missed_all_the_same() -> None:
    with pytest.raises(TypeError, match="target"):
        ComponentSpec(name="x")  # type: ignore[call-arg]


def test_descriptors_are_values() -> None:
    assert tool() == tool()
    assert tool() != tool(summary="Other.")
    assert SearcherSpec(name="x", target="m:C") != StoreSpec(name="x", target="m:C"), "another kind"
    assert repr(SearcherSpec(name="x", target="m:C")).startswith("SearcherSpec(name='x', target='m:C', summary=''")
    with pytest.raises(TypeError, match="unhashable"):
        hash(tool())
    with pytest.raises(dataclasses.FrozenInstanceError):
        tool().name = "y"  # type: ignore[misc]


# --- boundaries ---


@pytest.mark.parametrize(
    ("field", "most", "fault"),
    [
        ("summary", 500, "'summary' is 501 characters long; the limit is 500"),
        ("description", 16 << 10, "description is 16385 characters long; the limit is 16384"),
    ],
)
def test_a_text_may_have_as_many_characters_as_the_limit_says(field: str, most: int, fault: str) -> None:
    assert fault_of(tool(**{field: "x" * most})) == ""
    assert fault_of(tool(**{field: "x" * (most + 1)})) == fault


def test_a_schema_may_have_as_many_bytes_as_the_limit_says() -> None:
    def schema(size: int) -> dict[str, Any]:
        empty: dict[str, Any] = {"type": "object", "description": ""}
        return {**empty, "description": "x" * (size - len(json.dumps(empty)))}

    assert fault_of(tool(parameters=schema(MAX_SCHEMA_BYTES))) == ""
    assert fault_of(tool(parameters=schema(MAX_SCHEMA_BYTES + 1))) == (
        f"'parameters' is {MAX_SCHEMA_BYTES + 1} bytes of JSON; the limit is {MAX_SCHEMA_BYTES}"
    )


@pytest.mark.parametrize(
    ("values", "fault"),
    [
        ({"name": "x" * 64}, ""),
        ({"name": "/" * 90}, f"{'/' * 80!r} is not a valid name: use at most 64 letters, digits, '_', '-' and '.'"),
        ({"secrets": ("-" * 90,)}, f"the secret {'-' * 80!r} is not a valid environment variable name"),
        ({"target": "-" * 90}, f"'target' must be 'module:name', got {'-' * 80!r}"),
        ({"config": "m"}, "'config' must be 'module:name', got 'm'"),
        ({"check": "m"}, "'check' must be 'module:name', got 'm'"),
        ({"timeout_s": 0}, "'timeout_s' must be greater than 0, got 0"),
        ({"timeout_s": -1.5}, "'timeout_s' must be greater than 0, got -1.5"),
        ({"timeout_s": 0.001}, ""),
        ({"description": {}}, "'description' is empty"),
        (
            {"required_by": {"a": "tool"}},
            "'required_by' needs settings, but 'config' does not specify a settings class",
        ),
        ({"required_by": {"a": "tool"}, "config": "m:C"}, ""),
        ({"summary": "a\nb\tc"}, ""),
        ({"summary": "a\rb"}, "summary contains a non-printable character, such as an escape sequence"),
        ({"network": ("\x1b" + "x" * 90,)}, None),
        ({"parameters": {"type": "array"}}, "'parameters' must be a JSON Schema of type 'object', got 'array'"),
    ],
    ids=str,
)
def test_a_fault_is_told_as_the_end_of_a_sentence(values: dict[str, Any], fault: str | None) -> None:
    if fault is None:
        assert fault_of(tool(**values)).startswith("host '\\x1bxxx")
    else:
        assert fault_of(tool(**values)) == fault


def test_a_set_names_its_tools_or_a_target() -> None:
    named = {"name": "x", "tools": ("a",), "summary": "Tools."}
    assert fault_of(ToolsetSpec(**named)) == ""
    assert fault_of(ToolsetSpec(**{**named, "tools": ()}, target="m:T")) == ""
    assert "'target'" in fault_of(ToolsetSpec(**{**named, "tools": ()}))


@pytest.mark.parametrize(
    ("settings", "components"),
    [
        ({}, ["k.none"]),
        ({"way": "both"}, ["k.one", "k.two"]),
        ({"way": "other", "names": ["x"]}, []),  # only the first setting that has a value counts
        ({"way": 3}, ["k.three"]),
        ({"way": True}, ["k.true"]),
        ({"way": None, "names": ["x", {"name": "y", "size": 1}, {"size": 1}, 5]}, ["tool.x", "tool.y"]),
        ({"names": ("x",)}, ["tool.x"]),
        ({"names": "x", "any": 1}, []),
        ({"any": 0}, ["k.any"]),
    ],
    ids=str,
)
def test_settings_require_the_components_that_the_table_says(settings: dict[str, Any], components: list[str]) -> None:
    table: Any = {
        "way": {"both": ["k.one", "k.two"], "3": ["k.three"], "True": ["k.true"]},
        "names": "tool",
        "any": ["k.any"],
        "": ["k.none"],
    }
    assert required_by(table, {"": 0, **settings}) == components
