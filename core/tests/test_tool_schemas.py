"""The interface of a tool for models: its name, its schema, and the check of arguments."""

from __future__ import annotations

import re
from typing import Any, ClassVar

import pytest

from jackfield import BaseTool, FnCallAgent, ToolContext, call_tool
from jackfield.errors import ConfigError, ToolArgumentError, ToolServiceError
from jackfield.testing import ScriptedModel, answer, calls
from jackfield.tools._parameters import schema_of_list
from jackfield.tools._schema import ArgumentChecker, check_tool_name, check_tool_schema, object_schema, tool_name_for
from tests.support.tools import Looks

# --- names ---


@pytest.mark.parametrize(("name", "is_valid"), [("a", True), ("A-b_9", True), ("a" * 64, True), ("a" * 65, False),
    ("", False), ("a b", False), ("a.b", False), ("é", False), ("a\n", False)])  # fmt: skip
def test_a_name_of_a_tool_is_one_that_every_provider_accepts(name: str, is_valid: bool) -> None:
    if is_valid:
        check_tool_name(name)
        assert tool_name_for(name) == name
        return
    said = f"{name!r} is not a valid tool name: use 1 to 64 ASCII letters, digits, '_' and '-'"
    with pytest.raises(ConfigError, match=re.escape(said)):
        check_tool_name(name)
    made = tool_name_for(name or "\0", prefix="to_")
    check_tool_name(made)
    assert made.startswith("to_")
    assert re.search("_[0-9a-f]{8}$", made)
    assert made == tool_name_for(name or "\0", prefix="to_")


def test_a_made_name_keeps_its_words() -> None:
    assert tool_name_for("Herr Müller!").rpartition("_")[0] == "Herr_M_ller"
    assert tool_name_for("你好").rpartition("_")[0] == "agent"
    assert len(tool_name_for("a b" * 50)) == 64
    with pytest.raises(ConfigError, match="a tool's name must be a string, got int"):
        check_tool_name(5)  # type: ignore[arg-type]


# --- schemas ---


def test_parameters_as_a_list_become_a_schema() -> None:
    listed = [
        {"name": "a", "type": "str", "description": "A.", "required": True},
        {"name": "b", "type": "Integer", "enum": [1]},
        {"name": "c", "type": "file", "required": "yes"},
        {"name": "d"},
    ]
    schema = {
        "type": "object",
        "properties": {
            "a": {"type": "string", "description": "A."}, "b": {"type": "integer", "enum": [1]}, "c": {}, "d": {},
        },
        "required": ["a"],
    }  # fmt: skip
    assert schema_of_list("t", listed) == object_schema("t", tuple(listed)) == schema
    types = {
        "text": "string",
        "int": "integer",
        "float": "number",
        "bool": "boolean",
        "list": "array",
        "dict": "object",
    }
    for name, known in {**types, "null": "null"}.items():
        assert schema_of_list("t", [{"name": "x", "type": name}])["properties"] == {"x": {"type": known}}
    for wrong in ([5], [{"type": "str"}], [{"name": 5}]):
        with pytest.raises(
            ConfigError, match="the parameters of tool 't', if passed as a list, must be dicts with 'name'"
        ):
            schema_of_list("t", wrong)
    with pytest.raises(
        ConfigError, match="the parameters of tool 't' must be a JSON Schema of type 'object', or a list"
    ):
        object_schema("t", 5)


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({}, "the parameters of tool 't' must be a JSON Schema of type 'object'"),
        ({"type": "object", "properties": 5}, "the parameters of tool 't' are not a valid JSON Schema: "),
        (
            {"type": "object", "properties": {"a": {}}, "required": ["c", "a", "b"]},
            "tool 't' requires 'b', which is not among its properties",
        ),
        ({"type": "object", "properties": {"a": {"pattern": "(?<=a)b"}}}, "the parameters of tool 't' are not a valid"),
    ],
)
def test_a_schema_that_no_call_can_fit_is_refused(schema: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        check_tool_schema("t", schema)
    assert str(caught.value).startswith(said)
    if "pattern" in str(schema):
        check_tool_schema("t", schema, ignore_patterns=True)


# --- arguments ---


@pytest.mark.parametrize(
    "rule", [{"$ref": "other.json"}, {"type": "string", "pattern": "(?<=a)b"}], ids=["a reference", "a pattern"]
)
def test_a_call_whose_arguments_cannot_be_checked_is_not_made(rule: dict[str, str]) -> None:
    class Unsure(BaseTool):
        name = "unsure"
        description = "Is never called."
        parameters: ClassVar = {"type": "object", "properties": {"a": rule}}
        schema_is_checked = True

        def call(self, params: Any, *, context: ToolContext | None = None) -> str:
            raise AssertionError("its arguments may be wrong")

    with pytest.raises(ToolServiceError, match="'unsure' cannot be called"):
        call_tool(Unsure(), {"a": "x"})
    result = FnCallAgent([Unsure()], ScriptedModel([calls(("unsure", {"a": "x"})), answer("Done.")])).ask("Go.")
    assert "'unsure' cannot be called" in result.messages[1].get_text_content()


def test_arguments_are_checked_against_the_parameters_of_the_moment() -> None:
    made = Looks()
    assert made.parse_arguments('{"a": 1}') == made._verify_json_format_args({"a": 1}) == {"a": 1}
    with pytest.raises(ToolArgumentError, match="invalid arguments for 'look'"):
        made.parse_arguments({"a": "x"})
    two = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}}
    with pytest.raises(ToolArgumentError, match=r"a: 'x' is not of type 'integer'; b: 1 is not of type 'string'"):
        ArgumentChecker("look", two).check({"a": "x", "b": 1})
    nothing = ArgumentChecker("look", {"type": "object", "properties": {}, "additionalProperties": False})
    nothing.check({})
    with pytest.raises(ToolArgumentError, match="Additional properties are not allowed"):
        nothing.check({"a": 1})
    made.parameters = {"type": "object", "properties": {"a": {"type": "string"}}}
    assert made.parse_arguments({"a": "x"}) == {"a": "x"}
    made.parameters = [{"name": "b", "type": "int", "required": True}]
    assert made.schema("zh") == {
        "name": "look", "description": "看。",
        "parameters": {"type": "object", "properties": {"b": {"type": "integer"}}, "required": ["b"]},
    }  # fmt: skip
    assert made.function["description"] == "Looks."
    assert made.schema()["parameters"] is made.schema()["parameters"]
    with pytest.raises(ToolArgumentError):
        made.parse_arguments({})
    made.raw_argument = "b"
    with pytest.raises(ToolArgumentError):
        made.parse_arguments("plain text")
    made.parameters = [{"name": "b", "type": "str", "required": True}]
    assert made.parse_arguments("plain text") == {"b": "plain text"}
    for wrong in ('{"c": 1}', "[1, 2]", "5"):  # JSON, but not the arguments
        with pytest.raises(ToolArgumentError):
            made.parse_arguments(wrong)
    made.parameters = {"type": "object", "properties": {}}
    assert made.parse_arguments("{}") == {}
    assert (repr(made), made.preview({}, workspace=ToolContext().workspace)) == ("<Looks look>", "")


@pytest.mark.parametrize(
    ("as_text", "annotation", "takes"),
    [(None, str, True), (None, "str", True), (None, "str | dict", False), (None, None, False), (True, None, True),
     (False, str, False), (1, None, False)],
)  # fmt: skip
def test_a_call_gets_text_if_it_says_so(as_text: Any, annotation: Any, takes: bool) -> None:
    class Other(Looks):
        params_as_text = as_text

        def call(self, params: Any, *, context: ToolContext[Any] | None = None) -> str:
            return ""

    Other.call.__annotations__.pop("params")
    if annotation is not None:
        Other.call.__annotations__["params"] = annotation
    assert Other().takes_text is takes
