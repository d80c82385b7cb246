"""No text of settings, in whichever form, takes long, hides a key, or brings a text that cannot be encoded."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield.errors import ConfigError
from jackfield_agent_files.files import load_agent_config
from jackfield_agent_files.tables import MAX_DEPTH, Form, parse_table, read_text

BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{new}: &{new} [{','.join([f'*{old}'] * 9)}]\n" for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=20,
)


@given(VALUES)
def test_an_ordinary_value_comes_back_unchanged(value: Any) -> None:
    text = json.dumps(value)
    assert parse_table(text, "json") == value
    assert parse_table(json.dumps(value, ensure_ascii=False), "json") == value


@pytest.mark.parametrize("text", [BOMB, "a: &a 1\nb: *a", "a: &a {x: 1}\nb: {<<: *a}", "&a [*a]"])
def test_an_alias_is_refused_before_a_value_is_made_of_it(text: str) -> None:
    assert len(text) < 400
    with pytest.raises(ValueError, match=r"aliases \(\*name\) are not allowed, line \d"):
        parse_table(text, "yaml")


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("yaml", "llm: a\nb: 1\nllm: c"),
        ("yaml", "x: {approval: ask, approval: never}"),
        ("yaml", "? approval\n: 1\n'approval': 2"),
        ("json", '{"llm": 1, "llm": 2}'),
        ("json", '{"x": [{"a": 1, "\\u0061": 2}]}'),
        ("toml", "llm = 1\nllm = 2"),
    ],
)
def test_a_key_that_is_there_twice_is_refused(form: Form, text: str) -> None:
    with pytest.raises(ValueError, match=r"duplicate key|overwrite"):
        parse_table(text, form)


@pytest.mark.parametrize("depth", [MAX_DEPTH + 1, 1_000, 100_000])
@pytest.mark.parametrize("form", ["yaml", "json", "toml"])
def test_a_value_is_nested_to_a_limit(form: Form, depth: int) -> None:
    text = ("a = " if form == "toml" else "") + "[" * depth + "]" * depth
    with pytest.raises(ValueError, match="nested"):
        parse_table(text, form)


@pytest.mark.parametrize("form", ["yaml", "json", "toml"])
def test_a_value_at_the_limit_is_parsed(form: Form) -> None:
    inner = MAX_DEPTH - (form == "toml")
    parse_table(("a = " if form == "toml" else "") + "[" * inner + "]" * inner, form)


@pytest.mark.parametrize("form", ["yaml", "json", "toml"])
def test_a_nul_is_refused_wherever_it_is(form: Form) -> None:
    text = {"yaml": 'a: {b: [1, "x\\0"]}', "json": '{"a": {"b": [1, "x\\u0000"]}}', "toml": 'a.b = [1, "x\\u0000"]'}
    with pytest.raises(ValueError, match=r"^a\.b\.1 contains a NUL character"):
        parse_table(text[form], form)


@pytest.mark.parametrize("text", ['{"a": "x\\ud800"}', '{"\\udfff": 1}'])
def test_half_of_a_character_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="contains a lone surrogate"):
        parse_table(text, "json")


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity"])
def test_json_has_no_number_that_is_not_finite(word: str) -> None:
    with pytest.raises(ValueError, match="not a valid JSON number"):
        parse_table(word, "json")


@pytest.mark.parametrize(
    "text", ["!!python/object/apply:os.system [true]", "!!python/name:os.system", "a: !thing 1", "a: 2020-99-99", "[1"]
)
def test_what_is_no_plain_yaml_is_an_error_in_one_sentence(text: str) -> None:
    with pytest.raises(ValueError, match=r"^[^\n]+$"):
        parse_table(text, "yaml")


def test_an_error_shows_no_value() -> None:
    for form, text in (
        ("yaml", "api_key: sk-secret\n  x: ["),
        ("json", '{"api_key": "sk-secret",}'),
        ("json", '"sk-secret'),
    ):
        with pytest.raises(ValueError, match=r"not valid YAML|Expecting|Unterminated|Illegal") as caught:
            parse_table(text, form)
        assert "sk-secret" not in str(caught.value)


def test_a_bomb_as_an_agent_file_is_refused_at_once(tmp_path: Path) -> None:
    (tmp_path / "agent.yaml").write_text(BOMB)
    with pytest.raises(ConfigError, match="aliases"):
        load_agent_config(tmp_path / "agent.yaml")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names")
def test_a_pipe_or_device_in_the_place_of_a_file_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "agent.yaml")
    for path in (tmp_path / "agent.yaml", Path("/dev/zero"), tmp_path):
        with pytest.raises(ConfigError, match=r"regular file|directory"):
            read_text(path, max_bytes=100)


def test_a_file_is_read_up_to_its_limit(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("x" * (2 << 20))
    assert len(read_text(path, max_bytes=2 << 20)) == 2 << 20
    with pytest.raises(ConfigError, match="exceeds the 1 MiB limit"):
        read_text(path, max_bytes=1 << 20)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: x\nb: x\n", {"a": "x", "b": "x"}),
        ("a: {x: 1}\nb: {x: 2}\n", {"a": {"x": 1}, "b": {"x": 2}}),
        ("a: [x, x]\nx: a\n", {"a": ["x", "x"], "x": "a"}),
        ("a: a\n", {"a": "a"}),
        ("- {a: 1}\n- {a: 2}\n", [{"a": 1}, {"a": 2}]),
        ("? [k]\n: 1\n", None),
    ],
)
def test_only_keys_of_one_table_must_differ(text: str, value: object) -> None:
    if value is None:
        with pytest.raises(ValueError, match=r"."):
            parse_table(text, "yaml")
    else:
        assert parse_table(text, "yaml") == value


def test_an_error_names_the_line_and_the_beginning_of_the_key() -> None:
    assert MAX_DEPTH == 64
    with pytest.raises(ValueError, match=r"^duplicate key 'b', line 4$"):
        parse_table("a: 1\nb: 1\nc: 1\nb: 2\n", "yaml")
    key = "k" * 99
    for text, form in ((f"{key}: 1\n{key}: 2", "yaml"), (f'{{"{key}": 1, "{key}": 2}}', "json")):
        with pytest.raises(ValueError, match=f"duplicate key '{'k' * 40}'"):
            parse_table(text, form)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"^not valid YAML: .*, line 2, column 4$"):
        parse_table("a: 1\nb: @x\n", "yaml")
    with pytest.raises(ValueError, match=r"^nested more than 3 levels deep, line 2$"):
        parse_table("a:\n - [[1]]\n", "yaml", max_depth=3)
    assert parse_table("a:\n - [1]\n", "yaml", max_depth=3) == {"a": [[1]]}


@pytest.mark.parametrize(
    ("value", "place"), [({"a": {"b": ["x\0"]}}, "a.b.0"), (["\0"], "0"), ("\0", "the text"), ({"\0": 1}, "a key")]
)
def test_an_error_about_a_text_names_its_place(value: Any, place: str) -> None:
    with pytest.raises(ValueError, match=f"^{place} contains a NUL character: remove it$"):
        parse_table(json.dumps(value), "json")


@pytest.mark.parametrize(
    ("text", "is_told"),
    [
        ("llm:\n\tmodel: m\n", True),
        ("llm:\n  model: m\n\tbase_url: x\n", True),
        ("llm:\n  - a\n \t- b\n", True),
        ("name: [open\n", False),
        ('name: "a\tb\n', False),
    ],
)
def test_tabs_that_indent_yaml_are_named(text: str, is_told: bool) -> None:
    with pytest.raises(ValueError, match="not valid YAML: ") as caught:
        parse_table(text, "yaml")
    assert str(caught.value).endswith("; indent YAML with spaces, not tabs") is is_told
