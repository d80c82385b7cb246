"""JSON as models write it, with their slips."""

from __future__ import annotations

import contextlib
from functools import partial
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jackfield.jsontext import MAX_DEPTH, TooDeepError, dumps, loads_lenient
from jackfield.jsontext._mending import MAX_REPAIR_CHARS
from jackfield_testkit.streams import work_of

values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.text(max_size=5), children, max_size=3),
    max_leaves=10,
)
containers = values.filter(lambda value: isinstance(value, dict | list))


@given(values, st.sampled_from(["```json\n{}\n```", "```\n{}\n```", "\n```JSON\n{}```\n", "```JSON5 \n{}\n```"]))
def test_a_code_fence_around_it_does_not_matter(value: Any, fence: str) -> None:
    assert loads_lenient(fence.format(dumps(value))) == value


@given(values)
@example(5)
@example(True)
def test_a_fence_on_the_same_line_does_not_matter(value: Any) -> None:
    assert loads_lenient(f"```{dumps(value)}```") == value


@given(st.text(max_size=200))
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
        ("{'it': 'isn\\'t', \"b\": 'say \"x\"'}", {"it": "isn't", "b": 'say "x"'}),
        (
            r'{"re": "\d+\.\u00e9", "path": "C:\Users", "x": "\ud83d\ude00\n",}',
            {"re": "\\d+\\.é", "path": "C:\\Users", "x": "😀\n"},
        ),
        (r'{"path": "C:\Temp\New\Bin\Files\R",}', {"path": r"C:\Temp\New\Bin\Files\R"}),  # no tabs, nor line ends
        ("{“a”: “b”}", {"a": "b"}),
        ('{"a": [{"b": 1}}', {"a": [{"b": 1}]}),
        ('{"a": [1, {"b": [2', {"a": [1, {"b": [2]}]}),
        ('{"a": 1}}', {"a": 1}),
        ('{"a": 1}\nThat is all.', {"a": 1}),
        ("{'a': -1.5e3, 'b': False, 'c': {}, 'd': [],}", {"a": -1500.0, "b": False, "c": {}, "d": []}),
        ("{名: 1, data-id: 2}", {"名": 1, "data-id": 2}),
        (" \n{'a': 1}", {"a": 1}),
        (r"{'it\'s \u00e9': 1}", {"it's é": 1}),
    ],
)
def test_common_slips_are_mended(text: str, value: Any) -> None:
    assert loads_lenient(text) == value


@pytest.mark.parametrize("text", ["", "hello", "just some words {with braces}", "```\n```", "```", "'a'", "tool.x = 3"])
def test_what_means_to_be_no_json_is_not_made_into_some(text: str) -> None:
    with pytest.raises(ValueError, match="not valid JSON"):
        loads_lenient(text)


@pytest.mark.parametrize("depth", [MAX_DEPTH + 1, 1_000, 100_000])
@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_what_is_nested_too_deeply_and_has_a_slip_is_a_value_error(opening: str, depth: int) -> None:
    closing = "]" if opening == "[" else "}"
    with pytest.raises(ValueError, match="nested too deeply" if depth > 10_000 else "nested|not valid JSON"):
        loads_lenient(opening * depth + "1," + closing * depth)
    assert dumps(loads_lenient(opening * MAX_DEPTH + "1," + closing * MAX_DEPTH))


@pytest.mark.parametrize("before", ["", "```json\n"], ids=["plain", "in a fence"])
def test_a_text_is_mended_up_to_a_length_and_a_number_of_tokens(before: str) -> None:
    after = "\n```" if before else ""

    def mend(text: str) -> object:
        return loads_lenient(f"{before}{text}{after}")

    letters = "x" * (MAX_REPAIR_CHARS - len("['',]\n"))
    assert mend(f"['{letters}',]" + ("" if before else "\n")) == [letters]
    with pytest.raises(ValueError, match="too long to repair"):
        mend(f"['{letters}xx',]\n")
    assert mend("[" + "1," * 24_900 + "]") == [1] * 24_900
    with pytest.raises(ValueError, match="too long to repair"):
        mend("[" + "1," * 25_100 + "]")


@pytest.mark.parametrize("depth", [MAX_DEPTH + 1, 1_000])
def test_what_is_too_deep_is_said_to_be_so_whether_or_not_it_has_a_slip(depth: int) -> None:
    for number in ("1", "1,"):
        for opening, closing in ("[]", ('{"a":', "}")):
            with pytest.raises(TooDeepError):
                loads_lenient(opening * depth + number + closing * depth)


def test_an_error_in_a_fence_has_its_place_in_the_fence() -> None:
    with pytest.raises(ValueError, match=r"not valid JSON.*line 1 column 7 \(char 6\)"):
        loads_lenient('```json\n{"a": Paris}\n```')


def test_a_text_too_long_to_mend_is_a_value_error() -> None:
    assert loads_lenient("[" + "1," * 100 + "]") == [1] * 100
    with pytest.raises(ValueError, match="not valid JSON"):
        loads_lenient("[" + "1," * MAX_REPAIR_CHARS + "]")


SLIPS = (
    '{"a":',
    "{a:",
    "['",
    '["',
    "[",
    "{",
    "}",
    "]",
    ",",
    ":",
    "\\",
    '"',
    "'",
    "“",
    "”",
    " ",
    "\n",
    "x",
    "1 ",
    "True",
    "-",
)


@given(
    st.lists(st.sampled_from(SLIPS), min_size=1, max_size=5).map("".join),
    st.lists(st.sampled_from(SLIPS), max_size=3).map("".join),
)
@example('{"a":"', "")
@example('["a" ', "")
@example("{'a': [\"x\", ", "")
@example('\\"', "")
def test_the_work_of_mending_grows_as_the_text_does(piece: str, end: str) -> None:
    short, long = (work_of(partial(_tried, "{" + piece * count + end), [0]) for count in (40, 320))
    assert long <= 12 * short + 200, f"{short} steps for 40 times {piece!r}, and {long} for 320 times"


def _tried(text: str) -> None:
    with contextlib.suppress(ValueError):
        loads_lenient(text)


@pytest.mark.timeout(40)
@pytest.mark.parametrize(
    "piece", ['"', "\\", '\\"', "' ", " ", "“", '"x"y', "[1 ", '{"a":"', '["a" ', "a1.", "1e", "\\u12", "\\ud800"]
)
def test_the_expressions_of_mending_come_to_the_end_of_a_long_text(piece: str) -> None:
    """Their steps cannot be counted: one that grows with the square would take many minutes for these texts."""
    for opening in ("{", '{"', "{'", '{"a": "'):
        _tried(opening + piece * (400_000 // len(piece)))


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999", "nan", "inf"])
def test_only_what_json_calls_a_number_is_one(number: str) -> None:
    for text in (f'{{"a": {number}}}', f"{{'a': {number},}}", number):
        with pytest.raises(ValueError, match="not valid JSON"):
            loads_lenient(text)


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1} {"b": 2}',
        '{"a": 1}{"a": 2}',
        '{"a": 1}\n[2]',
        "{'a': 1}, {'b': 2}",
        '{"a": 1}, "b": 2}',
        '{"a": 1} or "b"',
        '{"a": [1}, "b": 2}',
    ],
)
def test_a_second_value_never_takes_the_place_of_the_first(text: str) -> None:
    with pytest.raises(ValueError, match=r"not valid JSON.*more than one value"):
        loads_lenient(text)


@pytest.mark.parametrize(
    "text",
    [
        '{"code": "print("hi")"}',
        '{"path": "notes/a',
        '{"a": 1, "b',
        '{"a": 1, "b":',
        '{"a": 1,',
        '{"a": tru',
        '{"a": Paris}',
        '{"a": 1 "b": 2}',
        '{"a": 01}',
        "{:1}",
        "{,}",
        "[,1]",
        "{1, 2}",
    ],
)
def test_nothing_is_guessed(text: str) -> None:
    with pytest.raises(ValueError, match="not valid JSON"):
        loads_lenient(text)
