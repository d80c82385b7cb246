from __future__ import annotations

import pytest

from jackfield.retrieval import Document
from jackfield_text.man import ManParser

Blocks = list[tuple[str, str]]


def parse(text: str) -> Document:
    return ManParser().parse(f".TH TEA 1\n.SH A\n{text}".encode(), source="tea.1")


def blocks(text: str) -> Blocks:
    return [(block.kind, block.text) for block in parse(text).blocks[1:]]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a\nb\n.PP\nc\n\nd", [("paragraph", "a b"), ("paragraph", "c"), ("paragraph", "d")]),
        ('.SS "B c"\nd', [("heading", "B c"), ("paragraph", "d")]),
        (".SS\nB\nd", [("heading", "B"), ("paragraph", "d")]),
        (".B a b\n.BR c (1),\n.I d", [("paragraph", "a b c(1), d")]),
        (r"\fBa\fR\|\-b \(em \[u00E4] \*(lqc\*(rq \e \s-1d\s0\&.\" gone", [("paragraph", "a-b — ä “c” \\ d.")]),
        (r".\" a comment" + "\nb", [("paragraph", "b")]),
        (".TP\n.B \\-a\nb\n.TP\n\\-c\nd", [("list", "- -a: b\n- -c: d")]),
        (".IP \\(bu 2\na\n.IP 1. 3\nb", [("paragraph", "a"), ("list", "- 1.: b")]),
        (".nf\na  b\n\n c\n.fi\nd", [("code", "a  b\n\n c"), ("paragraph", "d")]),
        (".TS\ntab(|);\nl l.\na|b\n_\n1|2\n.TE", [("table", "| a | b |\n|---|---|\n| 1 | 2 |")]),
        (".de X\n.B gone\n..\na", [("paragraph", "a")]),
        (".  am X\n.    B gone\n.  .\na\\\nb", [("paragraph", "a b")]),
        (".if n b\n.if t c", [("paragraph", "b")]),
        ("a\\\nb\\\\\nc", [("paragraph", "a b\\ c")]),
    ],
)
def test_macros_of_man_are_read(text: str, expected: Blocks) -> None:
    assert blocks(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (".Nm tea\n.Nd brew it", "tea — brew it"),
        (".Nm tea\n.Op Fl h\n.Op Fl t Ar time , Ar unit\n.Ar file ...", "tea [-h] [-t time, unit] file ..."),
        (".Xr ls 1 and\n.Pq Pa /etc", "ls(1) and (/etc)"),
        (".Fl D Oo Ar a Ns : Oc Ns Ar b", "-D [a:]b"),
    ],
)
def test_macros_of_mdoc_are_read(text: str, expected: str) -> None:
    assert blocks(text) == [("paragraph", expected)]


def test_items_of_mdoc_are_a_list() -> None:
    assert blocks(".Bl -tag\n.It Fl a Ar b\nc\n.It Fl d\ne\n.El\nf") == [
        ("list", "- -a b: c\n- -d: e"),
        ("paragraph", "f"),
    ]


def test_the_title_is_the_name_and_the_section() -> None:
    assert parse("a").title == "TEA(1)"


def test_text_before_the_first_section_is_left_out() -> None:
    document = ManParser().parse(b"noise\n.TH A 1\nnoise\n.SH B\nc", source="a.1")
    assert [block.text for block in document.blocks] == ["B", "c"]
