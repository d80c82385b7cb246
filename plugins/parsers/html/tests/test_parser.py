from __future__ import annotations

import pytest

from jackfield.errors import DocParserError
from jackfield_html.parser import HtmlConfig, HtmlParser

PAGE = (
    "<title> Tea \n time </title><meta name=author content='Ada Byron'><header><a href=/>Our shop</a></header>"
    "<nav>Home</nav>{body}<footer>© 2026</footer>"
)


def read(body: str, **settings: bool) -> list[tuple[str, str]]:
    document = HtmlParser(HtmlConfig(**settings)).parse(PAGE.format(body=body).encode(), source="tea.html")
    return [(block.kind, block.text) for block in document.blocks]


@pytest.mark.parametrize(
    "body",
    [
        "<main><h1>Tea</h1><p>The text.</main><aside>Buy!</aside>",
        "<div role=main><h1>Tea</h1><p>The text.</div><div>Buy!</div>",
        "<article><h1>Tea</h1><nav>Page 1 of 2</nav><p>The text.</article>",
        "<h1>Tea</h1><p>The text.</p><aside>Buy!</aside>",
        "<div class='site-nav left'><a href=/a>One</a> <a href=/b>Two</a></div><h1>Tea</h1><p>The text.",
        "<h1>Tea</h1><p>The text.<div class=cookie-banner>We count you.</div><div class='footer'>Imprint</div>",
    ],
)
def test_only_the_main_text_is_read(body: str) -> None:
    assert read(body) == [("heading", "Tea"), ("paragraph", "The text.")]


def test_a_main_part_that_holds_next_to_nothing_is_not_all_that_is_read() -> None:
    assert ("paragraph", "The long text that readers come for.") in read(
        "<main>Ad</main><p>The long text that readers come for."
    )


def test_a_menu_of_dishes_is_no_menu_of_links() -> None:
    assert ("paragraph", "Soup, bread and tea") in read("<h1>Today</h1><div class=menu><p>Soup, bread and tea</div>")


def test_the_header_stays_where_it_holds_the_heading() -> None:
    assert read("<article><header><h1>Tea</h1></header><p>Text.</article>")[0] == ("heading", "Tea")


def test_a_page_of_menus_is_read_whole_as_nothing_else_is_there() -> None:
    document = HtmlParser().parse(b"<nav><a href=/tea>Tea</a></nav>", source="tea.html")
    assert [block.text for block in document.blocks] == ["[Tea](/tea)"]


def test_the_whole_page_is_read_if_that_is_asked_for() -> None:
    texts = [text for _, text in read("<main><p>Text.</main>", whole_page=True)]
    assert texts == ["[Our shop](/)", "Home", "Text.", "© 2026"]


def test_title_and_metadata_are_kept() -> None:
    document = HtmlParser().parse(PAGE.format(body="<p>Text.").encode(), source="tea.html")
    assert document.title == "Tea time"
    assert document.metadata == {"encoding": "utf-8", "author": "Ada Byron"}


def test_the_title_is_not_a_part_of_the_text() -> None:
    document = HtmlParser().parse(b"<html><head><title>My T</title></head><body><p>Hello</p>", source="x.html")
    assert (document.title, [block.text for block in document.blocks]) == ("My T", ["Hello"])


def test_without_a_title_the_first_heading_is_one() -> None:
    assert HtmlParser().parse(b"<h2>Sorts</h2><h1>Tea</h1><p>Text.", source="tea.html").title == "Tea"


def test_headings_have_the_level_that_they_have_in_the_page() -> None:
    document = HtmlParser().parse(b"<h1>a</h1><h3>b</h3><div role=heading aria-level=4>c</div>d", source="x.html")
    assert [(block.text, block.level) for block in document.blocks] == [("a", 1), ("b", 3), ("c", 4), ("d", 0)]


@pytest.mark.parametrize("whole_page", [False, True])
def test_a_page_that_a_script_fills_is_refused_by_name(whole_page: bool) -> None:
    with pytest.raises(DocParserError, match=r"^tea\.html contains no text; a script may generate the page's content"):
        HtmlParser(HtmlConfig(whole_page=whole_page)).parse(b"<title>T</title><script>x()</script>", source="tea.html")


@pytest.mark.parametrize(("magic", "reason"), [(b"%PDF-1.7\n", "is a PDF file"), (b"\x89PNG", "contains binary data")])
def test_a_file_that_is_not_html_is_refused_by_name(magic: bytes, reason: str) -> None:
    with pytest.raises(DocParserError, match=rf"report\.html {reason}"):
        HtmlParser().parse(magic + bytes(range(256)) * 20, source="report.html")
