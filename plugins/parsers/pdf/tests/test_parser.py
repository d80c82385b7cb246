from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from jackfield.errors import ConfigError, DocParserError
from jackfield.plugins import PluginHost
from jackfield.settings import Settings
from jackfield_documents import DocumentReader
from jackfield_pdf.parser import PdfParser

MakePdf = Callable[..., bytes]


def refusal(data: bytes, **cfg: object) -> str:
    with pytest.raises(DocParserError) as caught:
        PdfParser(cfg).parse(data, source="report.pdf")
    assert str(caught.value).startswith("report.pdf ")
    return str(caught.value)


def test_the_title_is_the_one_the_file_states(typeset: MakePdf) -> None:
    assert PdfParser().parse(typeset(("body", "text"), title="A report"), source="a.pdf").title == "A report"


def test_a_file_without_a_title_has_that_of_its_first_large_heading(typeset: MakePdf) -> None:
    data = typeset(("h1", "On reading"), ("body", "Some text that is longer than the heading. " * 4), title="untitled")
    assert PdfParser().parse(data, source="a.pdf").title == "On reading"


def test_an_encrypted_file_is_read_with_its_password_only(lay_out: MakePdf) -> None:
    data = lay_out(["a secret"], encrypt="sesame")
    assert "is encrypted: a password is required (the `password` setting" in refusal(data)
    wrong = refusal(data, password="guess-it")
    assert "the password is incorrect (the `password` setting" in wrong
    assert "guess-it" not in wrong
    assert PdfParser({"password": "sesame"}).parse(data, source="a.pdf").blocks[0].text == "a secret"


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (lambda data: b"", "is empty"),
        (lambda data: b"<html>no</html>", "is not a PDF"),
        (lambda data: data[: len(data) // 2], "is truncated"),
        (lambda data: data[:-200], "is truncated"),
        (lambda data: b"%PDF-1.7\n" + b"garbage " * 50 + b"\n%%EOF", "is corrupted"),
    ],
)
def test_a_file_that_is_damaged_says_how(lay_out: MakePdf, damage: Callable[[bytes], bytes], told: str) -> None:
    assert told in refusal(damage(lay_out([f"line {number}" for number in range(40)])))


def test_pages_without_a_text_layer_are_named(lay_out: MakePdf) -> None:
    document = PdfParser().parse(lay_out(["one"], [], ["three"], []), source="a.pdf")
    assert document.metadata["pages_without_text"] == [2, 4]
    assert document.metadata["pages"] == 4
    assert [block.page for block in document.blocks] == [1, 3]


def test_a_scan_is_refused_with_what_to_do(lay_out: MakePdf) -> None:
    assert "no text layer" in refusal(lay_out([], []))


def test_a_file_beyond_the_limits_is_refused(lay_out: MakePdf) -> None:
    data = lay_out(*[["a line of text"]] * 5)
    assert "has 5 pages: split it, or increase max_pages (4)" in refusal(data, max_pages=4)
    assert "more than 20 characters" in refusal(data, max_chars=20)
    assert PdfParser({"max_pages": 5}).parse(data, source="a.pdf").blocks


def test_an_unknown_setting_is_refused() -> None:
    with pytest.raises(ConfigError, match="max_page"):
        PdfParser({"max_page": 3})


def test_many_threads_read_many_files_at_once(lay_out: MakePdf) -> None:
    files = [lay_out(*[[f"file {file} page {page}"] for page in range(8)]) for file in range(12)]
    parser = PdfParser()
    with ThreadPoolExecutor(8) as pool:
        documents = list(pool.map(lambda data: parser.parse(data, source="a.pdf"), files))
    for number, document in enumerate(documents):
        assert [block.text for block in document.blocks] == [f"file {number} page {page}" for page in range(8)]


def test_a_thousand_pages_are_read_with_every_page_in_its_place(lay_out: MakePdf) -> None:
    data = lay_out(*[[f"This is page {page} of a long document."] * 5 for page in range(1, 1001)])
    document = PdfParser().parse(data, source="a.pdf")
    assert {block.page for block in document.blocks} == set(range(1, 1001))
    assert all(f"page {block.page} of" in block.text for block in document.blocks)


def test_the_core_finds_the_parser_by_extension_and_by_the_first_bytes(lay_out: MakePdf, tmp_path: Path) -> None:
    reader = DocumentReader(PluginHost(Settings(allow=frozenset({"jackfield-pdf"}))))
    for name in ("a.PDF", "download"):
        (tmp_path / name).write_bytes(lay_out(["found"]))
        assert asyncio.run(reader.read(tmp_path / name)).blocks[0].text == "found"


def test_damaged_pages_are_named_and_the_others_are_read(lay_out: MakePdf) -> None:
    data = lay_out(["one"], ["two"], ["three"])
    damaged = re.sub(rb"(/Kids \[ \d 0 R )\d 0 R", rb"\1null ", data)
    document = PdfParser().parse(damaged, source="a.pdf")
    assert [(block.page, block.text) for block in document.blocks] == [(1, "one"), (3, "three")]
    assert document.metadata["unreadable_pages"] == [2]
    assert document.metadata["unread"] == ["page 2"]
