from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from jackfield.retrieval import Block
from jackfield_markup import blocks_of, html_tree, main_blocks
from jackfield_markup.blocks import _spans, _texts


def blocks(page: str) -> list[Block]:
    return list(blocks_of(html_tree(f"<body>{page}", source="x.html")))


def read(page: str) -> list[tuple[str, str]]:
    return [(block.kind, block.text) for block in blocks(page)]


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("<p>a\n  b&nbsp;c<br>d", "a b c\nd"),
        ("soft&shy;ly", "softly"),
        ("soft&shy;ly<br>har&shy;der", "softly\nharder"),
        ("<p>one <a href='/x (1)'> two </a>three", "one [two](/x%281%29) three"),
        ("<p><a href='https://e.org/?a=1&amp;b=2'>two</a>", "[two](https://e.org/?a=1&b=2)"),
        ("<p><a href='#part'>two</a> <a href='javascript:go()'>three</a> <a>four</a>", "two three four"),
        (f"<p><a href='data:{'x' * 999}'>two</a>", "two"),
        ("<p><a href='HTTPS://e.org/'>two</a> <a href='JavaScript:go()'>three</a>", "[two](HTTPS://e.org/) three"),
        ("<p><a href=/x>one<br>two</a>", "one\ntwo"),
        (f"<p><a href='/{'x' * 300}'>two</a> <a href='/{'x' * 299}'>three</a>", f"two [three](/{'x' * 299})"),
        ("<p>Use <code>a | b</code> and <kbd>Tab</kbd>.", "Use `a | b` and `Tab`."),
        ("<p><samp>a</samp> or <tt>b</tt>", "`a` or `b`"),
        ("<p><code>a`b</code>", "a`b"),
        ("<p><a href=/x><code>run</code></a>", "[`run`](/x)"),
        ("<p>A <img src=x.png alt='blue cup'> here", "A blue cup here"),
        ("<p>A<script>b</script><style>c</style><template>d</template><!-- e -->f", "Af"),
        ("<p>A <span style='color:red; display : none'>b</span><span hidden>c</span><i aria-hidden=true>d</i>e", "A e"),
        ("<p>A <i aria-hidden=false>b</i><b style='DISPLAY:NONE'>c</b><img title=d>", "A b"),
        ("<p>x<sup>2</sup>", "x2"),
        ("<menu><li>a<li>b</menu>", "- a\n- b"),
        ("<dt>a</dt><dd>b</dd><dt>c</dt>", "- a\n  b\n- c"),
        ("<dl><dt>tea</dt><dd>a plant</dd><dd>a drink</dd></dl>", "- tea\n  a plant\n  a drink"),
        ("<ol start=9><li>i<li value=20>j<li>k</ol>", "9. i\n20. j\n21. k"),
        ("<ul><li>a<ul><li>b<ol><li>c</ol></ul><li>d</ul>", "- a\n  - b\n    1. c\n- d"),
        ("<ul><li><p>a</p><p>b</p></ul>", "- a\n  b"),
        ("<ul><li>a<ul hidden><li>b</ul><li>c</ul>", "- a\n- c"),
        ("<ul><li>a<dl style='display:none'><dt>b</dl> c<li hidden>d<li>e</ul>", "- a c\n- e"),
        ("<pre>\n  a\n\n    b <b>c</b><br>d\n</pre>", "  a\n\n    b c\nd"),
        ("<pre>a<b>b<br><i>c<br></i></b>d</pre>", "ab\nc\nd"),
    ],
)  # fmt: skip
def test_what_a_page_holds_is_read_as_it_is_shown(page: str, expected: str) -> None:
    assert [block.text for block in blocks(page)] == [expected]


def test_blocks_stand_in_the_order_of_the_page() -> None:
    page = (
        "a<h2>b</h2>c<ul><li>d</ul>e<pre>f</pre><table><tr><th>g<th>h<tr><td>i<td>j</table>k<blockquote>l</blockquote>m"
    )
    assert [(kind, text[0]) for kind, text in read(page)] == [
        ("paragraph", "a"), ("heading", "b"), ("paragraph", "c"), ("list", "-"), ("paragraph", "e"), ("code", "f"),
        ("table", "|"), ("paragraph", "k"), ("paragraph", "l"), ("paragraph", "m"),
    ]  # fmt: skip


def test_headings_are_plain_text() -> None:
    page = "<h2>Run <code>it</code> <a href=/x>now</a><a class=headerlink href='#run'>¶</a></h2><h3> </h3>"
    assert blocks(page) == [Block("Run it now", kind="heading", level=2)]


@pytest.mark.parametrize(
    ("heading", "shown"),
    [
        ("C#", "C#"),
        ("C# <a href='#c'>#</a>", "C#"),
        ("<a href='#c'>#</a> C", "C"),
        ("C <a href=/x>now</a> <a href='#c'> ¶ </a>", "C now"),
        ("C¶", "C"),
        ("C <code>#</code>", "C #"),
    ],
)
def test_a_heading_loses_the_link_to_its_own_place_and_no_sign_of_its_own(heading: str, shown: str) -> None:
    assert blocks(f"<h2>{heading}</h2><p><a href=/x>d</a>") == [
        Block(shown, kind="heading", level=2), Block("[d](/x)")
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("page", "texts"),
    [
        ("<h2><div>a</div>b</h2>c", ["a", "b"]),
        ("<div role=heading aria-level=2><section>a</section></div>c", ["a"]),
        ("<h2>a<div hidden>b</div>d</h2>c", ["ad"]),
    ],
)
def test_all_lines_of_a_heading_are_headings_and_nothing_after_it(page: str, texts: list[str]) -> None:
    assert blocks(page) == [*(Block(text, kind="heading", level=2) for text in texts), Block("c")]


@pytest.mark.parametrize("page", ["<a href=/x><p>one</p>two</a>", "<a href=/x>one<h9><p>two</p></a>"])
def test_a_link_around_whole_paragraphs_is_no_link_of_one(page: str) -> None:
    assert read(page) == [("paragraph", "one"), ("paragraph", "two")]


def test_the_text_after_an_element_is_not_a_part_of_it() -> None:
    page = html_tree("<body><div>one</div>two<table><tr><td><b>c</b> d</table>", source="x.html")
    assert [block.text for block in blocks_of(next(page.iter("div")))] == ["one"]
    assert [block.text for block in blocks_of(next(page.iter("b")))] == ["c"]


def test_code_in_a_list_is_code_and_the_list_goes_on() -> None:
    assert read("<ol><li>a<pre>x = 1</pre>b<li>c</ol>d") == [
        ("list", "1. a"), ("code", "x = 1"), ("list", "  b\n2. c"), ("paragraph", "d"),
    ]  # fmt: skip


def test_an_item_without_a_list_is_one_and_ends() -> None:
    assert read("<li>a</li><li>b</li><p>c") == [("list", "- a\n- b"), ("paragraph", "c")]


def test_a_table_of_data_is_a_github_table() -> None:
    page = (
        "<table><caption>Sorts</caption><thead><tr><th>sort<th colspan=2>how</thead>"
        "<tr><td rowspan=2>green<td>a|b<td><p>2<p>3<tr><td><a href=/x>c</a><td><b>d</b> e</table>"
    )
    assert read(page) == [
        ("paragraph", "Sorts"),
        ("table", "| sort | how |  |\n|---|---|---|\n| green | a\\|b | 2<br>3 |\n| green | [c](/x) | d e |"),
    ]


@pytest.mark.parametrize("height", [1, 2, 3, 4])
def test_a_cell_is_repeated_in_the_rows_that_it_spans_and_no_others(height: int) -> None:
    rows = "".join(f"<tr><td>b{number}<td>c{number}" for number in range(4 - height))
    spanned = "".join(f"<tr><td>s{number}" for number in range(1, height))
    ((_, table),) = read(f"<table><tr><th>h<th>i<tr><td rowspan={height}>a<td>s0{spanned}{rows}</table>")
    lines = [f"| a | s{number} |" for number in range(height)]
    lines += [f"| b{number} | c{number} |" for number in range(4 - height)]
    assert table.splitlines()[2:] == lines


@pytest.mark.parametrize("column", [0, 1, 2])
def test_a_cell_that_spans_rows_is_repeated_in_its_own_column(column: int) -> None:
    first, second = ["a", "b"], ["c", "d"]
    first.insert(column, "x")
    row = "".join(f"<td{' rowspan=2' if cell == 'x' else ''}>{cell}" for cell in first)
    ((_, table),) = read(f"<table><tr><th>1<th>2<th>3<tr>{row}<tr><td>{'<td>'.join(second)}</table>")
    second.insert(column, "x")
    assert table.splitlines()[2:] == [f"| {' | '.join(first)} |", f"| {' | '.join(second)} |"]


@pytest.mark.parametrize("number", ["", "x", "-1", "0", "1.5", "9999999999", "\u00b2"])
def test_a_number_of_an_attribute_that_is_none_counts_as_missing(number: str) -> None:
    page = (
        f"<div role=heading aria-level='{number}'>a</div><table><tr><th>b<th>c<tr><td colspan='{number}'>d<td>e</table>"
    )
    blocks_read = blocks(page)
    assert [(block.text, block.level) for block in blocks_read] == [("a", 2), ("| b | c |\n|---|---|\n| d | e |", 0)]


UNSEEN = (
    "title script style template noscript svg canvas iframe object embed applet audio video map select datalist button "
    "input textarea dialog noembed noframes"
)
APART = (
    "address article aside blockquote center details div fieldset figcaption figure footer form header hgroup legend "
    "main nav optgroup option p search section summary"
)


@pytest.mark.parametrize(("sign", "shown"), [("¶", "C"), ("#", "C"), ("##", "C [##](/x)"), ("§", "C [§](/x)")])
def test_a_link_to_its_own_place_is_left_out(sign: str, shown: str) -> None:
    assert read(f"<p>C <a href=/x>{sign}</a>") == [("paragraph", shown)]


@pytest.mark.parametrize(("start", "number"), [("99999", 99999), ("100000", 1), ("007", 7), ("0", 1), ("-3", 1)])
def test_a_list_begins_with_a_small_number_or_with_one(start: str, number: int) -> None:
    assert read(f"<ol start={start}><li>a<li>b</ol>") == [("list", f"{number}. a\n{number + 1}. b")]


@pytest.mark.parametrize(("depth", "indent"), [(1, 0), (20, 38), (21, 38), (40, 38)])
def test_a_list_is_indented_by_at_most_nineteen_levels(depth: int, indent: int) -> None:
    ((kind, text),) = read("<ul><li>" * depth + "deep")
    assert (kind, text.splitlines()[-1]) == ("list", " " * indent + "- deep")


@pytest.mark.parametrize("tag", UNSEEN.split())
def test_what_a_browser_does_not_show_as_text_is_left_out(tag: str) -> None:
    page = etree.fromstring(f"<body><p>one</p><p>two <{tag}>unseen</{tag}>three</p></body>")
    assert [block.text for block in blocks_of(page)] == ["one", "two three"]


@pytest.mark.parametrize("tag", APART.split())
def test_what_a_browser_shows_apart_is_a_block(tag: str) -> None:
    page = etree.fromstring(f"<body>one<{tag}>two</{tag}>three</body>")
    assert [block.text for block in blocks_of(page)] == ["one", "two", "three"]


@pytest.mark.parametrize("tag", ["b", "em", "span", "label", "sub", "mark", "unknown"])
def test_all_other_elements_are_text_in_a_line(tag: str) -> None:
    page = etree.fromstring(f"<body>one <{tag}>two</{tag}> three</body>")
    assert [block.text for block in blocks_of(page)] == ["one two three"]


@pytest.mark.parametrize(
    ("attributes", "spare", "spans"),
    [
        ("", 0, (1, 1)),
        ("colspan=5 rowspan=2", 5, (5, 2)),
        ("colspan=5 rowspan=2", 4, (1, 1)),
        ("colspan=1001 rowspan=1001", 1000, (1000, 1000)),
        ("colspan=1000", 999, (1, 1)),
    ],
)
def test_a_cell_spans_as_many_columns_as_are_left(attributes: str, spare: int, spans: tuple[int, int]) -> None:
    (cell,) = html_tree(f"<table><tr><td {attributes}>a</table>", source="x.html").iter("td")
    assert _spans(cell, spare) == spans


@pytest.mark.parametrize(
    "row",
    [
        "<tr><th>a<td>b",
        "<tr><td>a<td>b<tr><td>c<td>d",
        "<tr><td>a<tr><td>b<td>c",
        f"<tr><td>a<td>{'long ' * 500}<tr><td>b<td>c",
    ],
)
def test_a_table_of_data_has_a_heading_cell_or_several_rows(row: str) -> None:
    assert [kind for kind, _ in read(f"<table>{row}</table>")] == ["table"]


@pytest.mark.parametrize("spans", ["colspan=1000", "rowspan=1000", "colspan=40 rowspan=40"])
def test_spans_add_at_most_as_many_cells_as_a_small_table_has(spans: str) -> None:
    page = html_tree(f"<table>{f'<tr><td {spans}>a<td>b' * 300}</table>", source="x.html")
    rows = [[*row.iter("td")] for row in page.iter("tr")]
    assert sum(map(len, _texts(rows))) <= 600 + 2 * (1000 + 4 * 600)


@pytest.mark.parametrize("attribute", ["colspan", "rowspan"])
def test_a_page_of_many_spans_is_no_table_of_millions_of_cells(attribute: str) -> None:
    rows = f"<tr><td {attribute}=1000>a<td>b" * 300
    (block,) = blocks(f"<table><tr><th>x<th>y{rows}</table>")
    assert block.text.count("|") < 20 * (1000 + 4 * 602)
    assert block.text.count(" b |") == 300


def test_behind_too_many_spans_no_cell_is_repeated() -> None:
    tall = "<tr><td rowspan=1000>a<td>b" + "<tr><td rowspan=1000 colspan=1000>c" * 3
    (block,) = blocks(f"<table><tr><th>x<th>y{tall}{'<tr><td>d<td>e' * 5}</table>")
    assert block.text.splitlines()[-1].replace("|", " ").split() == ["d", "e"]


@pytest.mark.parametrize(
    "page",
    [
        "<table><tr><td>a<td>b</table>",
        "<table><tr><td>a<tr><td>b</table>",
        "<table role=presentation><tr><td>a<td>x<tr><td>b<td>y</table>",
        "<table role=none><tr><td>a<td>x<tr><td>b<td>y</table>",
        "<table><tr><td>a<td><form>x</form><tr><td>b<td>y</table>",
        "<table><tr><td>a<td><h2>x</h2><tr><td>b<td>y</table>",
        "<table><tr><td>a<td><table><tr><td>x</table><tr><td>b<td>y</table>",
        f"<table><tr><td>a<td><p>{'long ' * 500}</p><tr><td>b<td>y</table>",
    ],
)
def test_a_table_that_lays_out_a_page_is_read_as_text(page: str) -> None:
    kinds = [kind for kind, _ in read(page)]
    assert "table" not in kinds
    assert ("paragraph", "a") in read(page)
    assert len(kinds) >= 2


def test_a_page_without_main_text_is_read_whole() -> None:
    assert [block.text for block in main_blocks(html_tree("<footer>only this", source="x.html"))] == ["only this"]


TAGS = ["p", "div", "ul", "ol", "li", "table", "tr", "td", "a", "code", "pre", "h1", "nav", "dd", "th", "b"]
PIECES = st.sampled_from([f"<{tag}>" for tag in TAGS] + [f"</{tag}>" for tag in TAGS] + ["<br>", "<hr>", " "])


@given(st.lists(st.one_of(PIECES, st.integers(100, 999).map(str)), max_size=40))
def test_blocks_are_whole_however_broken_the_page_is(pieces: list[str]) -> None:
    page = html_tree("<body>" + "".join(pieces), source="x.html")
    shown = {text for text in pieces if text.isdigit() and text in "".join(page.itertext())}
    made = list(blocks_of(page))
    assert all(block.text.strip() and (block.level > 0) == (block.kind == "heading") for block in made)
    read = "".join("".join(block.text.split()) for block in made)
    assert [number for number in shown if number not in read] == []


@given(st.lists(st.integers(100, 999), unique=True, max_size=12), st.data())
def test_every_text_is_read_once_and_in_order(numbers: list[int], data: st.DataObject) -> None:
    tags = [
        data.draw(st.sampled_from(["p", "h2", "div", "li", "pre", "blockquote", "span", "td", "a"])) for _ in numbers
    ]
    page = "".join(f"<{tag}>w{number}w </{tag}>" for tag, number in zip(tags, numbers, strict=True))
    text = "\n".join(block.text for block in blocks(page))
    assert [int(part) for part in text.split("w") if part.isdigit()] == numbers
