"""Parser for Excel spreadsheets."""

from __future__ import annotations

import datetime
import io
import re
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, TypeAlias

from pydantic import Field

from jackfield.config import Config
from jackfield.errors import DocParserError
from jackfield.plurals import format_count
from jackfield.retrieval import Block, Document, Parser
from jackfield_documents import pipe_table
from jackfield_office.comments import comments_of_sheet
from jackfield_office.drawings import drawings_of_sheet
from jackfield_office.package import Package, R

_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_ENCRYPTED_PACKAGE = "EncryptedPackage".encode("utf-16-le")
_SHEET_PART = re.compile(r"xl/worksheets/[^/]+\.xml")
_COLUMN = re.compile(rb'r="([A-Z]{2,3})[0-9]')
_LAST_ROW = re.compile(rb'<row\b[^>]{0,200}?\br="([0-9]{1,9})"')
_EMPTY_PER_CELL = 20
_EMPTY_ALWAYS = 4_000_000


_Sheet: TypeAlias = tuple[str, int, Iterable[list[str]] | None]
"""The name of a sheet, its number of rows, and its rows as text, or None if the sheet is unreadable."""
# xlrd trusts its input, and may raise any of these for a malformed file.
_FAULTS_OF_XLRD = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    EOFError,
    LookupError,
    NotImplementedError,
    TypeError,
    ValueError,
    struct.error,
    RecursionError,
)


class SpreadsheetConfig(Config):
    """Settings for the size of sheets."""

    max_rows: int = Field(default=1_048_576, ge=1, description="Files with a sheet of more rows are rejected")


class SpreadsheetParser(Parser):
    """Parses Excel files into one table per sheet. For .xlsx files, comments, charts and text boxes are read as well.

    `page` is the sheet number. Unreadable sheets and parts of sheets are listed in `metadata["unread"]`.
    """

    name: ClassVar[str] = "xlsx"
    config_class = SpreadsheetConfig
    config: SpreadsheetConfig

    def parse(self, data: bytes, *, source: str) -> Document:
        """Parse a spreadsheet into tables, each below a heading with the sheet name.

        Raises:
            DocParserError: The file is empty, encrypted, damaged, not a spreadsheet, too long, or without text.
        """
        package, sheets = _read(data, source)
        parts = _parts_of_sheets(package) if package else {}
        names: list[str] = []
        unread: list[str] = []
        blocks: list[Block] = []
        for name, height, rows in sheets:
            if rows is None:
                names.append(name)
                unread.append(f"the sheet {name!r}")
                continue
            if height > self.config.max_rows:
                raise DocParserError(f"{source} cannot be read: its sheet {name!r} has {height} rows. Split it")
            names.append(name)
            blocks += _blocks(rows, name, len(names), _around_cells(package, parts.get(name, ""), len(names)))
        if unread and not blocks:
            raise DocParserError(f"{source} is corrupted: none of its sheets can be read")
        if not blocks:
            raise DocParserError(f"{source} is empty: none of its cells contains text")
        title, stated = package.stated() if package else ("", {})
        unread += stated.pop("unread", ())
        metadata = {"sheets": names, **stated, **({"unread": unread} if unread else {})}
        return Document(source, tuple(blocks), content_hash="", title=title, metadata=metadata)


def _blocks(rows: Iterable[list[str]], name: str, number: int, around: Sequence[Block]) -> Iterator[Block]:
    table = pipe_table(rows)
    if table or around:
        yield Block(name.strip() or f"Sheet {number}", kind="heading", page=number, level=1)
    if table:
        yield Block(table, kind="table", page=number)
    yield from around


def _around_cells(package: Package | None, part: str, number: int) -> list[Block]:
    """Return blocks for the charts, text boxes and comments of a sheet."""
    if package is None or not part:
        return []
    blocks = list(drawings_of_sheet(package, part, page=number))
    comments = [f"- Comment on {comment}" for comment in comments_of_sheet(package, part, number=number)]
    return [*blocks, Block("\n".join(comments), kind="list", page=number)] if comments else blocks


def _parts_of_sheets(package: Package) -> dict[str, str]:
    """Return the part name of each sheet, by sheet name."""
    relations = package.relations(package.main)
    sheets = package.part(package.main).iter("{*}sheet")
    targets = ((sheet.get("name", ""), relations.get(sheet.get(R + "id", ""))) for sheet in sheets)
    return {name: relation.target for name, relation in targets if relation is not None}


def _read(data: bytes, source: str) -> tuple[Package | None, Iterator[_Sheet]]:
    """Return the package of a file and its sheets. For a file from before 2007, the package is None."""
    if data.startswith(_OLE) and _ENCRYPTED_PACKAGE not in data:
        return None, _old_sheets(data, source)
    return _checked(data, source), _new_sheets(data, source)


def _new_sheets(data: bytes, source: str) -> Iterator[_Sheet]:
    from python_calamine import CalamineError, CalamineWorkbook

    with _errors_of_calamine(source):
        book = CalamineWorkbook.from_filelike(io.BytesIO(data))
        for number, name in enumerate(book.sheet_names):
            try:
                sheet = book.get_sheet_by_index(number)
            except CalamineError:  # one bad cell is enough; the other sheets are still worth reading
                yield name, 0, None
            else:
                yield name, sheet.height, ([_text(value) for value in row] for row in sheet.iter_rows())


def _old_sheets(data: bytes, source: str) -> Iterator[_Sheet]:
    """Yield the sheets of a file from before 2007.

    Uses xlrd, because calamine crashes the process on cells that are far apart, which happens in damaged files.
    """
    import xlrd

    with _errors_of_xlrd(source):
        book = xlrd.open_workbook(file_contents=data, logfile=io.StringIO(), ragged_rows=True)
        for sheet in book.sheets():
            rows = [[_old_text(cell, book.datemode) for cell in row] for row in sheet.get_rows()]
            yield sheet.name, len(rows), rows


def _old_text(cell: Any, datemode: int) -> str:
    import xlrd

    if cell.ctype == xlrd.XL_CELL_DATE:
        try:
            return _text(xlrd.xldate_as_datetime(cell.value, datemode))
        except (OverflowError, ValueError):  # a number that looks like a date, but is not one
            return _text(cell.value)
    if cell.ctype == xlrd.XL_CELL_BOOLEAN:
        return _text(bool(cell.value))
    return "" if cell.ctype == xlrd.XL_CELL_ERROR else _text(cell.value)


def _checked(data: bytes, source: str) -> Package:
    """Return the package of a file after checking that reading it needs no excessive memory."""
    package = Package(data, source=source, kind="xlsx", main="xl/")
    for name in package.names:
        if _SHEET_PART.fullmatch(name):
            _check_extent(package.read(name), source)
    return package


def _check_extent(sheet: bytes, source: str) -> None:
    """Reject a sheet with cells that are far apart, because every empty cell in between would be allocated."""
    cells = sheet.count(b"<c ")
    last = _LAST_ROW.match(sheet, max(0, sheet.rfind(b"<row ")))
    rows = max(int(last[1]) if last else 0, sheet.count(b"<row"))
    columns = max(map(_number_of_column, set(_COLUMN.findall(sheet))), default=26)
    if rows * columns > _EMPTY_ALWAYS + _EMPTY_PER_CELL * cells:
        raise DocParserError(
            f"{source} cannot be read: a sheet has {format_count(cells, 'cell')} in {rows} rows and {columns} columns. "
            "Delete the empty rows and columns at the end of the sheet"
        )


def _number_of_column(letters: bytes) -> int:
    number = 0
    for letter in letters:
        number = 26 * number + letter - 64
    return number


@contextmanager
def _errors_of_xlrd(source: str) -> Iterator[None]:
    import xlrd

    try:
        yield
    except xlrd.XLRDError as error:
        if "encrypted" in str(error):
            raise DocParserError(f"{source} is encrypted: save it without a password") from error
        raise _damaged(source, error) from error
    except (*_FAULTS_OF_XLRD, xlrd.compdoc.CompDocError) as error:
        raise DocParserError(f"{source} is corrupted: its cells cannot be read") from error


@contextmanager
def _errors_of_calamine(source: str) -> Iterator[None]:
    from python_calamine import CalamineError, PasswordError

    try:
        yield
    except PasswordError as error:
        raise DocParserError(f"{source} is encrypted: save it without a password") from error
    except CalamineError as error:
        raise _damaged(source, error) from error
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # of Rust; a damaged file should not end a program
            raise
        raise DocParserError(f"{source} is corrupted: its cells cannot be read") from error


def _damaged(source: str, error: Exception) -> DocParserError:
    return DocParserError(f"{source} is corrupted or not a spreadsheet: {str(error).partition(chr(10))[0]}")


def _text(value: Any) -> str:
    """Format a value the way a person would write it."""
    return _WRITTEN.get(type(value), str)(value)


def _bool(value: bool) -> str:
    return str(value).upper()


def _float(value: float) -> str:
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)


def _datetime(value: datetime.datetime) -> str:
    return value.date().isoformat() if value.time() == datetime.time() else value.isoformat(" ")


_WRITTEN: dict[type, Callable[[Any], str]] = {bool: _bool, float: _float, datetime.datetime: _datetime}
