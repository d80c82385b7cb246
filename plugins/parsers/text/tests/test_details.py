"""Plain text, Markdown, JSON, notebooks and manual pages: each branch alone, at its limit and in its order."""

from __future__ import annotations

import json
from typing import Any

import pytest

from jackfield.errors import DocParserError
from jackfield.retrieval import Document
from jackfield_text.json_values import JsonParser
from jackfield_text.man import ManParser
from jackfield_text.markdown import MarkdownParser
from jackfield_text.notebook import NotebookParser
from jackfield_text.plain import TextParser

# --- plain text -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected", "title"),
    [
        ("\n\n  a  \n  b  \n", ["  a  \n  b"], "a"),
        ("a\n \t \n\n\nb\n\u3000\nc", ["a", "b", "c"], "a"),
        ("t" * 120 + "\nx", ["t" * 120 + "\nx"], "t" * 120),
        ("t" * 121, ["t" * 121], ""),
    ],
)
def test_paragraphs_of_plain_text(text: str, expected: list[str], title: str) -> None:
    document = TextParser().parse(text.encode(), source="x.txt")
    assert [block.text for block in document.blocks] == expected
    assert (document.title, document.metadata) == (title, {"encoding": "utf-8"})


def test_pages_are_counted_where_empty_ones_lie_between() -> None:
    document = TextParser().parse("\fa\n\f\n\n\f\n  b\n\nc\f".encode("utf-16"), source="x.txt")
    assert [(block.text, block.page) for block in document.blocks] == [("a", 2), ("  b", 4), ("c", 4)]
    assert document.metadata == {"encoding": "utf-16"}


# --- Markdown ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("###### a\n####### b", [("heading6", "a"), ("paragraph", "####### b")]),
        ("  ##  a  ##  \nb", [("heading2", "a"), ("paragraph", "b")]),
        ("# a##", [("heading1", "a##")]),
        ("#\n\n# #\n\na", [("paragraph", "a")]),
        ("a\nb\n---\nc", [("heading2", "a b"), ("paragraph", "c")]),
        ("a\n\n---\n\n***\nb", [("paragraph", "a"), ("paragraph", "b")]),
        ("    x = 1\n\n      y\n", [("code", "    x = 1\n\n      y")]),
        ("~~~\n\n  x\n\n~~~\n", [("code", "  x")]),
        ("```\n\n```\na", [("paragraph", "a")]),
        ("> # a\n\n- # b", [("paragraph", "> # a"), ("list", "- # b")]),
        ("* a\n* b\n\n1) c", [("list", "* a\n* b"), ("list", "1) c")]),
        ("a | b\n--|--\n1 | 2\n\nc", [("table", "a | b\n--|--\n1 | 2"), ("paragraph", "c")]),
        ("<div>\n# a\n</div>\n\n# b", [("paragraph", "<div>\n# a\n</div>"), ("heading1", "b")]),
        ("[a]: b\n[c]: d\n\ne\n\n[f]: g",
         [("paragraph", "[a]: b\n[c]: d"), ("paragraph", "e"), ("paragraph", "[f]: g")]),
        ("---\n\na: 1\n\n---  \n# b", [("code", "a: 1"), ("heading1", "b")]),
        ("---\na: 1\n...\nb", [("code", "a: 1"), ("paragraph", "b")]),
        ("---\na: 1\n---", [("code", "a: 1")]),
        ("--- x\na: 1\n---\n", [("heading2", "--- x a: 1")]),
        ("\n---\na: 1\n---\nb", [("heading2", "a: 1"), ("paragraph", "b")]),
        ("---\na: 1\n----\nb", [("heading2", "a: 1"), ("paragraph", "b")]),
    ],
)  # fmt: skip
def test_blocks_of_markdown(text: str, expected: list[tuple[str, str]]) -> None:
    document = MarkdownParser().parse(text.encode(), source="x.md")
    assert [(f"{block.kind}{block.level or ''}", block.text) for block in document.blocks] == expected


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("### c\n## b\n## d", "b"),
        ("---\ntitle: a b  \n---\n# x", "a b"),
        ('---\nother: 1\ntitle:   "a: b"\ntitle: c\n---\n', "a: b"),
        ("---\ntitle: \"a'\n---\n# x", "\"a'"),
        ("---\ntitle: abba\n...\n# x", "abba"),
        ('---\ntitle: ""\n---\n# x', '""'),
        ("---\ntitle:\n---\n# x", "x"),
        ("---\nsubtitle: a\n  title: b\n---\n# x", "x"),
        ("# x\n\n---\ntitle: a\n---\n", "x"),
    ],
)
def test_the_title_of_markdown(text: str, title: str) -> None:
    assert MarkdownParser().parse(text.encode(), source="x.md").title == title


def test_the_limit_for_markdown_is_eight_mebibytes() -> None:
    head = b"# a\n\n```\n"
    for size, kind in ((2**23, "heading"), (2**23 + 1, "paragraph")):
        assert MarkdownParser().parse(head.ljust(size, b"x"), source="x.md").blocks[0].kind == kind


# --- JSON -------------------------------------------------------------------------------------------------------------


def read_json(text: str, **settings: int) -> Document:
    return JsonParser(settings).parse(text.encode(), source="x.json")


@pytest.mark.parametrize(
    ("text", "blocks"),
    [
        ("1", ["1"]),
        ('"a\nb"', ["a\nb"]),
        ("[[]]", ["[0]: []"]),
        ("[{}, [], null, false]", ["[0]: {}", "[1]: []", "[2]: null", "[3]: false"]),
        ("[[1, 2], [3]]", ["[0][0]: 1\n[0][1]: 2", "[1][0]: 3"]),
        ('{"a": 1, "b": {"c": [2, 3]}}', ["a: 1", "b.c[0]: 2\nb.c[1]: 3"]),
        ('{"n": 0, "a": [1, {"b": 2}, [3, 4]], "c": 3}',
         ["n: 0", "a[0]: 1", "a[1].b: 2", "a[2][0]: 3\na[2][1]: 4", "c: 3"]),
        ('{"a": [1, 2], "b": [[], []]}', ["a[0]: 1\na[1]: 2", "b[0]: []", "b[1]: []"]),
        ('{"a": {"b": [{"c": 1}, {"c": 2}]}}', ["a.b[0].c: 1\na.b[1].c: 2"]),
        ('{"_a": 1, "a-b": 2, "1a": 3, "": 4, "ä1": 5, "a.b": 6, "a\\nb": 7}',
         ["_a: 1", "a-b: 2", '["1a"]: 3', '[""]: 4', "ä1: 5", '["a.b"]: 6', '["a\\nb"]: 7']),
        ('{"ä b": 1}', ['["ä b"]: 1']),
        ('{"a": 1}\n{"b": 2}', ["[0].a: 1", "[1].b: 2"]),
        ("1\n2", ["[0]: 1", "[1]: 2"]),
        ('{"a": "x", "a": {"b": -0, "c": 1E+2, "d": Infinity}}', ["a: x", "a.b: -0\na.c: 1E+2\na.d: Infinity"]),
    ],
)  # fmt: skip
def test_values_have_paths_and_records_are_blocks(text: str, blocks: list[str]) -> None:
    assert [block.text for block in read_json(text).blocks] == blocks


@pytest.mark.parametrize(("length", "shown"), [(200, "k" * 200), (201, "…" + "k" * 197 + '"]')])
def test_a_long_path_is_shown_by_its_end(length: int, shown: str) -> None:
    assert read_json(json.dumps({"k" * length: 1})).blocks[0].text == f"{shown}: 1"
    assert read_json(json.dumps({"a" * 150: {"b" * 150: 1}})).blocks[0].text == f"…{'a' * 48}.{'b' * 150}: 1"
    deep: Any = 1
    for _ in range(70):
        deep = [deep]
    assert read_json(json.dumps({"a": deep})).blocks[0].text == f"…{('a' + '[0]' * 70)[-199:]}: 1"


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ('{"name": "a", "title": "b"}', "a"), ('{"title": null, "name": "b"}', "b"), ('{"x": {"title": "a"}}', ""),
        ('[{"title": "a"}]', ""), ('"title"', ""),
    ],
)  # fmt: skip
def test_the_title_of_json(text: str, title: str) -> None:
    assert read_json(text).title == title


def test_limits_count_values_bytes_and_characters() -> None:
    for count, is_cut in ((3, False), (2, True)):
        document = read_json("[1, 2, 3]", max_values=count)
        assert document.metadata["truncated"] == is_cut
        assert len(document.blocks) == 3
        assert document.blocks[-1].text == ("(the rest of x.json after 2 values is omitted)" if is_cut else "[2]: 3")
    assert read_json("[1, 2, 3]", max_bytes=9).blocks
    with pytest.raises(
        DocParserError, match=r"^x\.json is larger than 7.62939e-06 MiB: split it, or increase the parser's max_bytes"
    ):
        read_json("[1, 2, 3]", max_bytes=8)
    # Each value has a path of 200 characters, and 256 KiB and eight times the file may be written.
    text = json.dumps({"k" * 200: [1] * 5000})
    document = read_json(text)
    written = sum(len(block.text) for block in document.blocks[:-1])
    assert document.metadata["truncated"]
    assert f" after {document.blocks[0].text.count(': ')} values " in document.blocks[-1].text
    assert 0 <= written - len(document.blocks) - (256 * 1024 + 8 * len(text)) <= 5000


@pytest.mark.parametrize(
    ("text", "reason"),
    [("[1\n2]", "is not valid JSON: .* line 2"), ("a\nb", "is not valid JSON"), ('{"a": 1', "is not valid JSON")],
)
def test_what_is_not_json_is_refused(text: str, reason: str) -> None:
    with pytest.raises(DocParserError, match=f"^x.json {reason}"):
        read_json(text)


# --- notebooks --------------------------------------------------------------------------------------------------------


def read_notebook(**fields: object) -> Document:
    return NotebookParser().parse(json.dumps(fields).encode(), source="x.ipynb")


def cells(*entries: object) -> list[tuple[str, str]]:
    document = read_notebook(cells=list(entries))
    assert document.metadata["unread"] == []
    return [(f"{block.kind}{block.level or ''}", block.text) for block in document.blocks]


def code(*outputs: dict[str, object]) -> dict[str, object]:
    return {"cell_type": "code", "source": "x", "outputs": list(outputs)}


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ({"data": {"text/latex": "l", "text/plain": "p", "text/markdown": "m"}}, [("code", "Output:\nm")]),
        ({"data": {"text/latex": "l", "text/plain": "p"}}, [("code", "Output:\np")]),
        ({"data": {"text/html": "h", "text/latex": "l"}}, [("code", "Output:\nl")]),
        ({"data": {"image/png": "a", "x" * 81: "b", "text/plain": " "}},
         [("paragraph", f"(Non-text output: image/png, {'x' * 80})")]),
        ({"output_type": "error", "ename": "E"}, [("code", "Output:\nE: ")]),
        ({"output_type": "error", "evalue": "v"}, [("code", "Output:\nError: v")]),
        ({"output_type": "pyerr", "ename": "E", "evalue": "v"}, [("code", "Output:\nE: v")]),
        ({"output_type": "stream", "name": "stdout", "text": ["\n a\n", "b \n"]}, [("code", "Output:\n a\nb")]),
        ({"output_type": "display_data", "png": "a", "metadata": {}},
         [("paragraph", "(Non-text output: png)")]),
        ({"output_type": "pyout", "prompt_number": "1", "text": ["a"], "metadata": {}}, [("code", "Output:\na")]),
        ({"data": {"text/plain": "\x1b[1;31ma\x1b[0m\x1b[?25lb"}}, [("code", "Output:\nab")]),
        ({"output_type": "stream", "name": "stdout", "text": ""}, []),
        ({"output_type": "execute_result", "execution_count": 1, "transient": {}, "stream": "x", "data": {}}, []),
    ],
)  # fmt: skip
def test_outputs_of_cells(output: dict[str, object], expected: list[tuple[str, str]]) -> None:
    written = cells(code(output, {"output_type": "stream", "text": "end"}))
    assert [(kind, text.rstrip()) for kind, text in written] == [
        ("code", "x"), *((kind, text.rstrip()) for kind, text in expected), ("code", "Output:\nend")
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ({"cell_type": "code", "source": ["\n  a\n", "b  \n"]}, [("code", "  a\nb")]),
        ({"cell_type": "code", "input": "a", "source": "b"}, [("code", "a")]),
        ({"cell_type": "raw", "source": " a\n"}, [("paragraph", "a")]),
        ({"cell_type": "html", "source": "<b>"}, [("paragraph", "<b>")]),
        ({"cell_type": "heading", "level": 3, "source": "a\n b"}, [("heading3", "a b")]),
        ({"cell_type": "heading", "level": 7, "source": "a"}, [("heading1", "a")]),
        ({"cell_type": "heading", "source": "a"}, [("heading1", "a")]),
        ({"cell_type": "heading", "level": [2], "source": "a"}, [("heading1", "a")]),
        ({"cell_type": "heading", "level": 6, "source": " "}, []),
        ({"cell_type": "code"}, []),
        ({"cell_type": "raw", "source": " "}, []),
    ],
)
def test_cells_of_both_versions(cell: dict[str, object], expected: list[tuple[str, str]]) -> None:
    assert cells(cell, {"cell_type": "raw", "source": "end"}) == [*expected, ("paragraph", "end")]


def test_control_characters_in_a_notebook_and_an_output_of_housekeeping_only_are_no_fault() -> None:
    document = NotebookParser().parse(b'{"cells": [{"cell_type": "raw", "source": "a\tb"}]}', source="x.ipynb")
    assert [block.text for block in document.blocks] == ["a\tb"]
    assert cells(code({"output_type": "display_data", "metadata": {}, "transient": {}})) == [("code", "x")]


def test_the_cells_of_version_3_are_in_sheets() -> None:
    sheets = [{"cells": [{"cell_type": "raw", "source": "a"}]}, 1, {}, {"cells": [{"cell_type": "raw", "source": "b"}]}]
    document = read_notebook(worksheets=sheets)
    assert [(block.text, block.page) for block in document.blocks] == [("a", 1), ("b", 4)]
    assert document.metadata == {"encoding": "utf-8", "cells": 4, "language": "", "unread": ["cell 2", "cell 3"]}
    assert read_notebook(worksheets=[], cells=[{"cell_type": "raw", "source": "c"}]).blocks[0].text == "c"


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({}, "is not a Jupyter notebook: it contains no list of cells"),
        ({"cells": {}}, "is not a Jupyter notebook: it contains no list of cells"),
        ({"worksheets": {}}, "is not a Jupyter notebook: it contains no list of cells"),
        ({"cells": []}, "is empty: none of its cells contains text"),
        ({"cells": [1]}, "is corrupted: none of its cells can be read"),
    ],
)
def test_what_is_not_a_notebook_is_refused(fields: dict[str, object], reason: str) -> None:
    with pytest.raises(DocParserError, match=rf"^x\.ipynb {reason}"):
        read_notebook(**fields)
    with pytest.raises(DocParserError, match=r"^x\.ipynb cannot be read: its JSON is nested too deeply"):
        NotebookParser().parse(b"[" * 100_000, source="x.ipynb")


@pytest.mark.parametrize(
    ("stated", "title", "language"),
    [
        ({"title": "T", "kernelspec": {"language": "R"}}, "T", "R"),
        ({"title": "", "language_info": {"name": "julia"}, "kernelspec": {"language": "R"}}, "second", "julia"),
        ({"title": [], "language_info": {"name": None}, "kernelspec": {"language": "R"}}, "second", "R"),
        ({"language_info": 1}, "second", ""),
        (None, "second", ""),
    ],
)
def test_the_title_and_the_language_of_a_notebook(stated: object, title: str, language: str) -> None:
    entry = {"cell_type": "markdown", "source": "### first\n\n## second\n\n## third"}
    document = read_notebook(cells=[entry], metadata=stated)
    assert (document.title, document.metadata["language"]) == (title, language)


# --- manual pages -----------------------------------------------------------------------------------------------------


def man(text: str) -> list[tuple[str, str]]:
    document = ManParser().parse(f".TH A 1\n.SH B\n{text}".encode(), source="x.1")
    return [(f"{block.kind}{block.level or ''}", block.text) for block in document.blocks[1:]]


def words(text: str) -> str:
    ((kind, shown),) = man(text)
    assert kind == "paragraph"
    return shown


@pytest.mark.parametrize(
    ("escape", "shown"),
    [
        *{
            "em": "—", "en": "–", "hy": "-", "bu": "•", "co": "©", "rg": "®", "aq": "'", "dq": '"', "lq": "“",
            "rq": "”", "oq": "‘", "cq": "’", "ha": "^", "ti": "~", "rs": "\\", "mi": "−", "->": "→", "<-": "←",
            "ga": "`", "at": "@", "sh": "#", "Do": "$", "ba": "|", "ul": "_", "ss": "ß", "Eu": "€", "de": "°",
            "mu": "×", "+-": "±", "<=": "≤", ">=": "≥", "Tm": "™", ":a": "ä", ":o": "ö", ":u": "ü", "'e": "é",
            "`e": "è",
        }.items(),
        ("zz", ""),
    ],
)  # fmt: skip
def test_characters_of_a_manual_page_have_names(escape: str, shown: str) -> None:
    assert words(rf"a\({escape}b\[{escape}]c") == f"a{shown}b{shown}c"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (r"a\-b\ec\\d\ e\~f\0g\th\'i\`j\.k\&l\|m\:n\/o", "a-b\\c\\d e\xa0f g\th´i`j.klmno"),
        (r"\fBa\fP\f[CW]b\f(CWc\fR\mrd\m[blue]e\gxf", "abcdef"),
        (r"a\s+2b\s0c\s-12d\s[+1]e\s1f", "abcdef"),
        (r"a\h'2n'b\v'1'c\w'x'd\l'1'e\o'ab'f", "abcdef"),
        (r"a\[u00E4]b\[u1F600]c\[u00e4]d\[uZZZZ]e", "aäb😀cde"),
        (r"\*(Tm\*R\*[lq]x", "™®“x"),
        (r"a\n(xyb\n+zc\k1d", "abcd"),
        (r"a\" gone", "a"),
        (r"a\# gone", "a"),
    ],
)
def test_escapes_of_a_manual_page(text: str, shown: str) -> None:
    assert words(text).split() == shown.split()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        *[(f"a\n.{name}\nb", [("paragraph", "a"), ("paragraph", "b")])
          for name in ("PP", "P", "LP", "Pp", "HP", "sp", "br", "RS", "RE")],
        *[(f".{begin}\n  a\n\n.B b\n.{end}\nc", [("code", "  a\n\nb"), ("paragraph", "c")])
          for begin, end in (("nf", "fi"), ("EX", "EE"), ("Bd", "Ed"), ("Vb", "Ve"))],
        *[(f".{name}\na\nb", [("heading2", "a"), ("paragraph", "b")]) for name in ("SS", "Ss")],
        *[(f".{name} a b\nc", [("heading1", "a b"), ("paragraph", "c")]) for name in ("SH", "Sh")],
        *[(f"a\n.{name} b\n.B gone\n..\nc", [("paragraph", "a c")]) for name in ("de", "de1", "am", "ig")],
        *[(f'.{name} a "b  c" d', [("paragraph", "ab  cd")]) for name in ("BR", "RB", "BI", "IB", "RI", "IR")],
        *[(f'.{name} a "b c" d', [("paragraph", "a b c d")]) for name in ("B", "I", "SM", "SB")],
        *[(f".{name} https://e.org/ x", [("paragraph", "https://e.org/ x")]) for name in ("UR", "MT")],
        ("'B a\n.  B b\n.unknown c\n.", [("paragraph", "a b")]),
        (".if n a\n.ie n b\n.if t c\n.if n \\{d\n.if !n e", [("paragraph", "a b")]),
        (".if n .ie n 'if  n .  if n a\n.if n .if t b\n.if n .if n \\{c\n.if n  .B d", [("paragraph", "a d")]),
        (".if n " * 3000 + "a", [("paragraph", "a")]),
        (".IP a\nb\n.PP\nc", [("list", "- a: b"), ("paragraph", "c")]),
        (".IP o\na\n.IP * 2\nb\n.IP\nc", [("paragraph", "a"), ("paragraph", "b"), ("paragraph", "c")]),
        (".TP\n.B a\nb\n.sp\nc\n.TP\nd\n.SS e", [("list", "- a: b\n  c\n- d"), ("heading2", "e")]),
        (".TQ\na\nb\n.PP\nc", [("list", "- a: b"), ("paragraph", "c")]),
        (".TP\na\n.nf\nb\n.fi", [("list", "- a"), ("code", "b")]),
        ("a\n.TS\nl l.\na\tb\n=\nT{\nc\nT}\n.TE\nd", None),
        (".TS\nbox tab(|);\nl|l.\n_\na|b\n.TE", [("table", "| a | b |\n|---|---|")]),
        (".TS\nl.\na", [("table", "| a |\n|---|")]),
        (".nf\n a  ", [("code", " a")]),
        (".nf\n\n.fi\na", [("paragraph", "a")]),
        ('.B a \\" gone\nb\\\n c', [("paragraph", "a b c")]),
        ('.B "a ""b""" c', [("paragraph", 'a "b" c')]),
        (".B a\\ b", [("paragraph", "a b")]),
        (".B a\\\\", [("paragraph", "a\\")]),
        (".nf\n  a\\-b\n.B \"  c\"\nd", [("code", "  a-b\n  c\nd")]),
        (".nf\na\n.SH b\nc", [("code", "a"), ("heading1", "b"), ("paragraph", "c")]),
        (".TP\na  b\nc", [("list", "- a b: c")]),
        (".TS\nl l. \na\tT{\nb\n c.\nT}\n=\nT{\nd\nT}\te\n.TE", [("table", "| a | b c. |\n|---|---|\n| d | e |")]),
        (".TS\nl l.\na\tT{\nb", [("table", "| a | b |\n|---|---|")]),
    ],
)  # fmt: skip
def test_macros_of_a_manual_page(text: str, expected: list[tuple[str, str]] | None) -> None:
    if expected is None:
        kinds = [kind for kind, _ in man(text)]
        assert kinds == ["paragraph", "table", "paragraph"]
    else:
        assert [(kind, " ".join(shown.split(" "))) for kind, shown in man(text)] == expected


PLAIN = "Ar Pa Ev Cm Li Sy Em Va Vt Ic Dv Er Fn Fa Ft Tn Ad Lk Mt An In No Cd Ms St Bx Ux Nx Ox Fx".split()  # noqa: SIM905


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        *[(f".{name} a b", "a b") for name in PLAIN],
        (".Op a", "[a]"), (".Bq a", "[a]"), (".Pq a", "(a)"), (".Aq a", "<a>"), (".Brq a", "{a}"), (".Dq a", "“a”"),
        (".Qq a", '"a"'), (".Sq a", "‘a’"), (".Ql a", "‘a’"), (".Op Pq a b", "[(a b)]"),
        (".Oo a Oc b", "[a] b"), (".Bo a Bc", "[a]"), (".Po a Pc", "(a)"), (".Ao a Ac", "<a>"), (".Bro a Brc", "{a}"),
        (".Do a Dc", "“a”"), (".Qo a Qc", '"a"'), (".So a Sc", "‘a’"), (".Xo a Xc b", "a b"),
        (".Fl a b", "-a b"), (".Fl", "-"), (".Fl a Fl b", "-a -b"), (".Ar a , b .", "a, b."), (".Ar a Ns b", "ab"),
        (".Nm a\n.Nm\n.Nm , b", "a a a, b"), (".Nm a\n.Nm b\n.Nm", "a b a"), (".Nd a b", "— a b"),
        (".Xr a 1 , b", "a(1), b"), (".Xr a 1", "a(1)"), (".Xr a", "Xr a"), (".Oo Fl Oc a", "[-] a"),
        (".Pa a Pa b", "a b"),
    ],
)  # fmt: skip
def test_words_of_mdoc(text: str, shown: str) -> None:
    assert words(text) == shown


@pytest.mark.parametrize(
    ("text", "title"),
    [(".TH A 1 x\n.SH b\nc", "A(1)"), (".TH A\n.SH b\nc", "A"), (".Dd x\n.Dt A 1\n.Sh b\nc", "A(1)"),
     (".TH\n.SH b\nc", ""),
     ('.TH "A B" 3p\n.SH b\nc', "A B(3p)")],
)  # fmt: skip
def test_the_title_of_a_manual_page(text: str, title: str) -> None:
    document = ManParser().parse(text.encode(), source="x.1")
    assert (document.title, document.metadata) == (title, {"encoding": "utf-8"})
    assert [(block.text, block.level) for block in document.blocks] == [("b", 1), ("c", 0)]


@pytest.mark.parametrize("text", ["a.SH b\nc", ".SHX\na", "a\n.SH\n", ".B a"])
def test_a_file_without_a_section_is_plain_text(text: str) -> None:
    assert (
        ManParser().parse(text.encode(), source="x.1").blocks == TextParser().parse(text.encode(), source="x.1").blocks
    )
