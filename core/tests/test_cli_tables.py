"""Tables that commands print: aligned, wrapped in the last column, and as rows in JSON."""

from __future__ import annotations

import io
import json

import pytest

from jackfield.cli import print_table, terminal_columns
from jackfield.cli._plugins import print_rows
from jackfield.cli._tables import layout_table
from jackfield.plugins import PluginHost
from tests.support.command_line import Tty


def test_a_table_is_aligned_and_has_no_spaces_at_the_ends(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("name", "text"), [("a", ""), ("long\x1bname", "b")])
    assert capsys.readouterr().out == "name          text\na\nlong\\x1bname  b\n"
    print_table(("name", "text"), [])
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("place", [(row, column) for row in range(3) for column in range(3)])
def test_control_characters_are_escaped_in_every_cell(
    place: tuple[int, int], capsys: pytest.CaptureFixture[str]
) -> None:
    table = [["a", "b", "c"] for _ in range(3)]
    table[place[0]][place[1]] = "\x1b[31m"
    print_table(table[0], table[1:])
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    assert r"\x1b[31m" in shown


TABLE = [("name", "text"), ("abcdefgh", "one two three four five six")]  # 10 columns are left of the text


@pytest.mark.parametrize(
    ("columns", "lines"),
    [
        (0, ["name      text", "abcdefgh  one two three four five six"]),
        (37, ["name      text", "abcdefgh  one two three four five six"]),
        (36, ["name      text", "abcdefgh  one two three four five", "          six"]),
        (30, ["name      text", "abcdefgh  one two three four", "          five six"]),
        (29, ["name  text", "abcdefgh", "  one two three four five six"]),
    ],
)
def test_the_last_column_is_wrapped_while_it_has_20_columns(columns: int, lines: list[str]) -> None:
    assert layout_table(TABLE, columns) == lines


def test_a_table_that_fits_is_not_wrapped_however_narrow_its_last_column_is() -> None:
    table = [("name", "text"), ("abcdefgh", "one"), ("b", "")]
    assert layout_table(table, 14) == ["name      text", "abcdefgh  one", "b"]
    assert layout_table([*table, ("中", "")], 14) == ["name      text", "abcdefgh  one", "b", "中"]


def test_rows_in_json_have_the_problems_beside_them(capsys: pytest.CaptureFixture[str]) -> None:
    host = PluginHost(paths=[])
    print_rows(host, [], None, as_json=True)
    assert json.loads(capsys.readouterr().out) == {"plugins": [], "problems": []}
    print_rows(host, [], "llm", as_json=False)
    expected = "No plugins of kind 'llm' are installed. To find some, run: jackfield plugins search llm\n"
    assert capsys.readouterr().out == expected
    print_rows(host, [], None, as_json=False)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "No plugins are installed. To find some, run: jackfield plugins search"
    assert lines[1].startswith("To use a model, install a backend first: pip install ")


def test_only_a_terminal_has_a_width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "77")
    assert (terminal_columns(Tty()), terminal_columns(io.StringIO())) == (77, 0)
