"""What a page says of itself, and what it is called."""

from __future__ import annotations

import pytest

from jackfield.retrieval import Block
from jackfield_markup import html_tree, metadata_of, title_of
from jackfield_markup.trees import Element


def page(head: str, body: str = "text", attributes: str = "") -> Element:
    return html_tree(f"<html {attributes}><head>{head}</head><body>{body}</body></html>", source="x.html")


@pytest.mark.parametrize("name", ["date", "dcterms.date", "article:published_time"])
def test_the_date_of_a_page_has_several_names(name: str) -> None:
    assert metadata_of(page(f"<meta name='{name}' content='2024-01-02'>")) == {"published": "2024-01-02"}


def test_of_two_statements_the_first_holds() -> None:
    root = page(
        "<meta name=author content='Ada  L.'><meta property='article:author' content='Bob'>"
        "<meta name=Description content='short'><meta property='og:description' content='long'>"
        "<meta name=date content=''><meta property='article:published_time' content='2024-01-02'>"
        "<meta name=DCTERMS.date content='2025-01-02'><meta name=generator content='acme'>",
        attributes="lang=fr",
    )
    assert metadata_of(root) == {
        "language": "fr",
        "author": "Ada L.",
        "description": "short",
        "published": "2024-01-02",
    }


@pytest.mark.parametrize(
    ("head", "title"),
    [
        ("<title> A\n page </title><meta property='og:title' content='B'>", "A page"),
        ("<title></title><meta property='og:title' content='B'>", "B"),
        ("", "Main"),
    ],
)
def test_a_title_comes_before_what_a_page_calls_itself_and_that_before_its_first_heading(head: str, title: str) -> None:
    headings = [Block("Small", kind="heading", level=2), Block("Main", kind="heading", level=1), Block("C")]
    assert title_of(page(head), headings) == title
    assert title_of(page("", "<svg><title>A picture</title></svg>")) == ""
