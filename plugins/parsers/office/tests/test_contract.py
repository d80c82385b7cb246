"""This distribution keeps Jackfield's contracts."""

from __future__ import annotations

from functools import cache
from typing import Any

import docx
import pytest

from jackfield_testkit.suites import ParserSuite, PluginSuite

OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(504)
ENCRYPTED = OLE + "EncryptedPackage".encode("utf-16-le") + bytes(500)


def tea(document: Any) -> None:
    document.add_heading("Tea", 1)
    document.add_paragraph("Green tea is brewed with hot water.")
    document.add_paragraph("one", style="List Bullet")
    table = document.add_table(2, 2)
    for cell, text in zip((cell for row in table.rows for cell in row.cells), "abcd", strict=True):
        cell.text = text


def slide(presentation: Any) -> None:
    made = presentation.slides.add_slide(presentation.slide_layouts[1])
    made.shapes.title.text = "Tea"
    made.placeholders[1].text_frame.text = "Green tea is brewed."
    made.notes_slide.notes_text_frame.text = "Pour slowly."


class TestPlugin(PluginSuite):
    dist = "jackfield-office"


class OfficeSuite(ParserSuite):
    """The tests of a parser whose files are made by the libraries of others."""

    @classmethod
    def _made(cls, files: Any) -> tuple[Any, Any, Any]:
        """Its samples, and files that it cannot read and should survive; made once."""
        raise NotImplementedError

    @pytest.fixture(autouse=True)
    def _give(self, files: Any) -> None:
        self.samples, self.unreadable, self.hostile = self._made(files)


class TestDocx(OfficeSuite):
    component = "jackfield-office/docx"

    @classmethod
    @cache
    def _made(cls, files: Any) -> tuple[Any, Any, Any]:
        sample = files.word(tea)
        samples = {
            "tea.docx": (sample, ("Tea", "Green tea is brewed with hot water.", "one", "| c | d |")),
            "中文.docx": (files.body("<w:p><w:r><w:t>数据分析</w:t></w:r></w:p>"), "数据分析"),
        }
        unreadable = {
            "locked.docx": ENCRYPTED,
            "old.docx": OLE,
            "text.docx": b"just a text",
            "book.docx": files.book(Sheet=[["a"]]),
            "empty.docx": files.body(""),
            "entity.docx": files.changed(sample, {"word/document.xml": files.entity}),
        }
        hostile = {
            "bomb.docx": files.bomb("word/document.xml", sample),
            "styles in a circle.docx": files.changed(
                sample,
                {"word/styles.xml": lambda old: old.replace(b'w:basedOn w:val="', b'w:basedOn w:val="Heading1" w:x="')},
            ),
            "deep.docx": files.body("<w:sdt><w:sdtContent>" * 20_000),
            "spans.docx": files.body(
                "<w:tbl>" + '<w:tr><w:tc><w:tcPr><w:gridSpan w:val="99999"/></w:tcPr></w:tc></w:tr>' * 9999 + "</w:tbl>"
            ),
            "tables in tables.docx": files.body(
                "<w:tbl><w:tr><w:tc/><w:tc><w:p/>" * 80 + "</w:tc></w:tr></w:tbl>" * 80
            ),
            "many files.docx": files.changed(sample, {f"{number}": bytes for number in range(20_001)}),
        }
        return samples, unreadable, hostile

    @staticmethod
    def make_file(count: int) -> bytes:
        import io

        document = docx.Document()
        for number in range(20 * count):
            document.add_paragraph(f"This is paragraph {number:06}.")
        data = io.BytesIO()
        document.save(data)
        return data.getvalue()


class TestPptx(OfficeSuite):
    component = "jackfield-office/pptx"

    @classmethod
    @cache
    def _made(cls, files: Any) -> tuple[Any, Any, Any]:
        sample = files.slides(slide)
        samples = {"tea.pptx": (sample, ("Tea", "Green tea is brewed.", "Pour slowly."))}
        unreadable = {
            "locked.pptx": ENCRYPTED,
            "letter.pptx": files.word(tea),
            "empty.pptx": files.slides(lambda _: None),
            "entity.pptx": files.changed(sample, {"ppt/slides/slide1.xml": files.entity}),
        }
        hostile = {"bomb.pptx": files.bomb("ppt/slides/slide1.xml", sample)}
        return samples, unreadable, hostile


class TestXlsx(OfficeSuite):
    component = "jackfield-office/xlsx"

    @classmethod
    @cache
    def _made(cls, files: Any) -> tuple[Any, Any, Any]:
        sample = files.book(Sorts=[["sort", "water"], ["black", "boiling"]], Prices=[["sort", "price"], ["black", 3]])
        samples = {
            "tea.xlsx": (sample, ("Sorts", "| black | boiling |", "Prices", "| black | 3 |")),
            "tea.xls": (files.old_book(Sorts=[["sort", "water"], ["black", "boiling"]]), "| black | boiling |"),
        }
        unreadable = {
            "locked.xlsx": ENCRYPTED,
            "letter.xlsx": files.word(tea),
            "other.xls": OLE,
            "empty.xlsx": files.book(Sheet=[]),
        }
        hostile = {
            "bomb.xlsx": files.bomb("xl/worksheets/sheet1.xml", sample),
            "far away.xlsx": files.changed(
                sample, {"xl/worksheets/sheet1.xml": lambda old: old.replace(b'r="B2"', b"r='XFD1048576'")}
            ),
        }
        return samples, unreadable, hostile


class TestCsv(ParserSuite):
    component = "jackfield-office/csv"
    one_block = "a file is one table"
    samples = {  # noqa: RUF012 - the suite says that it is one of the class
        "tea.csv": (b"sort,water\nblack,boiling\n", "| black | boiling |"),
        "tea.tsv": (b"sort\twater\nblack\tboiling\n", "| black | boiling |"),
        "中文.csv": ("名称;数量\n绿茶;三\n".encode("gb18030"), "| 绿茶 | 三 |"),
    }
    unreadable = {  # noqa: RUF012
        "picture.csv": bytes(range(256)) * 8,
        "white.csv": b" ,\n,\n",
        "a million columns.csv": b"x," * 1_000_000,
    }
    hostile = {  # noqa: RUF012
        "quote.csv": b'a,b\n"' + b"x,y\n" * 100_000,
        "quotes.csv": b'"' * 2_000_000,
        "lines.csv": b"a\n" * 300_000,
        "one wide row.csv": b"x," * 16_000 + b"\n" + b"y\n" * 100_000,
    }

    @staticmethod
    def make_file(count: int) -> bytes:
        return b"Ada,36,London\n" * (100 * count)
