from __future__ import annotations

import json
import re
import tracemalloc

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jackfield.errors import ConfigError, DocParserError
from jackfield.retrieval import Document
from jackfield_text.json_values import JsonParser

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


def parse(text: str, **cfg: int) -> Document:
    return JsonParser(cfg).parse(text.encode(), source="a.json")


def lines(text: str) -> list[str]:
    return [line for block in parse(text).blocks for line in block.text.split("\n")]


def test_every_value_is_a_line_with_its_path() -> None:
    text = '{"users": [{"name": "Ada", "age": 36}, {"name": "李雷"}], "ok": true, "none": null, "a b": {"c.d": []}}'
    assert lines(text) == [
        "users[0].name: Ada",
        "users[0].age: 36",
        "users[1].name: 李雷",
        "ok: true",
        "none: null",
        '["a b"]["c.d"]: []',
    ]


def test_every_record_is_a_block() -> None:
    records = [{"id": number, "text": f"text {number}"} for number in range(3)]
    wanted = ["{}[{}].id: {}\n{}[{}].text: text {}".format(*("", n, n), *("", n, n)) for n in range(3)]
    assert [block.text for block in parse(json.dumps(records)).blocks] == wanted
    below_a_key = parse(json.dumps({"rows": records})).blocks
    assert [block.text for block in below_a_key] == [text.replace("[", "rows[") for text in wanted]


@pytest.mark.parametrize(
    "text",
    [
        '{"' + "k" * 40_000 + '": [' + "1," * 20_000 + "1]}",
        "[" * 900 + "1," * 40_000 + "1" + "]" * 900,
        '{"abcdefghij":' * 800 + "[" + "1," * 30_000 + "1]" + "}" * 800,
        "[" + '{"":1},' * 12_000 + "1]",
        "1\n" * 40_000,
    ],
    ids=["a long key", "deep", "deep with keys", "objects", "lines"],
)
def test_the_text_and_the_memory_are_a_few_times_the_file(text: str) -> None:
    tracemalloc.start()
    try:
        document = parse(text)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert sum(len(block.text) for block in document.blocks) <= 9 * len(text) + 300_000
    assert peak <= 120 * len(text), f"{peak / len(text):.0f} bytes for each of the file"


def test_json_lines_are_records_too() -> None:
    assert lines('{"a": 1}\n\n{"a": 2}\n') == ["[0].a: 1", "[1].a: 2"]


def test_numbers_stand_as_they_are_written() -> None:
    long = "1" * 6000
    assert lines(f'{{"a": 1.10, "b": {long}, "c": 1e5, "d": NaN}}') == ["a: 1.10", f"b: {long}", "c: 1e5", "d: NaN"]


def test_a_key_that_occurs_twice_is_there_twice() -> None:
    assert lines('{"a": 1, "a": 2}') == ["a: 1", "a: 2"]


def test_the_title_is_the_files_own() -> None:
    assert parse('{"title": "A dataset", "rows": []}').title == "A dataset"


def test_a_large_file_is_bounded_and_says_so() -> None:
    document = parse(json.dumps([{"id": number} for number in range(100)]), max_values=10)
    assert document.blocks[9].text == "[9].id: 9"
    assert document.blocks[-1].text == "(the rest of a.json after 10 values is omitted)"
    assert document.metadata["truncated"] is True
    with pytest.raises(DocParserError, match=r"a\.json is larger than .* MiB"):
        parse("[1, 2, 3]", max_bytes=5)


@pytest.mark.parametrize("text", ['{"a": ', "not json", '{"a": 1} trailing', "[1, 2\n[3, 4"])
def test_what_is_no_json_is_refused_with_the_place(text: str) -> None:
    with pytest.raises(DocParserError, match=r"a\.json is not valid JSON: .*line \d+"):
        parse(text)


@pytest.mark.parametrize(("beginning", "reason"), [("", "its JSON is nested too deeply"), ("1\n", "Extra data")])
def test_nesting_without_end_is_refused(beginning: str, reason: str) -> None:
    with pytest.raises(DocParserError, match=rf"^a\.json .*{reason}"):
        parse(beginning + "[" * 200_000)


def test_an_unknown_setting_is_refused() -> None:
    with pytest.raises(ConfigError, match="max_value"):
        JsonParser({"max_value": 3})


_LINE_END = re.compile(r"(?<!\\)((?:\\\\)*)\\[nr]")  # and not the end of a backslash followed by a letter


@given(values)
@example("\\n")
@example({"\n": 1, "n": 2})
def test_whatever_is_json_is_read_and_every_value_has_a_line(value: object) -> None:
    def leaves(inner: object) -> int:
        entries = inner.values() if isinstance(inner, dict) else inner if isinstance(inner, list) else None
        return sum(map(leaves, entries)) if entries else 1

    text = _LINE_END.sub(r"\1n", json.dumps(value))
    # A scalar alone may be white space, or a byte order mark, and nothing else.
    if any(character.isalnum() for character in text):
        assert sum(len(block.text.split("\n")) for block in parse(text).blocks) == leaves(value)
