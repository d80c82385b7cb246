"""Parser for OpenDocument spreadsheets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from jackfield.errors import DocParserError
from jackfield.retrieval import Block, Document, Parser
from jackfield_documents import pipe_table
from jackfield_markup import Element
from jackfield_opendocument.names import ANNOTATION, CALCEXT, DC, OFFICE, TABLE, TABLE_TABLE, P
from jackfield_opendocument.package import Package
from jackfield_opendocument.reader import Reader
from jackfield_opendocument.tables import Spare, each_row, repeats, rows_of


class OdsParser(Parser):
    """Parses spreadsheets into one table per sheet, along with cell comments and charts.

    `page` is the sheet number. Numbers and dates are read as stored; currency amounts, percentages and times are read
    as displayed. Unreadable charts are listed in `metadata["unread"]`.
    """

    name: ClassVar[str] = "ods"

    def parse(self, data: bytes, *, source: str) -> Document:
        """Parse a spreadsheet into tables, each below a heading with the sheet name.

        Raises:
            DocParserError: The file is empty, encrypted, damaged, not an OpenDocument spreadsheet, too large when
                unpacked, or without text.
        """
        package = Package(data, source=source, kind="spreadsheet")
        spare = Spare(package.body)
        sheets = [
            sheet
            for sheet in package.body.iterchildren(TABLE_TABLE)
            if sheet.find(TABLE + "table-source") is None  # the copy of a sheet in another file
        ]
        blocks: list[Block] = []
        for number, sheet in enumerate(sheets, start=1):
            blocks += _read_sheet(sheet, package, spare, number)
        if not blocks:
            raise DocParserError(f"{source} is empty: none of its cells contains text")
        title, metadata = package.metadata()
        metadata["sheets"] = [sheet.get(TABLE + "name", "") for sheet in sheets]
        return Document(source, tuple(blocks), content_hash="", title=title, metadata=metadata)


def _read_sheet(sheet: Element, package: Package, spare: Spare, number: int) -> list[Block]:
    reader = Reader(package, spare, page=number)
    table = pipe_table(rows_of(sheet, lambda cell: _value_of(cell, reader), spare, fill_merged=False))
    comments = [f"- Comment on {comment}" for comment in _comments(sheet, reader)]
    for shapes in sheet.iterchildren(TABLE + "shapes"):
        reader.read(shapes)
    drawings = reader.finish()
    if not table and not comments and not drawings:
        return []
    blocks = [Block(sheet.get(TABLE + "name", "").strip() or f"Sheet {number}", kind="heading", page=number, level=1)]
    if table:
        blocks.append(Block(table, kind="table", page=number))
    if comments:
        blocks.append(Block("\n".join(comments), kind="list", page=number))
    return blocks + drawings


def _value_of(cell: Element, reader: Reader) -> str:
    """Return the value of a cell the way a person would write it."""
    if not len(cell) and not cell.keys():
        return ""
    shown = "\n".join(reader.line_of(paragraph) for paragraph in cell.iterchildren(P))
    if cell.get(CALCEXT + "value-type") == "error":
        return shown
    match cell.get(OFFICE + "value-type"):
        case "float":
            return _number(cell.get(OFFICE + "value", "")) or shown
        case "date":
            return cell.get(OFFICE + "date-value", "").removesuffix("T00:00:00").replace("T", " ") or shown
        case "boolean":
            return cell.get(OFFICE + "boolean-value", "").upper() or shown
        case _:
            return shown or cell.get(OFFICE + "string-value") or cell.get(OFFICE + "value") or ""


def _number(text: str) -> str:
    try:
        value = float(text)
    except ValueError:
        return ""
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)


def _comments(sheet: Element, reader: Reader) -> Iterator[str]:
    """Yield the cell comments as `B2 (Ann): text`."""
    if next(sheet.iter(ANNOTATION), None) is None:
        return
    row_number = 1
    for row in each_row(sheet):
        column = 1
        for cell in row:
            for comment in cell.iterchildren(ANNOTATION):
                if text := " ".join(reader.text_of(comment).split()):
                    author = (comment.findtext(DC + "creator") or "").strip()
                    yield f"{_letters(column)}{row_number}{f' ({author})' if author else ''}: {text}"
            column += repeats(cell, "columns")
        row_number += repeats(row, "rows")


def _letters(column: int) -> str:
    letters = ""
    while column:
        column, rest = divmod(column - 1, 26)
        letters = chr(ord("A") + rest) + letters
    return letters
