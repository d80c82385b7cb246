"""The schema of an answer on a command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from jackfield.errors import ConfigError
from jackfield_terminal.schemas import read_schema

PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name", "age"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    "text", ["name str, age int", "name, age int", "name str\nage int\n", json.dumps(PERSON), "x.json", "~/x.json"]
)
def test_a_file_a_schema_and_the_short_form_say_the_same(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    Path("x.json").write_text(json.dumps(PERSON))
    assert read_schema(text).schema == PERSON


@pytest.mark.parametrize("text", ["[name str, age int]", "[\nname str, age int\n]", "[\nname str\nage int\n]"])
def test_fields_in_brackets_are_those_of_a_list(text: str) -> None:
    assert read_schema(text).schema == {"type": "array", "items": PERSON}


def test_a_file_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text(json.dumps(PERSON), encoding="utf-8-sig")
    assert read_schema(str(tmp_path / "x.json")).schema == PERSON


@pytest.mark.parametrize(
    ("text", "field", "schema"),
    [
        ("ok bool", "ok", {"type": "boolean"}),
        ("height float: in metres", "height", {"type": "number", "description": "in metres"}),
        (
            "tags str[]: in lower case",
            "tags",
            {"type": "array", "items": {"type": "string"}, "description": "in lower case"},
        ),
        (", ".join(f"field_{number} int" for number in range(500)), "field_499", {"type": "integer"}),
        ("tags str[]", "tags", {"type": "array", "items": {"type": "string"}}),
        ("名字 str", "名字", {"type": "string"}),
        ("name: the first, and\nage int", "name", {"type": "string", "description": "the first, and"}),
    ],
)
def test_fields_have_types_lists_and_descriptions(text: str, field: str, schema: dict[str, Any]) -> None:
    assert read_schema(text).schema["properties"][field] == schema


def test_brackets_make_a_list_of_objects() -> None:
    assert read_schema("[name str, age int]").schema == {"type": "array", "items": PERSON}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty: pass a file"),
        ("name strr", "the field 'name' has an unknown type 'strr'; did you mean 'str'?"),
        ("a, a", "duplicate field 'a'"),
        ("what is it?", "'what is it?' is not a field"),
        ("[1]", "'1' is not a field"),
        ("name, -age int", "'-age int' is not a field"),
        ("{", "--schema is not valid JSON"),
        ('{"a":' * 100_000, "--schema is not valid JSON"),
        ('{"type": 5}', "is not a valid JSON Schema"),
        ("gone.json", "the schema gone.json cannot be read: No such file"),
    ],
    ids=["empty", "unknown type", "twice", "no field", "number", "dash", "half", "deep", "wrong", "gone"],
)
def test_what_is_no_schema_is_an_error_that_says_what_to_write(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_schema(text)
    assert message in str(caught.value)
