"""Words, groups, encodings, lists and tables of RTF, each alone, at its limit and in its order."""

from __future__ import annotations

import pytest

from jackfield.errors import DocParserError
from jackfield.retrieval import Document
from jackfield_rtf.parser import RtfParser
from jackfield_rtf.plugin import parsers
from jackfield_rtf.tokens import Token, tokens_of

Blocks = list[tuple[str, str]]


def parse(text: str) -> Document:
    return RtfParser().parse(f"{{\\rtf1\\ansi {text}}}".encode("latin-1"), source="x.rtf")


def blocks(text: str) -> Blocks:
    return [(block.kind, block.text) for block in parse(text).blocks]


def word(name: str, number: int | None = None) -> Token:
    return Token("word", name, number)


def text(data: bytes) -> Token:
    return Token("text", data=data)


@pytest.mark.parametrize(
    ("data", "tokens"),
    [
        (rb"\b  a", [word("b"), text(b" a")]),
        (rb"\b1x", [word("b", 1), text(b"x")]),
        (rb"\li-20 x", [word("li", -20), text(b"x")]),
        (rb"\u1234567890\u12345678901", [word("u", 1234567890), word("u", 1234567890), text(b"1")]),
        (rb"\'4a\'4A\'zz", [text(b"J"), text(b"J"), Token("symbol", "'"), text(b"zz")]),
        (rb"\*\~\\", [Token("symbol", "*"), Token("symbol", "~"), Token("symbol", "\\")]),
        (b"\\\n\\\xe4", [Token("symbol", "\n"), Token("symbol", "\xe4")]),
        (b"{a\r\n\nb}", [Token("open"), text(b"a"), text(b"b"), Token("close")]),
        (rb"\bin2 {}a\bin b\bin0 c", [text(b"a"), text(b"b"), text(b"c")]),
        (b"a\\", [text(b"a")]),
        (b"\\" + b"a" * 32, [word("a" * 32)]),
        (b"\\" + b"a" * 33, [word("a" * 32), text(b"a")]),
    ],
)
def test_a_file_is_split_into_words_symbols_groups_and_text(data: bytes, tokens: list[Token]) -> None:
    assert list(tokens_of(data)) == tokens


@pytest.mark.parametrize(
    ("word", "shown"),
    [
        ("tab", "\t"), ("line", "\n"), ("lbr", "\n"), ("softline", "\n"), ("emdash", "—"), ("endash", "–"),
        ("bullet", "•"), ("lquote", "‘"), ("rquote", "’"), ("ldblquote", "“"), ("rdblquote", "”"), ("emspace", " "),
        ("enspace", " "), ("qmspace", " "), ("~", "\xa0"), ("_", "-"), ("{", "{"), ("}", "}"), ("\\", "\\"),
        ("-", ""), (":", ""), ("unknown", ""), ("b0", ""),
    ],
)  # fmt: skip
def test_a_word_or_symbol_stands_for_a_character(word: str, shown: str) -> None:
    assert blocks(f"a\\{word}{' ' if word[0].isalpha() else ''}b") == [("paragraph", f"a{shown}b")]


@pytest.mark.parametrize("word", ["par", "sect", "page", "column", "\r", "\n"])
def test_a_paragraph_ends(word: str) -> None:
    assert blocks(f"a\\{word} b") == [("paragraph", "a"), ("paragraph", "b")]


IGNORED = [
    "colortbl",
    "pict",
    "objdata",
    "objclass",
    "objname",
    "header",
    "headerl",
    "headerr",
    "headerf",
    "footer",
    "footerl",
    "footerr",
    "footerf",
    "listtable",
    "listoverridetable",
    "rsidtbl",
    "generator",
    "themedata",
    "colorschememapping",
    "datastore",
    "latentstyles",
    "xmlnstbl",
    "nonshppict",
    "sn",
    "sv",
    "revtbl",
    "filetbl",
    "bkmkstart",
    "bkmkend",
    "xe",
    "tc",
    "ftnsep",
    "ftnsepc",
    "aftnsep",
    "aftnsepc",
    "template",
    "pnseclvl",
    "listpicture",
    "atnid",
    "atnauthor",
    "atndate",
    "atnref",
    "atrfstart",
    "atrfend",
    "wgrffmtfilter",
    "nonesttables",
    "mmathPr",
]


@pytest.mark.parametrize("word", [*IGNORED, "*\\anything"])
def test_a_group_that_is_not_text_is_left_out_with_its_inner_groups(word: str) -> None:
    assert blocks(f"a{{\\{word} b{{\\i c}}\\par{{\\footnote d}}}}e") == [("paragraph", "ae")]


@pytest.mark.parametrize("group", [r"fonttbl{\f1 b;}", "info b", r"info{\operator b}", r"stylesheet{\s1 b\~\u228?;}"])
def test_a_group_of_facts_is_not_text(group: str) -> None:
    assert blocks(f"a{{\\{group}}}e") == [("paragraph", "ae")]


@pytest.mark.parametrize("word", ["pict", "header", "unknown"])
def test_only_the_first_word_of_a_group_decides_what_it_is(word: str) -> None:
    assert blocks(f"a{{b\\{word} c}}{{\\i\\{word} d}}") == [("paragraph", "abcd")]


@pytest.mark.parametrize("word", ["shpinst", "shptxt", "annotation"])
def test_a_group_that_old_programs_skip_may_have_text(word: str) -> None:
    assert "b" in "".join(shown for _, shown in blocks(f"a{{\\*\\{word} b}}"))


def test_groups_inside_of_one_that_old_programs_skip_are_read_too() -> None:
    data = rb"{\rtf1 a{\shp{\*\shpinst{\shptxt \pard {\b bold} and {\i{\fs20 small}}\par}}}}"
    shown = " ".join(block.text for block in RtfParser().parse(data, source="x.rtf").blocks)
    assert "bold and small" in shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        # \u is followed by what stands for it in old programs: bytes, symbols or another \u.
        (r"\u228?b", "äb"),
        (r"\u228 \'e4b", "äb"),
        (r"\u228\~b", "äb"),
        (r"\uc2\u228\~\~b", "äb"),
        (r"\u228\u246?b", "äöb"),
        (r"\uc2\u228??b", "äb"),
        (r"\uc2\u228?\'3fb", "äb"),
        (r"{\uc0\u228 a}\u228?b", "äaäb"),
        (r"\uc-1\u228?b", "ä?b"),
        (r"\uc16\u228" + " " + "?" * 16 + "b", "äb"),
        (r"\uc17\u228" + " " + "?" * 17 + "b", "ä?b"),
        (r"\u65600?b", "@b"),
        (r"\u-10179?b\u-8704?", "\ufffdb\ufffd"),
        (r"{\v\u228?x}b", "b"),
        (r"a\'00b", "ab"),
    ],
)
def test_characters_beyond_the_code_page(text: str, shown: str) -> None:
    assert blocks(text) == [("paragraph", shown)]


@pytest.mark.parametrize(
    ("charset", "codec", "shown"),
    [
        (77, "mac_roman", "ä"), (128, "shift_jis", "大"), (129, "cp949", "한"), (134, "gbk", "大"), (136, "big5", "大"),
        (161, "cp1253", "α"), (162, "cp1254", "ğ"), (163, "cp1258", "ơ"), (177, "cp1255", "א"), (178, "cp1256", "ب"),
        (186, "cp1257", "ž"), (204, "cp1251", "я"), (222, "cp874", "ก"), (238, "cp1250", "ř"),
    ],
)  # fmt: skip
def test_a_font_names_the_encoding_of_its_text(charset: int, codec: str, shown: str) -> None:
    raw = "".join(f"\\'{byte:02x}" for byte in shown.encode(codec))
    fonts = f"{{\\fonttbl{{\\f3\\fnil\\fcharset{charset} A;}}{{\\f4 B;}}}}"
    assert blocks(f"{fonts}{{\\f3 {raw}}}\\'e4\\f3 {raw}\\plain\\'e4\\f3 {raw}\\f4\\'e4") == [
        ("paragraph", f"{shown}ä{shown}ä{shown}ä")
    ]


@pytest.mark.parametrize(
    ("page", "codec", "shown"),
    [
        (932, "shift_jis", "大"), (936, "gbk", "大"), (949, "cp949", "한"), (950, "big5", "大"), (65001, "utf-8", "大"),
        (10000, "mac_roman", "ä"), (1251, "cp1251", "я"),
    ],
)  # fmt: skip
def test_the_file_or_a_font_names_a_code_page(page: int, codec: str, shown: str) -> None:
    raw = "".join(f"\\'{byte:02x}" for byte in shown.encode(codec))
    assert blocks(f"\\ansicpg{page} {raw}") == [("paragraph", shown)]
    assert blocks(f"\\ansicpg{page}\\ansicpg77777 {raw}") == [("paragraph", shown)]
    assert blocks(f"{{\\fonttbl{{\\f1\\cpg{page} A;}}}}\\f1 {raw}") == [("paragraph", shown)]
    assert blocks(f"{{\\fonttbl{{\\f1\\cpg{page}\\cpg77777 A;}}}}\\f1 {raw}") == [("paragraph", shown)]
    assert blocks(f"{{\\fonttbl{{\\f1\\fcharset238\\cpg{page} A;}}}}\\f1 {raw}") == [("paragraph", shown)]
    assert blocks(f"{{\\fonttbl{{\\f1 A;}}{{\\f0\\cpg{page} B;}}}}\\f0 {raw}\\f1\\'e4") == [("paragraph", f"{shown}ä")]


@pytest.mark.parametrize(
    ("style", "level"),
    [
        (r"{\s5 heading 9;}", 9),
        (r"{\s5 Heading 2;}", 2),
        (r"{\s5 TITLE;}", 1),
        (r"{\s5  heading 4 ;}", 4),
        (r"{\s5 heading 10;}", 0),
        (r"{\s5 heading 0;}", 0),
        (r"{\s5 subtitle;}", 0),
        (r"{\s5\outlinelevel0 A;}", 1),
        (r"{\s5\outlinelevel8 A;}", 9),
        (r"{\s5\outlinelevel9 A;}", 0),
        (r"{\s5\outlinelevel2 heading 1;}", 3),
        (r"{\s5 heading 1;}{\s5 heading 2;}", 1),
        (r"{\s5 he{\b x}heading 4;}", 4),
        (r"{\s6 heading 1;}", 0),
    ],
)
def test_a_style_has_the_level_of_its_name_or_the_stated_one(style: str, level: int) -> None:
    (block,) = parse(rf"{{\stylesheet{{\s0 Normal;}}{style}}}\pard\s5 A\par").blocks
    assert (block.text, block.level) == ("A", level)


@pytest.mark.parametrize(
    ("text", "levels"),
    [
        (r"\outlinelevel0 a\par b\par\pard c\par", [1, 1, 0]),
        (r"\outlinelevel a\par", [1]),
        (r"{\stylesheet{\s0 heading 3;}}\s a\par", [3]),
        (r"\outlinelevel8 a\par\outlinelevel9 b\par\outlinelevel-1 c\par", [9, 0, 0]),
        (r"{\stylesheet heading 1;}\s0 a\par", [0]),
        (r"{\stylesheet{\s1 heading 1;}}\s1 a\par\s2 b\par", [1, 0]),
    ],
)
def test_a_level_is_valid_until_the_next(text: str, levels: list[int]) -> None:
    assert [block.level for block in parse(text).blocks] == levels


def item(marker: str, text: str, indent: int = 0, group: str = "listtext") -> str:
    return rf"\pard{{\{group} {marker}\tab}}\ilvl{indent} {text}\par"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (item("1.", "a") + item("2)", "b") + item("(c)", "c") + item("viiiii.", "d"), "1. a\n2) b\n(c) c\nviiiii. d"),
        (item("1234567.", "a") + item("1", "b") + item("o", "c") + item("1.1.", "d"), "- a\n- b\n- c\n- d"),
        (item("", "a") + item("-", "b", group="pntext"), "- a\n- b"),
        (item("1.", "a", 1) + item("2.", "b", 8) + item("3.", "c", 9) + item("4.", "d", -1),
         f"  1. a\n{' ' * 16}2. b\n{' ' * 16}3. c\n4. d"),
        (item("1.", r"a\line b  c"), "1. a b c"),
        (item("1.", "") + item("2.", "b"), "2. b"),
        (r"\pard{\*\listtext 1.\tab}a\par", "1. a"),
    ],
)  # fmt: skip
def test_items_of_lists_have_their_markers_and_indents(text: str, expected: str) -> None:
    assert blocks(text) == [("list", expected)]


def test_a_marker_counts_for_its_own_paragraph_only() -> None:
    assert blocks(row("a", r"{\listtext 1.\tab}") + r"\pard b\par")[1:] == [("paragraph", "b")]
    assert blocks(item("1.", "a") + r" b\par" + item("1.", "") + r"\pard c\par") == [
        ("list", "1. a"), ("paragraph", "b"), ("paragraph", "c")
    ]  # fmt: skip


def row(*cells: str, definitions: str | None = None) -> str:
    cellx = "".join(f"\\cellx{number}" for number in range(1, len(cells) + 1)) if definitions is None else definitions
    return rf"\trowd{cellx}\pard\intbl " + "".join(f"{cell}\\cell " for cell in cells) + r"\row "


MERGED = r"\clvmrg\cellx1\cellx2"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (row("a", "b") + row("c", "d"), ["a | b", "c | d"]),
        (row("a", "b") + row("", "c", definitions=MERGED) + row("", "d", definitions=MERGED),
         ["a | b", "a | c", "a | d"]),
        (row("a", "b") + row("x", "c", definitions=MERGED), ["a | b", "x | c"]),
        (row("a", "b") + row("", "", definitions=MERGED), ["a | b", "a | "]),
        (row("a", "b") + row("c", "d") + row("", "e", definitions=MERGED), ["a | b", "c | d", "c | e"]),
        (row("a", "b") + row("", "c") + row("d", "e"), ["a | b", " | c", "d | e"]),
        (row("a", "b") + row("c", "", definitions=r"\cellx1\clvmrg\cellx2"), ["a | b", "c | b"]),
        (row("a", "b") + row("", "c", "", definitions=r"\clvmrg\cellx1\cellx2\clvmrg\cellx3"), ["a | b", "a | c"]),
        (row("", "b", definitions=MERGED) + row("c", "d"), [" | b", "c | d"]),
        (row(r"a\par  \par b", "c") + row("d", "e"), ["a<br>b | c", "d | e"]),
        (row(r"a\line b", "c"), ["a<br>b | c"]),
        (row(r"{\listtext 1.\tab}a\par{\listtext 2.\tab}b", "c"), ["1. a<br>2. b | c"]),
        (row(r"a{\intbl\itap2 b\nestcell c\nestcell{\*\nesttableprops\nestrow}{\nonesttables\par}}", "d"),
         ["ab<br>c | d"]),
        (row(r"a{\intbl\itap2 b\nestcell\nestrow c\nestcell\nestrow}", "d"), ["ab<br>c | d"]),
        (row("a", "b") + r"\pard\par " + row("c", "d"), ["a | b"]),
        (row("a{\\footnote n\\cell m\\row}", "b"), ["a[^1] | b"]),
        (row("a", "b") + r"\trowd\cellx1\pard\intbl c\par d", ["a | b", "c<br>d"]),
    ],
)  # fmt: skip
def test_cells_and_rows_of_tables(text: str, expected: list[str]) -> None:
    kind, shown = blocks(text)[0]
    head, _, *rest = shown.splitlines()
    assert kind == "table"
    assert [head.rstrip(), *rest] == [f"| {line} |".rstrip() for line in expected]


def test_a_list_a_table_and_a_paragraph_end_each_other() -> None:
    assert blocks("x\\par" + item("1.", "a") + row("b", "c") + item("2.", "d") + r"\pard e\par" + row("f")) == [
        ("paragraph", "x"), ("list", "1. a"), ("table", "| b | c |\n|---|---|"), ("list", "2. d"), ("paragraph", "e"),
        ("table", "| f |\n|---|"),
    ]  # fmt: skip


def field(target: str, shown: str) -> str:
    return rf'{{\field{{\*\fldinst HYPERLINK "{target}"}}{{\fldrslt {shown}}}}}'


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (field("https://e.org/", "b"), "[b](https://e.org/)"),
        (field("https://e.org/", " b "), "[b](https://e.org/)"),
        (field("https://e.org/", r"b\line c"), "b\nc"),
        (field("https://e.org/", r"{\b b}{\i c}"), "[bc](https://e.org/)"),
        (field("a" * 300, "b"), f"[b]({'a' * 300})"),
        (field("a" * 301, "b"), "b"),
        (field("x", "b") + field("y", "c"), "[b](x)[c](y)"),
        (field("x", "b") + r"{\field{\*\fldinst PAGE}{\fldrslt 7}}", "[b](x)7"),
        (field("x", field("y", "b")), "[b](y)"),
        (r'{\field{\fldinst{ HYPERLINK  \\l "mark" }}{\fldrslt b}}', "b"),
    ],
)
def test_links(text: str, shown: str) -> None:
    assert blocks(text) == [("paragraph", shown)]


def test_what_is_inside_a_note_leaves_the_paragraph_and_the_count_as_they_were() -> None:
    text = (
        r"\pard\outlinelevel1{\listtext 1.\tab} a{\footnote\pard\intbl\ilvl3\outlinelevel5 n\'e4\line m}\par"
        r"\pard\ilvl1{\listtext 1.\tab}b{\footnote \pard  }{\*\annotation c}{\*\annotation d}\par"
    )
    assert [(block.kind, block.level, block.text) for block in parse(text).blocks] == [
        ("heading", 2, "1. a[^1]"),
        ("list", 0, "  1. b[^c1][^c2]"),
        ("paragraph", 0, "[^1]: nä m"),
        ("paragraph", 0, "[^c1]: c"),
        ("paragraph", 0, "[^c2]: d"),
    ]


def test_a_note_that_was_cut_off_is_kept() -> None:
    for inner in (rb"{\i c", rb"c{\*\fldinst HYPERLINK", rb'{\field{\fldinst HYPERLINK "#d"}{\fldrslt c'):
        document = RtfParser().parse(rb"{\rtf1 a{\footnote b" + inner, source="x.rtf")
        assert [block.text for block in document.blocks] == ["a[^1]", "[^1]: bc"]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (r"a{\v b{\v0 c}d}e", "ace"),
        (r"a\v b\v0 c", "ac"),
        (r"a\deleted b\deleted0 c", "ac"),
        (r"a\htmlrtf b\htmlrtf0 c", "ac"),
        (r"a\v1 b\plain c", "ac"),
        (r"{\v a\par}b", "b"),
        (r"\revised a", "a"),
    ],
)
def test_hidden_and_deleted_text_is_left_out(text: str, shown: str) -> None:
    assert [block.text for block in parse(text).blocks] == [shown]


def test_the_facts_that_a_file_states() -> None:
    stated = (
        r"{\info{\title  A\'e4\u228?  B }{\title  }{\author Ann}{\subject s}{\keywords a, b}{\operator Bo}{\company C}}"
    )
    document = parse(stated + r"\outlinelevel1 x\par\outlinelevel0 first\par\outlinelevel0 second\par")
    assert document.title == "Aää B"
    assert document.metadata == {"author": "Ann", "subject": "s", "keywords": "a, b"}
    assert [block.text for block in document.blocks] == ["x", "first", "second"]
    assert parse(r"{\info{\title  }}\outlinelevel1 x\par\outlinelevel0 first\par\outlinelevel0 second").title == "first"
    assert (parse("{\\title a}").title, blocks("{\\title a}")) == ("", [("paragraph", "a")])


@pytest.mark.parametrize(("lead", "is_read"), [(59, True), (60, False)])
def test_a_file_may_begin_with_other_bytes_up_to_a_limit(lead: int, is_read: bool) -> None:
    data = b"\xef\xbb\xbf".ljust(lead) + rb"{\rtf1 a}"
    if is_read:
        assert RtfParser().parse(data, source="x.rtf").blocks[0].text == "a"
    else:
        with pytest.raises(DocParserError, match=r"^x\.rtf is not RTF"):
            RtfParser().parse(data, source="x.rtf")


def test_a_file_of_spaces_is_empty() -> None:
    with pytest.raises(DocParserError, match=r"^x\.rtf is empty"):
        RtfParser().parse(b" \n", source="x.rtf")


def test_merged_cells_repeat_as_much_as_the_length_of_the_file_allows() -> None:
    size = 2**18
    data = r"{\rtf1" + row("x" * size, "b") + row("", "c", definitions=MERGED) * 9 + "}"
    shown = RtfParser().parse(data.encode(), source="x.rtf").blocks[0].text
    # A mebibyte and the length of the file, which is a fourth of it and a little more.
    assert shown.count("x" * size) == 1 + 5


def test_files_are_recognised_by_each_of_these_extensions() -> None:
    assert {spec.name: " ".join(spec.extensions) for spec in parsers()} == {
        "rtf": "rtf",
    }


def test_files_are_recognised_by_each_of_these_media_types() -> None:
    assert {spec.name: list(spec.media_types) for spec in parsers()} == {
        "rtf": [
            "application/rtf",
            "text/rtf",
        ],
    }
