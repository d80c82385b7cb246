"""Extract a page's main text, title and metadata."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain

from lxml import etree

from jackfield.retrieval import Block
from jackfield_markup.blocks import blocks_of
from jackfield_markup.trees import Element

_ENOUGH = 0.25  # of a page's text; an element marked as the main part with less is not the main part
_MOST_LINKED = 0.5  # of a part's text; a part with more is a menu
_NOT_TEXT = ("script", "style", "template", "noscript")
_ROLES = frozenset(("navigation", "banner", "contentinfo", "search", "menu", "menubar", "complementary"))
_MENUS = re.compile(r"(?:^|[-_])(?:nav|navbar|navigation|menu|menubar|sidebar|side-bar|toc|pagination|pager)(?:$|[-_])")
_AROUND = re.compile(
    r"^(?:(?:site|page|main|global)[-_]?)?footer$|^breadcrumbs?$|^skip-?(?:link|nav)"
    r"|^cookie[-_]?(?:banner|consent|notice)"
)
_MENU_TAGS = ("div", "ul", "ol", "section", "aside")
_META = {
    "author": "author",
    "description": "description",
    "og:description": "description",
    "keywords": "keywords",
    "article:published_time": "published",
    "date": "published",
    "dcterms.date": "published",
    "article:author": "author",
}


def main_blocks(root: Element) -> list[Block]:
    """Return a page's blocks without menus, header, footer and anything else around the main text.

    If nothing would be left, the blocks of the whole page are returned.
    """
    etree.strip_elements(root, *_NOT_TEXT, with_tail=False)
    main, is_certain = _main(root)
    left_out = _is_menu if is_certain else _is_beside
    return list(blocks_of(main, leave_out=left_out)) or list(blocks_of(root))


def title_of(root: Element, blocks: Iterable[Block] = ()) -> str:
    """Return a page's title, from its title element, its metadata or its first main heading."""
    headings = (block.text for block in blocks if block.kind == "heading" and block.level == 1)
    return next(filter(None, chain(_titles(root), headings)), "")


def _titles(root: Element) -> Iterator[str]:
    for element in root.iter("title"):
        if next(element.iterancestors("svg"), None) is None:
            yield _text(element)
    for element in root.iter("meta"):
        if element.get("property") == "og:title":
            yield _content(element)


def metadata_of(root: Element) -> dict[str, str]:
    """Return a page's metadata: any of `language`, `author`, `description`, `keywords` and `published`."""
    stated: dict[str, str] = {}
    for name, text in (("language", _language(root)), *map(_named, root.iter("meta"))):
        if name and text:
            stated.setdefault(name, text)
    return stated


def _language(root: Element) -> str:
    return root.get("lang") or root.get("{http://www.w3.org/XML/1998/namespace}lang") or ""


def _named(meta: Element) -> tuple[str, str]:
    """Return our name for a metadata element, or '' if it is unknown, and the element's value."""
    name = meta.get("name") or meta.get("property") or ""
    return _META.get(name.lower(), ""), _content(meta)


def _content(meta: Element) -> str:
    return " ".join(meta.get("content", "").split())


def _main(root: Element) -> tuple[Element, bool]:
    """Return the element that contains a page's text, and True if the page marks it as such."""
    # Not `body`: if a page omits it, the tree has some of the text in `head`.
    enough = _ENOUGH * len(_text(root))
    named = [*root.iter("main"), *root.iterfind(".//div[@role='main']"), *root.iterfind(".//section[@role='main']")]
    for candidates in (named, list(root.iter("article"))):
        if len(candidates) == 1 and len(_text(candidates[0])) >= enough:
            return candidates[0], True
    return root, False


def _is_menu(element: Element) -> bool:
    """Return True for a menu or footer, which is left out even in the middle of the text."""
    tag = element.tag
    if tag in ("nav", "footer"):
        return True
    if not element.keys() or tag in ("body", "main", "article"):
        return False
    return element.get("role") in _ROLES or _is_called_a_menu(element)


def _is_called_a_menu(element: Element) -> bool:
    names = element.get("class", "").lower().split()
    if any(map(_AROUND.search, names)):
        return True
    return element.tag in _MENU_TAGS and any(map(_MENUS.search, names)) and _is_mostly_links(element)


def _is_beside(element: Element) -> bool:
    """Return True for an element outside the main text, on a page that does not mark its main text."""
    if _is_menu(element):
        return True
    if element.tag == "header":
        return next(element.iter("h1", "h2"), None) is None
    return element.tag == "aside" and next(element.iterancestors("article", "section"), None) is None


def _is_mostly_links(element: Element) -> bool:
    linked = sum(len(_text(link)) for link in element.iter("a"))
    return linked >= _MOST_LINKED * max(1, len(_text(element)))


def _text(element: Element) -> str:
    return " ".join(etree.tostring(element, method="text", encoding="unicode", with_tail=False).split())
