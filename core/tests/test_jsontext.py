"""JSON as models write it."""

from __future__ import annotations

import contextlib
import json
import sys
from types import FrameType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jackfield.jsontext import MAX_REPAIR_CHARS, dumps, loads_lenient

values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.text(max_size=5), children, max_size=3),
    max_leaves=10,
)
containers = values.filter(lambda value: isinstance(value, dict | list))


@given(values)
@settings(max_examples=100)
def test_what_was_written_is_read_back(value: Any) -> None:
    assert loads_lenient(dumps(value)) == value
    assert loads_lenient(json.dumps(value, indent=2)) == value


@given(values, st.sampled_from(["```json\n{}\n```", "```\n{}\n```", "\n```JSON\n{}```\n", "```JSON5 \n{}\n```"]))
@settings(max_examples=60)
def test_a_code_fence_around_it_does_not_matter(value: Any, fence: str) -> None:
    assert loads_lenient(fence.format(dumps(value))) == value


@given(containers)
@settings(max_examples=40)
def test_a_fence_on_the_same_line_does_not_matter(value: Any) -> None:
    assert loads_lenient(f"```{dumps(value)}```") == value


@given(st.text(max_size=200))
@settings(max_examples=200)
def test_any_text_is_read_or_is_a_value_error(text: str) -> None:
    for attempt in (text, "{" + text, "[" + text, '{"a": ' + text + "}"):
        with contextlib.suppress(ValueError):
            loads_lenient(attempt)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{'a': 1}", {"a": 1}),
        ('{"a": 1,}', {"a": 1}),
        ("{'name': 'f', 'arguments': {'a': 1,}}", {"name": "f", "arguments": {"a": 1}}),
        ('{"code": "line 1\nline 2\ttab"}', {"code": "line 1\nline 2\ttab"}),
        ('{"a": [1, 2', {"a": [1, 2]}),
        ("{a: 1}", {"a": 1}),
        ('{"a": True, "b": None}', {"a": True, "b": None}),
        ('```json\n{"q": "```x```"}\n```', {"q": "```x```"}),
        ('{"q": "```"}', {"q": "```"}),
    ],
)
def test_common_slips_are_mended(text: str, value: Any) -> None:
    assert loads_lenient(text) == value


@pytest.mark.parametrize("text", ["", "hello", "just some words {with braces}", "```\n```", "```", "'a'", "tool.x = 3"])
def test_what_means_to_be_no_json_is_not_made_into_some(text: str) -> None:
    with pytest.raises(ValueError, match="not JSON"):
        loads_lenient(text)


def test_wellformed_json_is_never_reinterpreted() -> None:
    assert loads_lenient('{"a": "{\'b\': 1,}"}') == {"a": "{'b': 1,}"}
    assert loads_lenient('"[1, 2,"') == "[1, 2,"


@pytest.mark.parametrize("depth", [1_000, 100_000])
@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_what_is_nested_too_deeply_is_a_value_error(opening: str, depth: int) -> None:
    with pytest.raises(ValueError, match=r"nested|not JSON"):
        loads_lenient(opening * depth + "1" + ("]" if opening == "[" else "}") * depth + ",")


def test_a_text_too_long_to_mend_is_a_value_error() -> None:
    assert loads_lenient("[" + "1," * 100 + "]") == [1] * 100
    with pytest.raises(ValueError, match="not JSON"):
        loads_lenient("[" + "1," * MAX_REPAIR_CHARS + "]")


class TooMuchWorkError(Exception):
    """The mending took more lines of Python than it may."""


@pytest.mark.parametrize("piece", ['["', '["a" ', '[" ', '{"a":"', '{"a": ["x", ', '{"', "[1 ", '"x"y'])
@pytest.mark.parametrize("padding", ["", "x" * 3_000])
def test_no_text_makes_mending_take_for_ever(piece: str, padding: str) -> None:
    text = "{" + piece * 2_000 + padding
    lines = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal lines
        lines += event == "line"
        if lines > 3_000_000:  # a second or two; what models really write takes 70 lines for a character
            raise TooMuchWorkError
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        with contextlib.suppress(ValueError):
            loads_lenient(text)
    finally:
        sys.settrace(before)


def test_other_alphabets_stay_readable() -> None:
    assert dumps({"名": "ü"}) == '{"名": "ü"}'
