"""Parse untrusted bytes into trees of limited depth, without expanding entities or fetching anything."""

from __future__ import annotations

import codecs
import html
import re
from html.entities import html5
from typing import Any, TypeAlias

from lxml import etree

from jackfield.errors import DocParserError
from jackfield_documents import Decoded, codec_of, decode

Element: TypeAlias = Any  # lxml has no types

_HEAD_BYTES = 4096
_CHARSET = re.compile(
    rb"""<(?:meta\b[^>]{0,400}?charset|\?xml\b[^>]{0,200}?encoding)\s*=\s*["']?\s*([\w.:-]{2,40})""", re.IGNORECASE
)
_MARKS = (codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_BE)
_DOCTYPE = re.compile(r"<!DOCTYPE[^>\[]*+(?:\[[^\]]*+\]\s*+)?>", re.I)
_XML_DECLARATION = re.compile(r"\s*<\?xml[^>]*\?>")
_NAMED_ENTITY = re.compile(r"&([A-Za-z][A-Za-z0-9]{1,31};)")
_OF_XML = ("amp;", "lt;", "gt;", "quot;", "apos;")
_NOT_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_XML_SAFE: dict[str, Any] = {
    "resolve_entities": False,
    "no_network": True,
    "load_dtd": False,
    "remove_comments": True,
    "remove_pis": True,
}


def xml_tree(data: bytes, *, source: str) -> Element:
    """Parse XML written by a program. Document types are rejected, because office files have none.

    Raises:
        DocParserError: The XML is not well-formed, is nested too deeply, or has a document type; the message names
            `source`.
    """
    try:
        root = etree.fromstring(data, etree.XMLParser(**_XML_SAFE))
    except (etree.XMLSyntaxError, LookupError, ValueError) as error:
        raise DocParserError(f"{source} is corrupted: its XML cannot be parsed ({_first_line(error)})") from error
    if root.getroottree().docinfo.doctype:
        raise DocParserError(f"{source} cannot be read: its XML declares a document type, which may contain entities")
    return root


def decode_html(data: bytes, *, source: str) -> Decoded:
    """Decode an HTML file by its byte order mark, its declared encoding, or its content.

    Raises:
        DocParserError: The file is empty, binary, or in an unknown encoding; the message names `source`.
    """
    declared = _declared(data)
    if declared and b"\0" not in data and not data.startswith(_MARKS):
        text = data.decode(declared, "replace")
        # A page with a few broken bytes still has its declared encoding.
        if text.count("\ufffd") <= len(text) // 200 and text.strip():
            return Decoded(text, declared)
    return decode(data, source=source)


def html_tree(text: str, *, source: str) -> Element:
    """Parse an HTML page, however malformed.

    Raises:
        DocParserError: The page has no elements, or is nested too deeply; the message names `source`.
    """
    parser = etree.HTMLParser(encoding="utf-8", no_network=True, remove_comments=True, remove_pis=True, huge_tree=True)
    try:
        root = etree.fromstring(text.encode("utf-8", "replace"), parser)
    except (etree.XMLSyntaxError, etree.ParserError) as error:
        raise DocParserError(f"{source} cannot be read: not valid HTML ({_first_line(error)})") from error
    # The parser keeps the part it has read and does not report that it dropped the rest of the page.
    if any("xcessive depth" in entry.message for entry in parser.error_log):
        raise DocParserError(f"{source} cannot be read: its elements are nested too deeply or never closed")
    if root is None:
        raise DocParserError(f"{source} contains no text")
    return root


def xhtml_tree(data: bytes, *, source: str) -> Element:
    """Parse a page that should be XML, as in e-books. A malformed page is parsed as HTML.

    Raises:
        DocParserError: The page is empty, binary, without elements, or nested too deeply; the message names `source`.
    """
    text = decode_html(data, source=source).text
    # Without its document type, a page has no entities of its own; HTML's are known.
    head = _XML_DECLARATION.sub("", _DOCTYPE.sub("", text[:_HEAD_BYTES], count=1), count=1)
    body = _NOT_XML.sub("", _NAMED_ENTITY.sub(_character, head + text[_HEAD_BYTES:]))
    try:
        root = etree.fromstring(body.encode(), etree.XMLParser(encoding="utf-8", **_XML_SAFE))
    except etree.XMLSyntaxError:
        return html_tree(text, source=source)
    for element in root.iter(etree.Element):
        element.tag = element.tag.rpartition("}")[2].lower()
    return root


def _declared(data: bytes) -> str | None:
    found = _CHARSET.search(data[:_HEAD_BYTES])
    if not found:
        return None
    codec = codec_of(found[1].decode("ascii", "replace"))
    # A page that declares UTF-16 in ASCII is not in UTF-16.
    return None if codec is None or codec.startswith("utf-16") else codec


def _character(entity: re.Match[str]) -> str:
    named = html5.get(entity[1])
    return entity[0] if named is None or entity[1] in _OF_XML else html.escape(named)


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0] or type(error).__name__
