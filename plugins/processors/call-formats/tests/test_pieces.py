"""Arguments, bodies and contents, case by case."""

from __future__ import annotations

from typing import Any

import pytest

from jackfield.messages import ContentItem, FunctionCall
from jackfield_call_formats.arguments import as_text, object_of, split_arguments
from jackfield_call_formats.content import as_content, between, in_lines, with_texts
from jackfield_call_formats.json_body import (
    calls_in_json,
    early_json_name,
    is_strict_json,
    raw_arguments,
    write_call,
)

PICTURE = ContentItem(image="http://localhost/p.png")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (None, "{}"),
        ("", "{}"),
        (" ", " "),
        ("x", "x"),
        ({"a": "天"}, '{"a": "天"}'),
        ({"a": "天\ud800"}, '{"a": "\\u5929\\ud800"}'),
        ([], "[]"),
        (0, "0"),
    ],
)
def test_arguments_as_text(arguments: object, text: str) -> None:
    assert as_text(arguments) == text


@pytest.mark.parametrize(
    ("text", "value"),
    [("", {}), (" \n", {}), ('{"a": "x\ny"}', {"a": "x\ny"}), ("[1]", None), ("{", None), ("[" * 100_000, None)],
)
def test_the_arguments_of_a_past_call(text: str, value: object) -> None:
    assert object_of(FunctionCall("f", text)) == value


@pytest.mark.parametrize(
    ("text", "arguments", "rest", "is_whole"),
    [
        ("", "{}", "", False),
        (" words ", "words", "", False),
        ('{"a": 1}', '{"a": 1}', "", True),
        ('{"a": 1} } \n}', '{"a": 1}', "", True),  # a brace too many
        ('{"a": 1}} and on', '{"a": 1}', "} and on", True),
        ('"x" and on', "x", " and on", True),
        ('" " and on', "{}", " and on", True),
        ("{'a': 1} and on", '{"a": 1}', " and on", False),
        ("{'a': 1", '{"a": 1}', "", False),
        ("{a b c", "{a b c", "", False),
        ('"x', '"x', "", False),
        ('```json\n{"a": 1}\n``` and on', '{"a": 1}', " and on", True),
        ("```py\nx = 1\n``` and on", "```py\nx = 1\n```", " and on", True),
        ("````\n```\n````\nand on", "````\n```\n````", "\nand on", True),
        ("```\nx", "```\nx", "", False),
        ("```\nx\n    ```\n   ```", "```\nx\n    ```\n   ```", "", True),
    ],
)
def test_arguments_before_other_text(text: str, arguments: str, rest: str, is_whole: bool) -> None:
    written = split_arguments(text)
    assert (written.arguments, written.rest, written.is_whole) == (arguments, rest, is_whole)


@pytest.mark.parametrize(
    ("head", "name"),
    [
        ('{"name": "f"', "f"),
        ('\n```json\n{ "name" : " f "', "f"),
        ('{"name": "f', ""),
        ('{"a": 1, "name": "f"', ""),
        ('{"name": "a\\"b"', ""),
        ('[{"name": "f"', ""),
    ],
)
def test_a_name_that_is_seen_early(head: str, name: str) -> None:
    assert early_json_name(head) == name


@pytest.mark.parametrize(
    ("text", "is_strict"),
    [
        ('{"a": 1}', True),
        ('{"a": 1};\n{"b": 2},', True),
        ('{"a": 1} x', False),
        ("{'a': 1}", False),
        ('{"a": 1}\n<code>\nx\n</code>', True),
        ('{"a": 1}\n<code>\nx', False),
        ("", True),
    ],
)
def test_what_is_valid_json(text: str, is_strict: bool) -> None:
    assert is_strict_json(text) == is_strict


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        ('{"name": " f ", "arguments": {"a": 1}}', [("f", '{"a": 1}')]),
        ('{"name": "f", "parameters": {"a": 1}}', [("f", '{"a": 1}')]),
        ('{"name": "f", "type": "function", "id": "1", "a": 1}', [("f", '{"a": 1}')]),
        ('{"name": "f"}', [("f", "{}")]),
        ('{"name": "f", "arguments": "{}"}', [("f", "{}")]),
        ('{"type": "function", "function": {"name": "f", "arguments": {}}}', [("f", "{}")]),
        ('{"name": "g", "function": {"name": "f"}}', [("g", '{"function": {"name": "f"}}')]),
        ('[{"name": "f"}, {"name": "g"}]', [("f", "{}"), ("g", "{}")]),
        ('{"name": "f"}\n{"name": "g"}', [("f", "{}"), ("g", "{}")]),
        ('{"arguments": {"a": 1}}', [("chosen", '{"a": 1}')]),
        ('{"a": 1}', []),
        ('{"name": " "}', []),
        ('{"name": 1}', []),
        ('[{"name": "f"}, 1]', []),
        ("", []),
        ('{"name": "f", "arguments": {}}\n<code>\nx\n\n</code>', [("f", '{"code": "x\\n"}')]),
        ('{"name": "f", "arguments": [1]}<code>x</code>', [("f", '{"code": "x"}')]),
    ],
)
def test_the_calls_in_a_body(text: str, calls: list[tuple[str, str]]) -> None:
    for mend in (False, True):
        found = calls_in_json(text, mend=mend, chosen="chosen")
        assert [(call.name, call.arguments) for call in found] == calls


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        ("{'name': 'f', 'arguments': {'a': 1}}", [("f", '{"a": 1}')]),
        ('{"name": "f", "arguments": <x>}', [("f", "<x>")]),
        ("{'name': ' f ', 'parameters': <x>}\n```", [("f", "<x>")]),
        ('{"name": "f", <x>}', []),
        ('{"name": " ", "arguments": <x>}', []),
    ],
)
def test_the_calls_in_a_body_that_must_be_mended(text: str, calls: list[tuple[str, str]]) -> None:
    assert calls_in_json(text, mend=False) == []
    assert [(call.name, call.arguments) for call in calls_in_json(text, mend=True)] == calls


@pytest.mark.parametrize(
    ("text", "raw"),
    [
        ('{"name": "f", "arguments": <x> } ', "<x>"),
        ('{"name": "f", "arguments": <x>}}\n```\n', "<x>}"),
        ('{"name": "f", "arguments": }', '{"name": "f", "arguments": }'),
        (" x ", "x"),
    ],
)
def test_what_seems_to_be_the_arguments(text: str, raw: str) -> None:
    assert raw_arguments(text) == raw


@pytest.mark.parametrize(
    ("arguments", "code_apart", "written"),
    [
        ('{"a": 1}', False, '{"name": "f", "arguments": {"a": 1}}'),
        ("", False, '{"name": "f", "arguments": {}}'),
        ("[1]", False, '{"name": "f", "arguments": "[1]"}'),
        ('{"code": "x"}', False, '{"name": "f", "arguments": {"code": "x"}}'),
        ('{"code": "x"}', True, '{"name": "f", "arguments": {"code": ""}}\n<code>\nx\n</code>'),
        ('{"code": 1}', True, '{"name": "f", "arguments": {"code": 1}}'),
        ('{"code": "</code"}', True, '{"name": "f", "arguments": {"code": "</code"}}'),
        ('{"code": "<tool_call"}', True, '{"name": "f", "arguments": {"code": "<tool_call"}}'),
        ('{"code": "</function"}', True, '{"name": "f", "arguments": {"code": "</function"}}'),
        ('{"code": "<parameter"}', True, '{"name": "f", "arguments": {"code": "<parameter"}}'),
        ("", True, '{"name": "f", "arguments": {}}'),
    ],
)
def test_a_call_as_json(arguments: str, code_apart: bool, written: str) -> None:
    assert write_call(FunctionCall("f", arguments), code_apart=code_apart) == written


# --- contents ---


@pytest.mark.parametrize(
    ("parts", "content"),
    [
        ([], ""),
        (["a", "b\n", "c"], "a\nb\nc"),
        (["a", "", "b"], "a\n\nb"),
        (["a", [PICTURE], "b"], [ContentItem(text="a\n"), PICTURE, ContentItem(text="\nb")]),
        (["a\n", [PICTURE]], [ContentItem(text="a\n"), PICTURE]),
        ([[ContentItem(text="a")], "b"], "a\nb"),
    ],
)
def test_parts_on_lines_of_their_own(parts: Any, content: Any) -> None:
    assert in_lines(parts) == content


def test_texts_around_and_in_a_content() -> None:
    assert between("<", "a", ">") == "<a>"
    assert between("<", [PICTURE], "") == [ContentItem(text="<"), PICTURE]
    assert between("<", [ContentItem(text="a")], ">") == "<a>"
    assert with_texts("a", str.upper) == "A"
    assert with_texts([ContentItem(text="a"), PICTURE], str.upper) == [ContentItem(text="A"), PICTURE]
    assert as_content([ContentItem(text="a"), ContentItem(text="b"), PICTURE]) == [ContentItem(text="ab"), PICTURE]
    assert as_content([PICTURE]) == [PICTURE]
