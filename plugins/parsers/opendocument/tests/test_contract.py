"""This distribution keeps Jackfield's contracts."""

from __future__ import annotations

import io
from functools import cache
from typing import Any, ClassVar

import pytest
from odf.draw import Frame, Page, TextBox
from odf.opendocument import OpenDocumentPresentation, OpenDocumentSpreadsheet, OpenDocumentText
from odf.style import MasterPage, PageLayout
from odf.table import Table, TableCell, TableRow
from odf.text import H, List, ListItem, P

from jackfield_testkit.suites import ParserSuite, PluginSuite


def saved(document: Any) -> bytes:
    data = io.BytesIO()
    document.save(data)
    return data.getvalue()


def table(*rows: list[str]) -> Any:
    made = Table(name="Sorts")
    for row in rows:
        line = TableRow()
        for text in row:
            cell = TableCell(valuetype="string")
            cell.addElement(P(text=text))
            line.addElement(cell)
        made.addElement(line)
    return made


@cache
def text() -> bytes:
    document = OpenDocumentText()
    document.text.addElement(H(outlinelevel=1, text="Tea"))
    document.text.addElement(P(text="Green tea, 绿茶."))
    items = List()
    for line in ("boil", "wait"):
        item = ListItem()
        item.addElement(P(text=line))
        items.addElement(item)
    document.text.addElement(items)
    document.text.addElement(table(["sort", "water"], ["black", "boiling"]))
    return saved(document)


@cache
def sheet() -> bytes:
    document = OpenDocumentSpreadsheet()
    document.spreadsheet.addElement(table(["sort", "water"], ["black", "boiling"]))
    document.spreadsheet.addElement(table(["second", "sheet"]))
    return saved(document)


@cache
def slides() -> bytes:
    document = OpenDocumentPresentation()
    layout = PageLayout(name="a")
    document.automaticstyles.addElement(layout)
    master = MasterPage(name="b", pagelayoutname=layout)
    document.masterstyles.addElement(master)
    for title, line in (("Tea", "Green tea."), ("Water", "Boiling.")):
        page = Page(masterpagename=master)
        for kind, words in (("title", title), ("outline", line)):
            frame, box = Frame(width="10cm", height="2cm", attributes={"class": kind}), TextBox()
            box.addElement(P(text=words))
            frame.addElement(box)
            page.addElement(frame)
        document.presentation.addElement(page)
    return saved(document)


LOCKED = b'<manifest:file-entry xmlns:manifest="m"><manifest:encryption-data/></manifest:file-entry>'
LAUGHING = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 12))


class TestPlugin(PluginSuite):
    dist = "jackfield-opendocument"


class Given(ParserSuite):
    __test__ = False
    kind: ClassVar[str]
    paragraph: ClassVar[str]

    @pytest.fixture(autouse=True)
    def _give(self, file: Any, flat: Any, content: Any) -> None:
        kind, words = self.kind, self.paragraph
        self.samples = {**self.written(), f"flat.f{kind}": (flat(kind, words.format("Green tea.")), "Green tea.")}
        self.unreadable = {
            f"text.{kind}": b"just a text",
            f"page.{kind}": b"<html><p>text</p></html>",
            f"old.{kind}": b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(504),
            f"empty.{kind}": file(kind, ""),
            f"white.{kind}": file(kind, words.format(" ")),
            f"locked.{kind}": file(kind, words.format("a"), **{"META-INF/manifest.xml": LOCKED}),
            f"other.{kind}": {"odt": sheet, "ods": slides, "odp": text}[kind](),
            f"entity.f{kind}": flat(kind, words.format("a")).replace(b"?>", b"?><!DOCTYPE a>", 1),
        }
        xml = content(kind, words.format("&e11;")).replace("?>", f'?><!DOCTYPE a [<!ENTITY e0 "ha">{LAUGHING}]>', 1)
        self.hostile = {
            f"bomb.{kind}": file(kind, words.format(" " * 24 * 2**20)),
            f"laughing.{kind}": file(kind, "", **{"content.xml": xml}),
            f"deep.{kind}": file(kind, "<text:section>" * 20_000),
            f"sections.{kind}": file(kind, "<text:section>" * 240 + words.format("x") + "</text:section>" * 240),
            f"many.{kind}": file(kind, words.format("x") * 10_000),
            f"rows.{kind}": file(kind, self.inside(REPEATED_ROWS)),
            f"cells.{kind}": file(kind, self.inside(REPEATED_CELLS)),
        }

    def written(self) -> Any:
        raise NotImplementedError

    def inside(self, element: str) -> str:
        return element


ROW = '<table:table-row table:number-rows-repeated="1000000">{}</table:table-row>'
CELL = '<table:table-cell table:number-columns-repeated="999999">{}</table:table-cell>'
REPEATED_ROWS = f"<table:table>{ROW.format(CELL.format('<text:p>xxxx</text:p>') * 9) * 9}</table:table>"
REPEATED_CELLS = f"<table:table>{ROW.format((CELL.format('') + CELL.format('<text:p>x</text:p>')) * 900)}</table:table>"


class TestOdt(Given):
    __test__ = True
    component = "jackfield-opendocument/odt"
    kind = "odt"
    paragraph = "<text:p>{}</text:p>"

    def written(self) -> Any:
        return {"tea.odt": (text(), ("Tea", "绿茶", "- wait", "| black | boiling |"))}

    @staticmethod
    def make_file(count: int) -> bytes:
        document = OpenDocumentText()
        for number in range(40 * count):
            document.text.addElement(P(text=f"A paragraph of words, number {number}."))
        return saved(document)


class TestOds(Given):
    __test__ = True
    component = "jackfield-opendocument/ods"
    kind = "ods"
    paragraph = (
        "<table:table><table:table-row><table:table-cell><text:p>{}</text:p>"
        "</table:table-cell></table:table-row></table:table>"
    )

    def written(self) -> Any:
        return {"表.ods": (sheet(), ("Sorts", "| black | boiling |", "| second | sheet |"))}

    @staticmethod
    def make_file(count: int) -> bytes:
        document = OpenDocumentSpreadsheet()
        document.spreadsheet.addElement(table(*([f"row {number}", "tea"] for number in range(20 * count))))
        return saved(document)


class TestOdp(Given):
    __test__ = True
    component = "jackfield-opendocument/odp"
    kind = "odp"
    paragraph = "<draw:page><draw:frame><draw:text-box><text:p>{}</text:p></draw:text-box></draw:frame></draw:page>"

    def written(self) -> Any:
        return {"tea.odp": (slides(), ("Tea", "Green tea.", "Water", "Boiling."))}

    def inside(self, element: str) -> str:
        return f"<draw:page><draw:frame>{element}</draw:frame></draw:page>"
