"""Markdown while it grows: nothing flickers, nothing is lost, nobody else steers the terminal."""

from __future__ import annotations

import io
import itertools
import re
import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield.cli import width_of
from jackfield_terminal.markdown import MarkdownWriter

ORDERS = re.compile(r"\x1b\[(\d*)A\r|\x1b\[(J)|\x1b\[[\d;]*m")
RAW = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")
TEXT = """# Title

Hello **bold** and `code`, [a link](http://acme.example/a?b=c), <b>a tag</b>.

[1]: http://acme.example/definition

- one
- two
  - deep 中文字符测试

1. first
2. second

```python
def f(x):
    return x + 1
```

| a | b |
|---|---|
| 1 | 中文 |

> quote

![a picture](http://acme.example/x.png)

你好，世界。
"""


class Screen:
    """What a terminal of some size shows of our orders; what has left its top is kept apart, and can never change."""

    def __init__(self, rows: int = 24) -> None:
        self.rows = rows
        self.lines = [""]
        self.top = 0  # the first line that is on the screen

    def write(self, text: str) -> None:
        at = 0
        for found in ORDERS.finditer(text):
            self._print(text[at : found.start()])
            at = found.end()
            if found[1]:
                row = len(self.lines) - 1 - int(found[1])
                assert row >= self.top, "it wants to change what has left the screen"
                del self.lines[row + 1 :]
                self.lines[row] = ""
        self._print(text[at:])

    def _print(self, text: str) -> None:
        assert "\x1b" not in text, text
        for char in text:
            if char == "\n":
                self.lines.append("")
                self.top = max(self.top, len(self.lines) - self.rows)
            else:
                self.lines[-1] += char


def shown(pieces: list[str], *, columns: int = 60, rows: int = 24) -> list[str]:
    """The lines that are there in the end."""
    screen = Screen(rows)
    out = io.StringIO()
    writer = MarkdownWriter(out, size=lambda: (columns, rows), every_s=0)
    for piece in pieces:
        writer.feed(piece)
        screen.write(out.getvalue())
        out.seek(0)
        out.truncate()
    writer.finish()
    screen.write(out.getvalue())
    return [line.rstrip() for line in screen.lines]


def test_it_is_rendered() -> None:
    lines = shown([TEXT])
    assert lines[0] == "Title"
    assert "Hello bold and code, a link (http://acme.example/a?b=c)," in lines
    assert " • one" in lines
    assert " def f(x):" in lines
    assert ["1", "中文"] in map(str.split, lines)
    assert not any("**" in line or "```" in line for line in lines)
    assert not any(first == second == "" for first, second in itertools.pairwise(lines))


@pytest.mark.parametrize(
    "part", ["<b>a tag</b>", "[1]: http://acme.example/definition", "a picture", "http://acme.example/x.png"]
)
def test_nothing_that_was_written_is_left_out(part: str) -> None:
    assert part in "\n".join(shown([TEXT]))


@given(st.lists(st.integers(0, len(TEXT)), max_size=40), st.integers(20, 90), st.integers(3, 30))
def test_how_it_is_cut_does_not_matter(cuts: list[int], columns: int, rows: int) -> None:
    places = [0, *sorted(cuts), len(TEXT)]
    pieces = [TEXT[start:end] for start, end in itertools.pairwise(places)]
    assert shown(pieces, columns=columns, rows=rows) == shown([TEXT], columns=columns, rows=rows)


def test_what_is_longer_than_the_screen_is_there_as_a_whole_in_the_end() -> None:
    code = [f"line {number}" for number in range(100)]
    lines = shown(["```\n", *(f"{line}\n" for line in code), "```\n", "\nend"], rows=10)
    assert [line.strip() for line in lines if line] == [*code, "end"]


def test_only_the_lines_that_are_different_are_drawn_again() -> None:
    out = io.StringIO()
    writer = MarkdownWriter(out, size=lambda: (80, 24), every_s=0)
    writer.feed("- first\n- second\n- thi")
    before = len(out.getvalue())
    writer.feed("rd")
    assert "third" in out.getvalue()[before:]
    assert "second" not in out.getvalue()[before:]


@pytest.mark.parametrize("colour", [True, False])
def test_without_colours_there_are_tables_and_bold_text_and_no_colour(colour: bool) -> None:
    out = io.StringIO()
    writer = MarkdownWriter(out, size=lambda: (80, 24), every_s=0, colour=colour)
    writer.feed(TEXT)
    writer.finish()
    styles = {number for found in re.findall(r"\x1b\[([\d;]+)m", out.getvalue()) for number in found.split(";")}
    colours = {number for number in styles if number[0] in "349" and len(number) > 1}
    assert bool(colours) == colour, styles
    assert "1" in styles, "bold is no colour"
    assert "─" in out.getvalue(), "a table is no colour"


MIXED = """# 标题 with several English words in it

使用pip安装jackfield-terminal，然后运行jackfield run来提问：中文不会在英文单词里断行，
**加粗jackfield文字**也一样 and so on.

- 列表里的jackfield一词 and others, for example extraordinarily

| name 名称 | meaning 含义 |
|---|---|
| terminal | the commands 终端里的命令，也不会断开单词extraordinary |
"""


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_no_line_ends_inside_a_word(columns: int) -> None:
    lines = shown([MIXED], columns=columns)
    assert max(width_of(line) for line in lines) <= columns
    words = re.findall(r"[a-z][a-z-]*", MIXED)
    shown_words = {word for line in lines for word in re.findall(r"[a-z][a-z-]*", line)}
    assert [word for word in words if word not in shown_words] == []


HOSTILE = "a\x1b]0;owned\x07\x1b[2J\x9b31m\x7f\x85\r\u202eevil\u2066\u200b\u2060\ufeff\u2028\U000e0041\x00b"
FORMS = [
    "{}", "# {}", "- {}", "`{}`", "```{}\n{}\n```", "[{}](http://{})", "![{}]({})", "| {} |\n|---|\n| {} |", "> {}",
    "<{}>", "**{}**", "    {}", "&#x1b;[31m &#x202e; &#27; &#x9b; &NewLine; &ZeroWidthSpace; {}",
]  # fmt: skip


def printed(pieces: list[str]) -> str:
    out = io.StringIO()
    writer = MarkdownWriter(out, size=lambda: (40, 24), every_s=0)
    for piece in pieces:
        writer.feed(piece)
    writer.finish()
    return ORDERS.sub("", out.getvalue())


@pytest.mark.parametrize("form", FORMS)
def test_no_order_of_others_reaches_the_terminal(form: str) -> None:
    text = form.replace("{}", HOSTILE)
    for pieces in ([text], list(text)):
        said = printed(pieces)
        raw = RAW.search(said.replace("\n", ""))
        assert raw is None, said[max(0, raw.start() - 40) : raw.end() + 40]
        assert "x1b" in said, "what is hostile was not printed at all"


@given(st.lists(st.text(st.sampled_from(HOSTILE + "ab é👩\u200d\ufe0f#*`[](|)-&;<>\n ") | st.characters()), max_size=6))
def test_no_text_has_an_order_in_it(pieces: list[str]) -> None:
    said = printed(pieces)
    assert not RAW.search(said.replace("\n", ""))
    assert not [char for char in said if unicodedata.category(char) in ("Cc", "Cs") and char not in "\n\t"]


def test_a_piece_is_on_the_terminal_at_once() -> None:
    written = io.BytesIO()
    writer = MarkdownWriter(io.TextIOWrapper(written, "utf-8"), size=lambda: (80, 24), every_s=0)
    writer.feed("so far")
    assert b"so far" in written.getvalue()
    writer.finish()


def test_a_pause_shows_what_has_come_so_far() -> None:
    out = io.StringIO()
    writer = MarkdownWriter(out, size=lambda: (80, 24), every_s=0.01)
    for piece in ("so", " far", " and", " no", " further"):
        writer.feed(piece)
    ends = time.monotonic() + 20
    while "so far and no further" not in out.getvalue():
        assert time.monotonic() < ends, out.getvalue()
        time.sleep(0.01)
    writer.finish()
    writer.feed("another answer")
    writer.finish()
    screen = Screen()
    screen.write(out.getvalue())
    assert screen.lines == ["so far and no further", "another answer", ""]
