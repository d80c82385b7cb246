"""A name of an encoding from outside leads to an encoding of the web, and to no other codec of Python."""

from __future__ import annotations

import asyncio
import codecs
import encodings
import pkgutil
from collections.abc import Mapping

import pytest

from jackfield_documents import DocumentReader, codec_of
from jackfield_documents.encodings import as_marked_utf8
from jackfield_documents.urls import Page

# What Python has besides: of no text, of the platform, or quadratic in C code that nothing can interrupt.
NOT_OF_THE_WEB = frozenset(
    {"punycode", "idna", "unicode_escape", "raw_unicode_escape", "utf_7", "undefined", "mbcs", "oem", "palmos"}
    | {"rot_13", "hex_codec", "base64_codec", "bz2_codec", "zlib_codec", "uu_codec", "quopri_codec", "charmap"}
    | {"utf_32", "utf_32_le", "hz", "johab", "iso2022_kr", "cp037", "cp500", "cp65001", "ptcp154", "tis_620x"}
)


@pytest.mark.parametrize("name", sorted(NOT_OF_THE_WEB))
def test_codecs_that_are_not_of_the_web_are_not_found(name: str) -> None:
    for spelling in (name, name.upper(), name.replace("_", "-"), f" {name}\t"):
        assert codec_of(spelling) is None


def test_only_forty_codecs_can_be_reached_by_a_name() -> None:
    names = {module.name for module in pkgutil.iter_modules(encodings.__path__)} | set(encodings.aliases.aliases)
    reached = {codec_of(name) for name in names} - {None}
    assert {codecs.lookup(name).name for name in reached if name} <= {
        *("utf-8", "utf-16-le", "utf-16-be", "cp866", "koi8-r", "koi8-u", "mac-roman", "mac-cyrillic"),
        *(f"iso8859-{part}" for part in (2, 3, 4, 5, 6, 7, 8, 10, 13, 14, 15, 16)),
        *("cp874", *(f"cp125{part}" for part in range(9))),
        *("gb18030", "big5hkscs", "euc_jp", "iso2022_jp", "cp932", "cp949"),
    }


@pytest.mark.parametrize(
    ("label", "codec"),
    [
        ("UTF-8", "utf-8"),
        ("latin1", "cp1252"),
        ("US-ASCII", "cp1252"),
        ("iso-8859-9", "cp1254"),
        ("gb2312", "gb18030"),
        ("GBK", "gb18030"),
        ("Shift_JIS", "cp932"),
        ("ks_c_5601-1987", "cp949"),
        (" windows-1251\n", "cp1251"),
        ("", None),
        ("no-such", None),
        ("\ud800", None),
        ("hz-gb-2312", None),
        ("x-user-defined", None),
        ("a" * 100_000, None),
    ],
)
def test_a_label_means_the_same_as_in_browsers(label: str, codec: str | None) -> None:
    assert codec_of(label) == codec


def test_bytes_that_do_not_fit_never_fail() -> None:
    for codec in ("utf-8", "utf-16-le", "gb18030", "iso2022_jp", "cp932", "cp1252"):
        assert as_marked_utf8(bytes(range(256)) * 9 + b"\x00\xd8", codec).startswith(codecs.BOM_UTF8)


def test_a_page_is_decoded_where_it_is_parsed_and_not_before(monkeypatch: pytest.MonkeyPatch) -> None:
    decoded: list[str] = []

    def note(data: bytes, codec: str) -> bytes:
        decoded.append(f"{codec} {len(data)}")
        return as_marked_utf8(data, codec)

    monkeypatch.setattr("jackfield_documents.documents.as_marked_utf8", note)
    reader = DocumentReader()

    async def get(_: str) -> Page:
        return Page("long.txt", "潮水\n".encode("gb18030") * 400_000, "gb18030")

    monkeypatch.setattr(reader._pages, "get", get)
    document = asyncio.run(reader.read("http://a.test/long.txt"))
    assert decoded == ["gb18030 4096"]  # to choose the parser; the rest is decoded in its process
    assert document.blocks[0].text.startswith("潮水\n潮水")


def test_pages_that_differ_in_their_encoding_only_are_not_taken_for_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = DocumentReader()
    texts: Mapping[str, str] = {"cp1251": "жизнь", "koi8-r": "ФХГМЭ"}

    async def get(url: str) -> Page:
        return Page("a.txt", "жизнь".encode("cp1251"), url.rpartition("/")[2])

    monkeypatch.setattr(reader._pages, "get", get)
    for codec, text in texts.items():
        assert asyncio.run(reader.read(f"http://a.test/{codec}")).blocks[0].text.casefold() == text.casefold()
    prints = [asyncio.run(reader.fingerprint(f"http://a.test/{codec}")) for codec in texts]
    assert prints[0] != prints[1]
