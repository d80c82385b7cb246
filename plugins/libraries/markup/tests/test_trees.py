from __future__ import annotations

import html
from pathlib import Path

import pytest

from jackfield.errors import DocParserError
from jackfield_markup import blocks_of, decode_html, html_tree, xhtml_tree, xml_tree


def test_a_document_type_in_what_an_office_writes_is_refused(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("the secret")
    for entity in (f'SYSTEM "{secret.as_uri()}"', '"text"', 'SYSTEM "http://127.0.0.1:9/"'):
        data = f"<!DOCTYPE a [<!ENTITY e {entity}>]><a>&e;</a>".encode()
        with pytest.raises(DocParserError, match=r"a\.docx cannot be read: its XML declares a document type"):
            xml_tree(data, source="a.docx")


def test_xml_without_a_document_type_is_a_tree_without_comments() -> None:
    root = xml_tree(b"<?xml version='1.0'?><a><!-- no --><?no?><b>c &amp; d</b></a>", source="x.docx")
    assert (root.tag, [(child.tag, child.text) for child in root]) == ("a", [("b", "c & d")])


def test_entities_that_multiply_are_refused() -> None:
    levels = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 12))
    data = f'<!DOCTYPE a [<!ENTITY e0 "ha">{levels}]><a>&e11;</a>'.encode()
    with pytest.raises(DocParserError, match=r"a\.docx"):
        xml_tree(data, source="a.docx")


@pytest.mark.parametrize(
    "data", [b"", b"<a>", b"<a><b></a>", b"\x89PNG", b"<a>" * 5000, b'<?xml version="1.0" encoding="x-no"?><a/>']
)
def test_xml_that_is_not_well_formed_is_refused_by_name(data: bytes) -> None:
    with pytest.raises(DocParserError, match=r"^a\.docx is corrupted: its XML cannot be parsed"):
        xml_tree(data, source="a.docx")


def test_in_a_page_an_entity_is_never_what_a_file_holds(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("the secret")
    data = f'<!DOCTYPE html [<!ENTITY e SYSTEM "{secret.as_uri()}">]><html><body><p>Tea &e;</p></body></html>'.encode()
    for tree in (xhtml_tree(data, source="a.xhtml"), html_tree(data.decode(), source="a.html")):
        assert "secret" not in "".join(tree.itertext())
        assert "Tea" in "".join(tree.itertext())


def test_xhtml_is_read_as_xml() -> None:
    tree = xhtml_tree(
        b'<?xml version="1.0"?><!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.1//EN" "http://www.w3.org/x.dtd">'
        b'<html xmlns="http://www.w3.org/1999/xhtml"><head><title/></head><body><a id="x"/><p>caf&eacute;&nbsp;&amp;'
        b" &LT;tea></p></body></html>",
        source="a.xhtml",
    )
    assert [block.text for block in blocks_of(tree)] == ["café & <tea>"]


@pytest.mark.parametrize("text", [f"{'a ' * 200}\x01&nbsp;b", f"{'a ' * 4096}&nbsp;b", "a &LT; b"])
def test_xhtml_stays_xml_with_characters_and_entities_that_xml_lacks(text: str) -> None:
    page = f"<html><body><div hidden='hidden'/><p>{text}</p></body></html>"
    (block,) = blocks_of(xhtml_tree(page.encode(), source="a.xhtml"))  # in HTML, the hidden element would hold the rest
    assert block.text.split() == html.unescape(text.replace("\x01", "")).split()


def test_a_page_with_a_huge_text_is_read() -> None:
    ((paragraph,),) = [html_tree(f"<p>{'x' * 10_000_001}</p>", source="a.html").iter("p")]
    assert len(paragraph.text) == 10_000_001


def test_a_binary_file_is_none_whatever_it_declares() -> None:
    with pytest.raises(DocParserError, match=r"^a\.html"):
        decode_html(b"<meta charset=utf-8>\0\1\2" * 9, source="a.html")


def test_tags_of_xhtml_in_capitals_are_those_in_small_letters() -> None:
    tree = xhtml_tree(b"<HTML><BODY><H2>one</H2><UL><LI>two</LI></UL></BODY></HTML>", source="a.xhtml")
    assert [(block.kind, block.text) for block in blocks_of(tree)] == [("heading", "one"), ("list", "- two")]


def test_half_a_character_does_not_stop_a_page_from_being_read() -> None:
    assert [block.text for block in blocks_of(html_tree("<p>a\ud800b", source="a.html"))] == ["a?b"]


def test_xhtml_that_is_none_is_read_as_html() -> None:
    assert [block.text for block in blocks_of(xhtml_tree(b"<p>one<p>two", source="a.xhtml"))] == ["one", "two"]


@pytest.mark.parametrize("tag", ["div", "b", "ul", "table"])
def test_elements_that_are_never_closed_are_refused_and_not_cut_off(tag: str) -> None:
    with pytest.raises(DocParserError, match=r"a\.html cannot be read: its elements are nested too deeply"):
        html_tree(f"<{tag}>" * 3000 + "the text", source="a.html")


@pytest.mark.parametrize(("broken", "is_believed"), [(0, True), (2, True), (3, False)])
def test_a_declared_encoding_holds_with_one_broken_byte_in_two_hundred_characters(
    broken: int, is_believed: bool
) -> None:
    data = b"<meta charset=koi8-u>"
    page = (b"<meta charset=utf-8>" + b"\xff" * broken).ljust(400, b"x")
    assert (decode_html(page, source="a.html").encoding == "utf-8") == is_believed
    far = b" " * (4096 - len(data)) + data + "сад".encode("koi8-u")
    assert decode_html(far, source="a.html").encoding == "koi8-u"
    assert decode_html(b"  " + far, source="a.html").encoding != "koi8-u", "it is looked for in the first 4096 bytes"


@pytest.mark.parametrize(
    ("data", "encoding"),
    [
        ('<meta charset="utf-8"><p>café'.encode(), "utf-8"),
        ("<meta http-equiv=content-type content='text/html; charset=iso-8859-1'><p>“café”".encode("cp1252"), "cp1252"),
        ('<meta charset="gbk"><p>数据'.encode("gb18030"), "gb18030"),
        ('<?xml version="1.0" encoding="Shift_JIS"?><p>日本'.encode("cp932"), "cp932"),
        ("<meta charset=iso-8859-1><p>数据分析".encode("utf-16"), "utf-16"),
        (b"\xef\xbb\xbf<meta charset=iso-8859-1><p>caf\xc3\xa9", "utf-8-sig"),
        ("<meta charset=utf-16><p>café".encode(), "utf-8"),
        (b"<meta charset=utf-16><p>coffee", "utf-8"),
        (b"<meta charset=utf-16><p>coffees", "utf-8"),
        ("<meta charset=no-such><p>café".encode(), "utf-8"),
        ("<meta charset=idna><p>café".encode(), "utf-8"),
        (b"<meta charset=utf-8><p>" + "café ".encode() * 200 + b"\xff", "utf-8"),
        ("<p>Größe und Straße, schöne Grüße".encode("cp1252"), "cp1252"),
    ],
)
def test_the_encoding_is_what_the_page_says_unless_that_cannot_be(data: bytes, encoding: str) -> None:
    assert decode_html(data, source="a.html").encoding == encoding
