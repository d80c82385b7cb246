"""The main text of a page is found whole, without menus and other surroundings."""

from __future__ import annotations

import pytest

from jackfield_markup import html_tree, main_blocks, metadata_of, title_of, xhtml_tree

TEXT = "<p>The text of the page, in one paragraph.</p>"
LINKS = "<a href=/a>one</a> <a href=/b>two</a>"


def read(body: str) -> str:
    return " ".join(block.text for block in main_blocks(html_tree(f"<body>{body}", source="x.html")))


def read_tree(page: str) -> str:
    return " ".join(block.text for block in main_blocks(html_tree(page, source="x.html")))


@pytest.mark.parametrize(
    "around",
    [
        "<nav>aside</nav>",
        "<footer>aside</footer>",
        "<header>aside</header>",
        "<aside>aside</aside>",
        "<div role=navigation>aside</div>",
        "<div role=complementary>aside</div>",
        "<form role=search>aside</form>",
        "<div class='site-footer'>aside</div>",
        "<div class='footer'>aside</div>",
        "<p class='breadcrumb'>aside</p>",
        "<p class='Breadcrumbs big'>aside</p>",
        "<a class='skip-link' href=/x>aside</a>",
        "<div class='cookie-banner'>aside</div>",
        "<div class='sidebar'><a href=/a>aside</a></div>",
        "<ul class='main-nav'><li><a href=/a>aside</a></ul>",
        "<ol class='toc'><li><a href=/a>aside</a></ol>",
        "<div class='pagination'><a href=/a>aside</a></div>",
        "<script>aside</script><style>aside</style><template>aside</template><noscript>aside</noscript>",
    ],
)
def test_what_is_around_the_text_is_left_out(around: str) -> None:
    assert "aside" not in read(f"{around}{TEXT}")
    assert "The text of the page" in read(f"{around}{TEXT}")


@pytest.mark.parametrize(
    "part",
    [
        "<header><h1>aside</h1></header>",
        "<header><h2>aside</h2></header>",
        "<article><aside>aside</aside></article>",
        "<section><aside>aside</aside></section>",
        "<div class='sidebar'>aside, which is text of many words, <a href=/a>one</a></div>",
        "<p class='toc'>aside</p>",
        "<article class='footer'>aside</article>",
        "<div class='navigate'><a href=/a>aside</a></div>",
        "<div class='footnote'>aside</div>",
        "<div role=main><p>aside</p></div>",
        "<div class='cookies'>aside</div>",
    ],
)
def test_what_only_looks_like_it_is_text(part: str) -> None:
    assert "aside" in read(f"{TEXT}{part}{TEXT}")


@pytest.mark.parametrize(("linked", "is_left_out"), [(10, True), (9, False)])
def test_half_of_a_menu_are_links(linked: int, is_left_out: bool) -> None:
    menu = f"<div class=menu><a href=/a>{'x' * linked}</a>{'y' * (20 - linked)}</div>"
    assert ("yy" not in read(f"{menu}{TEXT}")) is is_left_out


@pytest.mark.parametrize(
    ("main", "around", "is_main"),
    [("x" * 25, "y" * 75, True), ("x" * 24, "y" * 76, False)],
)
@pytest.mark.parametrize("tag", ["main", "div role=main", "section role=main", "article"])
def test_what_calls_itself_the_main_part_has_a_quarter_of_the_text(
    tag: str, main: str, around: str, is_main: bool
) -> None:
    page = f"<p>{around}</p><{tag}>{main}</{tag.split(maxsplit=1)[0]}>"
    assert ("y" not in read(page)) is is_main
    assert "x" in read(page)


def test_of_several_main_parts_none_is_the_main_one() -> None:
    assert read("<main>one</main><main>two</main><p>three") == "one two three"
    assert read("<article>one</article><article>two</article><p>three") == "one two three"
    assert read("<main>a</main><article>two words</article><article>three words</article>") == "a two words three words"
    assert read("<main>main text</main><article>article</article>") == "main text"


def test_in_a_marked_text_only_menus_are_left_out() -> None:
    page = f"<main><header>kept</header><aside>kept too</aside><nav>{LINKS}</nav>{TEXT}</main>"
    assert read(page) == "kept kept too The text of the page, in one paragraph."


def test_the_body_is_never_a_menu_whatever_its_class() -> None:
    assert "The text" in read(f"<div>{TEXT}</div>")
    tree = html_tree(f"<body class=sidebar role=navigation>{TEXT}", source="x.html")
    assert [block.text for block in main_blocks(tree)] == ["The text of the page, in one paragraph."]


@pytest.mark.parametrize("attributes", ["class=sidebar role=navigation", "class=footer", "role=complementary", ""])
def test_menus_are_left_out_of_a_body_or_a_main_part_whatever_these_are_called(attributes: str) -> None:
    assert read_tree(f"<body {attributes}><nav>{LINKS}</nav>{TEXT}") == TEXT[3:-4]
    assert read_tree(f"<body><p>around</p><main {attributes}>{TEXT}</main>after") == TEXT[3:-4]


def test_programs_in_a_page_are_no_text_of_it() -> None:
    assert read("<p>one <script>x</script>two<style>y</style> three") == "one two three"
    program = f"<script>{'x' * 1000}</script>"
    assert read(f"<p>around</p>{program}<main>{TEXT}</main>{program}") == TEXT[3:-4], "it counts for no share"


@pytest.mark.parametrize(
    ("meta", "name"),
    [
        ("name=author", "author"),
        ("property='article:author'", "author"),
        ("name=DESCRIPTION", "description"),
        ("property='og:description'", "description"),
        ("name=keywords", "keywords"),
        ("name=date", "published"),
        ("name='dcterms.date'", "published"),
        ("property='article:published_time'", "published"),
    ],
)
def test_each_statement_of_a_page_has_our_name(meta: str, name: str) -> None:
    assert metadata_of(html_tree(f"<head><meta {meta} content=' a  b '></head>{TEXT}", source="x.html")) == {
        name: "a b"
    }


def test_the_language_is_that_of_html_or_of_xml() -> None:
    page = b'<html xmlns="http://www.w3.org/1999/xhtml" xml:lang="de"><body><p>x</p></body></html>'
    assert metadata_of(xhtml_tree(page, source="x.xhtml")) == {"language": "de"}
    assert metadata_of(html_tree("<html lang=fr><p>x", source="x.html")) == {"language": "fr"}
    assert metadata_of(html_tree("<p>x", source="x.html")) == {}


def test_a_page_without_any_title_has_none() -> None:
    assert title_of(html_tree("<p>x", source="x.html")) == ""
    assert title_of(html_tree("<meta property='og:title' content=' A  b '><p>x", source="x.html")) == "A b"
